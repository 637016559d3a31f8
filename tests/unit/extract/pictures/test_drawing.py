"""A page is drawn as it is seen: turned, cut and as large as was asked for; and boxes stand where they should."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from octavo.core.errors import Encrypted, PageMissing
from octavo.extract.extracted import Box, SourceType
from octavo.extract.pictures.drawing import draw_page, mark_boxes, to_png
from tests.support.pdf import Pdf, Words

EXIF_ORIENTATION, TURNED_RIGHT = 0x0112, 6


def drawn(path: Path, kind: SourceType, number: int = 1, width: int = 800) -> Image.Image:
    return Image.open(BytesIO(draw_page(path, kind, number, width)))


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    path = tmp_path / "a.pdf"
    path.write_bytes(Pdf([[Words("First")], [Words("Second")]]).write())
    return path


def test_a_page_without_colours_is_stored_without_them(pdf: Path) -> None:
    assert drawn(pdf, SourceType.PDF).mode == "L"
    assert Image.open(BytesIO(to_png(Image.new("RGB", (9, 9), "red")))).mode == "RGB"


def test_a_turned_page_is_drawn_as_it_is_seen(pdf: Path) -> None:
    pdf.write_bytes(pdf.read_bytes().replace(b"/Type/Page/", b"/Rotate 90/Type/Page/"))
    lying = drawn(pdf, SourceType.PDF)
    assert lying.width == 800 > lying.height


def test_a_page_that_is_as_large_as_a_house_is_a_bearable_picture(pdf: Path) -> None:
    pdf.write_bytes(pdf.read_bytes().replace(b"[0 0 612 792]", b"[0 0 3 14400]"))
    picture = drawn(pdf, SourceType.PDF, width=1600)
    assert max(picture.size) <= 8001


def test_a_missing_page_is_said_to_be_missing(pdf: Path) -> None:
    with pytest.raises(PageMissing, match="The last page is 2"):
        draw_page(pdf, SourceType.PDF, 3, 800)


def test_a_locked_file_is_said_to_be_locked(tmp_path: Path) -> None:
    path = tmp_path / "locked.pdf"
    path.write_bytes(Pdf([[Words("Secret")]]).write("password"))
    with pytest.raises(Encrypted):
        draw_page(path, SourceType.PDF, 1, 800)


def test_a_photograph_is_turned_and_measured_across(tmp_path: Path) -> None:
    path, exif = tmp_path / "a.jpeg", Image.Exif()
    exif[EXIF_ORIENTATION] = TURNED_RIGHT
    Image.new("RGB", (2000, 1000), "red").save(path, "JPEG", exif=exif)
    assert drawn(path, SourceType.IMAGE, width=800).size == (800, 1600)
    assert drawn(path, SourceType.IMAGE, width=1600).size == (1000, 2000), "it is never enlarged"


def test_only_sheets_are_pages(tmp_path: Path) -> None:
    path, frames = tmp_path / "a.gif", [Image.new("RGB", (20, 10), colour) for colour in ("red", "blue")]
    frames[0].save(path, "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(PageMissing):
        draw_page(path, SourceType.IMAGE, 2, 800)


def test_boxes_are_marked_and_what_is_under_them_can_be_read() -> None:
    page = Image.new("RGB", (200, 100), "white")
    page.putpixel((50, 50), (0, 0, 0))
    marked = Image.open(BytesIO(mark_boxes(to_png(page), [Box(60, 30, 20, 10)], page_width=100))).convert("RGB")
    assert marked.getpixel((50, 50)) == (0, 0, 0)
    assert marked.getpixel((60, 50)) == (255, 230, 143)
    assert marked.getpixel((150, 50)) == (255, 255, 255)
