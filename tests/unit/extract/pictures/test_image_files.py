"""Pictures are shown the right way up, small enough, on white, and a bad one harms nobody."""

from __future__ import annotations

import zlib
from io import BytesIO
from pathlib import Path
from struct import pack

import pytest
from PIL import Image

from octavo.core.errors import TooLarge
from octavo.extract.pictures.image_files import PictureDamaged, make_jpeg, open_picture, shrink_jpeg


def saved(folder: Path, picture: Image.Image, kind: str, **more: object) -> Path:
    path = folder / f"picture.{kind.lower()}"
    picture.save(path, kind, **more)
    return path


def shown(path: Path, side: int = 2048) -> Image.Image:
    return Image.open(BytesIO(make_jpeg(path, side)))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "AVIF"])
def test_every_kind_becomes_a_jpeg(tmp_path: Path, kind: str) -> None:
    found = shown(saved(tmp_path, Image.new("RGB", (60, 40), "red"), kind))
    assert (found.format, found.size) == ("JPEG", (60, 40))


def test_a_large_picture_is_made_to_fit_and_a_small_one_is_never_enlarged(tmp_path: Path) -> None:
    assert shown(saved(tmp_path, Image.new("RGB", (4000, 1000)), "PNG")).size == (2048, 512)
    assert shown(saved(tmp_path, Image.new("RGB", (20, 10)), "PNG")).size == (20, 10)


def test_a_picture_is_turned_as_its_camera_says(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the top is at the right
    path = saved(tmp_path, Image.new("RGB", (80, 40)), "JPEG", exif=exif)
    found = shown(path)
    assert found.size == (40, 80)
    assert not found.getexif()


def test_what_can_be_seen_through_stands_on_white(tmp_path: Path) -> None:
    found = shown(saved(tmp_path, Image.new("RGBA", (10, 10), (0, 0, 0, 0)), "PNG"))
    assert found.getpixel((5, 5)) == (255, 255, 255)


@pytest.mark.parametrize("mode", ["1", "P", "L", "I;16", "RGBA", "CMYK"])
def test_thin_strokes_are_still_there_when_a_picture_of_any_kind_is_made_smaller(tmp_path: Path, mode: str) -> None:
    drawn = Image.new("L", (1000, 1000), 255)
    drawn.paste(0, (0, 501, 1000, 503))
    given = drawn.convert("I").point(lambda tone: tone * 257).convert("I;16") if mode == "I;16" else drawn.convert(mode)
    found = shown(saved(tmp_path, given, "TIFF"), 250).convert("L")
    assert found.size == (250, 250)
    tones = found.histogram()
    assert sum(tones[:160]) >= 250
    assert sum(tones[250:]) >= 240 * 250


def test_sixteen_bits_a_channel_are_not_all_white(tmp_path: Path) -> None:
    deep = Image.new("I;16", (10, 10))
    deep.putpixel((0, 0), 65535)
    deep.putpixel((1, 1), 30000)
    found = shown(saved(tmp_path, deep, "PNG"))
    dark, light = found.getpixel((9, 9)), found.getpixel((0, 0))
    assert isinstance(dark, tuple)
    assert isinstance(light, tuple)
    assert dark[0] < 60 < light[0]


def png_of(width: int, height: int) -> bytes:
    """A few bytes that claim to be a huge picture."""

    def part(kind: bytes, body: bytes) -> bytes:
        return pack(">I", len(body)) + kind + body + pack(">I", zlib.crc32(kind + body))

    header = pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(b"\0" * 100)) + part(b"IEND", b"")


def test_a_flood_of_pixels_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "flood.png"
    path.write_bytes(png_of(50_000, 50_000))
    with pytest.raises(TooLarge, match="2,500 million pixels"), open_picture(path):
        pass


@pytest.mark.parametrize(
    "body",
    [b"", b"not a picture", png_of(100, 100), b"\xff\xd8\xff\xe0garbage", b"GIF89a", b"II*\0\x08\0\0\0\xff\xff"],
    ids=["empty", "text", "cut png", "broken jpeg", "short gif", "broken tiff"],
)
def test_a_damaged_picture_is_called_so(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "picture"
    path.write_bytes(body)
    with pytest.raises(PictureDamaged):
        make_jpeg(path)


def test_formats_that_start_other_programs_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "picture.eps"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 100 100\n%%EndComments\nshowpage\n")
    with pytest.raises(PictureDamaged):
        make_jpeg(path)


def test_a_copy_for_a_model_is_no_larger_than_it_takes_and_else_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "copy.jpg"
    path.write_bytes(make_jpeg(saved(tmp_path, Image.new("RGB", (3000, 1500), "navy"), "PNG")))
    assert Image.open(BytesIO(shrink_jpeg(path, 1568))).size == (1568, 784)
    assert shrink_jpeg(path, 3072) == path.read_bytes()
