"""A picture is a document of sheets: counted before they are decoded, and none of them larger than is decoded."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest
from PIL import Image

from octavo.core.errors import TooLarge
from octavo.extract.extracted import Quality, SourceType
from octavo.extract.pdf.page_batches import Batch
from octavo.extract.pictures import image_files
from octavo.extract.pictures.image_files import (
    MOST_HEIF_BYTES,
    make_jpeg,
    open_picture,
    open_sheets,
    read_sheet,
    seek_sheet,
)
from tests.support.pdf import assemble

# 29 by 100 grey pixels, from the tests of pillow-heif (BSD-3-Clause): nothing here can write this format.
HEIC = b64decode(
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAWNtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5waXRtAA"
    "AAAAABAAAAImlsb2MAAAAAREAAAQABAAAAAAGHAAEAAAAAAAACZQAAACNpaW5mAAAAAAABAAAAFWluZmUCAAAAAAEAAGh2YzEAAAAA42lwcnAA"
    "AADEaXBjbwAAAHJodmNDAQQIAAAAAAAAAAAA//AA/Pz6+gAADwMgAAEAF0ABDAH//wQIAAADAJ34AAADAAD/ugJAIQABACdCAQEECAAAAwCd+A"
    "AAAwAA/8CCBp8rZbqrprmwIAAAAwAgAAADACEiAAEABkQBwXGLEgAAABRpc3BlAAAAAAAAAEAAAABkAAAAKGNsYXAAAAAdAAAAAQAAAGQAAAAB"
    "////3QAAAAIAAAAAAAAAAgAAAA5waXhpAAAAAAEKAAAAF2lwbWEAAAAAAAAAAQABBIECgwQAAAJtbWRhdAAAAmEoAa4LZz47VmxnySx7NDMf//"
    "5AIcnwscN5McCRsE35DNDPQJfYVCES+NVol9kS+NVpEohdAD/E/T9+XXOiK7QmO5Mae7K1JoAASTw61utEEsxQkOP6yvmUQAAdBZm/Zn0F1tmK"
    "7d/ZV5NuVM7XooAMrQAADtJI3EHeuGAxKF7i2LClgAAQ0HDGPdoT/Ua+ABjtS4s5OwA94oqLnaHFKWetmCflWUAAzUVHJGk483bEC2EI0gHrQA"
    "B0lB74EwLXZHflVeTo7GNPNT0NFr8AAD1IQVsGjyNmOVfl8yfYxcAANE+XvhWoqNsH2cdc3quXsjgDUvrY+ci9w1yFUW5pXUQAJ9seR68OaEVl"
    "UJfvO/WEQADiMj49P8E9/ebxMwEFPcfo2G2sIZEAAHGW4xkZFnX43djkGh4HDoADsJXnPIGiQNMUXHc/c2ychgCWHUv1G6tctq9pdZPu6gAUjU"
    "4c90Xbe5SPbjhW4+sYACxW+BYl3PpmwmNClWxIZvrEvGAipQAAlvRPfE1s97oJVHKm5kt7gAXipYHwVlZwAdIdDc/i1AmAASBexR9Bw4FFdgx7"
    "bfbZIAAew4gsIYWFSMPNaHl1extgAWm2+GQzM+OyNqkteSx3/4AAbeEB61RtugfMpd6Let5duCngAADgMIpTOECKhiGlVmlxKOMADJRb9QZzv0"
    "+AxwmN6IZHbzwA0UP3c1v559DlReA//oAAw83jjPv7S6dY1Cy3A/kdwALxRu9+BK/l66RAA5+5p4wEAOOoMRL4/iFsMNMX+NWfQnIAAbhodP6B"
    "kmaYbFQoefAmPsijW9I="
)


def tiff(folder: Path, given: list[Image.Image]) -> Path:
    path = folder / "fax.tif"
    first, *others = given
    first.save(path, "TIFF", save_all=True, append_images=others, compression="group4")
    return path


def sheet_of(width: int, height: int) -> Image.Image:
    return Image.new("1", (width, height), 1)


def test_a_fax_has_as_many_pages_as_sheets_and_a_moving_picture_one(tmp_path: Path) -> None:
    assert open_sheets(tiff(tmp_path, [sheet_of(20, 30)] * 3)).page_count == 3
    moving = tmp_path / "moving.gif"
    Image.new("P", (9, 9), 0).save(moving, save_all=True, append_images=[Image.new("P", (9, 9), 1)])
    assert open_sheets(moving).page_count == 1


def test_a_blank_fax_is_empty_and_has_its_pages(tmp_path: Path) -> None:
    path = tiff(tmp_path, [sheet_of(20, 30), sheet_of(40, 30)])
    facts = open_sheets(path)
    found = assemble(facts, [Batch((read_sheet(path, number),)) for number in (1, 2)], SourceType.IMAGE)
    assert (found.quality, found.markdown, found.source_type) == (Quality.EMPTY, "", SourceType.IMAGE)
    assert [(page.width, page.height) for page in found.pages] == [(20, 30), (40, 30)]


def test_too_many_sheets_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_files, "MOST_SHEETS", 4)
    with pytest.raises(TooLarge, match="5 pages"):
        open_sheets(tiff(tmp_path, [sheet_of(8, 8)] * 5))


def test_a_huge_sheet_behind_a_small_one_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    path = tiff(tmp_path, [sheet_of(8, 8), sheet_of(15_000, 15_000)])
    with open_picture(path) as picture, pytest.raises(TooLarge, match="225 million pixels"):
        seek_sheet(picture, 2)


def test_what_the_camera_said_is_kept(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0110] = "Box camera\0"
    exif.get_ifd(0x8769)[0x9003] = "2024:05:17 10:00:00"
    path = tmp_path / "photo.jpg"
    Image.new("RGB", (8, 8)).save(path, exif=exif)
    about = open_sheets(path).metadata
    assert (about.date, about.extra) == ("2024-05-17", {"camera": "Box camera"})


def test_pictures_of_phones_are_decoded_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "photo.heic"
    path.write_bytes(HEIC)
    assert make_jpeg(path).startswith(b"\xff\xd8\xff")
    with path.open("r+b") as file:
        file.truncate(MOST_HEIF_BYTES + 1)
    with pytest.raises(TooLarge, match="up to 15 MB"):
        make_jpeg(path)
