"""Draws a page as an image, and draws boxes on the image of a page. Runs in the sandbox."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw

from octavo.core.errors import PageMissing, PageNotDrawn
from octavo.extract.extracted import Box, SourceType
from octavo.extract.pdf.document import MOST_SIDE, OpenPage, PageError, fitting_scale, open_document
from octavo.extract.pictures.image_files import count_sheets, fit_image, open_picture, seek_sheet, to_jpeg

# Measured on books and invoices: a higher level takes 50 % longer and does not make the files smaller.
COMPRESSION = 3
QUICK_COMPRESSION = 1  # for an image that is shown once
MARKER, MARKER_LINE = "#ffe68f", "#a06a00"
_ORIENTATION, _LYING = 0x0112, 5
_MARGIN_POINTS = 2.0
_AREA_MARGIN = 4.0
_READING_SCALE = 200 / 72  # 200 dots per inch, as scanners use for text
_HAIR = 0.01  # subtracted, because pypdfium2 rounds sizes up


def draw_page(path: Path, source_type: SourceType, number: int, width: int) -> bytes:
    """Draw a page as a PNG that is at most `width` pixels wide. Pages are counted from 1. Images are never enlarged.

    Raises `PageMissing`, `PageNotDrawn`, and errors from opening the file, such as `Encrypted`.
    """
    draw = _draw_sheet if source_type is SourceType.IMAGE else _draw_pdf
    return to_png(draw(path, number, width))


def show_page(path: Path, source_type: SourceType, number: int, side: int) -> bytes:
    """Draw a page as a JPEG for a model.

    No side is longer than `side` pixels. A PDF page is drawn with at most 200 dots per inch.
    """
    if source_type is SourceType.IMAGE:
        with _open_sheet(path, number) as picture:
            return to_jpeg(fit_image(picture, side))
    with _open_page(path, number) as page:
        across, down = page.size
        scale = min(_READING_SCALE, (side - _HAIR) / max(across, down, 1.0))
        return to_jpeg(page.drawn(fitting_scale(across, down, scale)))


def draw_area(path: Path, number: int, box: Box, width: int) -> bytes:
    """Draw an area of a PDF page, with a narrow margin, as a PNG.

    The PNG has at most 200 dots per inch and is at most `width` pixels wide.
    """
    with _open_page(path, number) as page:
        across, down = page.size
        left, top = max(box.left - _AREA_MARGIN, 0.0), max(box.top - _AREA_MARGIN, 0.0)
        right, bottom = min(box.right + _AREA_MARGIN, across), min(box.bottom + _AREA_MARGIN, down)
        if right - left < 1 or bottom - top < 1:
            raise PageNotDrawn("The figure is outside the page.")
        scale = min(_READING_SCALE, (width - _HAIR) / (right - left))
        scale = fitting_scale(right - left, bottom - top, scale)
        return to_png(page.drawn(scale, Box(left, top, right, bottom)))


def draw_member(path: Path, source_type: SourceType, member: str, width: int) -> bytes:
    """Read a picture that is stored inside a file, and return it as a PNG that is at most `width` pixels wide.

    Raises `PictureDamaged` if it is not a known type of image.
    """
    # Imported late: page pictures do not need the processors.
    from octavo.extract.formats import read_figure

    with open_picture(BytesIO(read_figure(path, source_type, member))) as picture:
        return to_png(fit_image(picture, _longest_side(picture, width)))


def page_sizes(path: Path, most: int) -> list[tuple[float, float]]:
    """Return the width and height, in points, of the first `most` pages of a PDF. Both are 0 if a page cannot be
    opened.
    """
    sizes: list[tuple[float, float]] = []
    with open_document(path) as document:
        for number in range(1, min(document.page_count, most) + 1):
            try:
                with document.page(number) as page:
                    sizes.append(page.size)
            except PageError:
                sizes.append((0.0, 0.0))
    return sizes


def _draw_pdf(path: Path, number: int, width: int) -> Image.Image:
    with _open_page(path, number) as page:
        across, down = page.size
        return page.drawn(fitting_scale(across, down, (width - _HAIR) / max(across, 1.0)))


def _draw_sheet(path: Path, number: int, width: int) -> Image.Image:
    with _open_sheet(path, number) as picture:
        return fit_image(picture, _longest_side(picture, width))


@contextmanager
def _open_page(path: Path, number: int) -> Generator[OpenPage]:
    with open_document(path) as document:
        if number > document.page_count:
            raise PageMissing(f"The last page is {document.page_count}.")
        try:
            with document.page(number) as page:
                yield page
        except PageError:
            raise PageNotDrawn from None


@contextmanager
def _open_sheet(path: Path, number: int) -> Generator[Image.Image]:
    with open_picture(path) as picture:
        if number > (sheets := count_sheets(picture)):
            raise PageMissing(f"The last page is {sheets}.")
        seek_sheet(picture, number)
        yield picture


def _longest_side(picture: Image.Image, width: int) -> int:
    """Convert a width limit to a limit for the longest side of an image.

    The width is measured after the image has been rotated as its EXIF data requires.
    """
    lies = picture.getexif().get(_ORIENTATION, 1) >= _LYING
    across, down = (picture.height, picture.width) if lies else picture.size
    return min(width * max(across, down) // across, MOST_SIDE)


def to_png(picture: Image.Image) -> bytes:
    """Encode an image as PNG. Images without colour are stored as greyscale, which takes a third of the time."""
    red, green, blue = picture.split()
    is_grey = not (ImageChops.difference(red, green).getbbox() or ImageChops.difference(green, blue).getbbox())
    return _write(green if is_grey else picture, COMPRESSION)


def _write(picture: Image.Image, compression: int) -> bytes:
    body = BytesIO()
    picture.save(body, "PNG", compress_level=compression)
    return body.getvalue()


def mark_boxes(png: bytes, boxes: Iterable[Box], page_width: float) -> bytes:
    """Draw highlighter marks over boxes on the image of a page that is `page_width` points wide."""
    with Image.open(BytesIO(png), formats=["PNG"]) as opened:
        picture = opened.convert("RGB")
    scale = picture.width / page_width
    marks = Image.new("RGB", picture.size, "white")
    pen = ImageDraw.Draw(marks)
    for box in boxes:
        (left, right), (top, bottom) = sorted((box.left, box.right)), sorted((box.top, box.bottom))
        corners = (left - _MARGIN_POINTS, top - _MARGIN_POINTS, right + _MARGIN_POINTS, bottom + _MARGIN_POINTS)
        pen.rectangle([side * scale for side in corners], fill=MARKER, outline=MARKER_LINE, width=max(round(scale), 1))
    return _write(ImageChops.multiply(picture, marks), QUICK_COMPRESSION)
