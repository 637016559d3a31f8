"""Draws images of pages. This always happens in the sandbox, even if only boxes are added to an existing image.

An existing image comes from a child process that read an untrusted file, so opening the image is as unsafe as opening
the file.

Draws a page as an image, and draws boxes on the image of a page. Runs in the sandbox.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from PIL import Image, ImageChops, ImageDraw

from octavo.core.errors import PageMissing, PageNotDrawn
from octavo.extract.extracted import Box, SourceType
from octavo.extract.pdf.document import MOST_SIDE, OpenPage, PageError, fitting_scale, open_document
from octavo.extract.pictures.image_files import count_sheets, fit_image, open_picture, seek_sheet, to_jpeg
from octavo.sandbox import ENDED, Call, Limits, Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import Sandbox


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
    """Draw an area of a PDF page with a narrow margin as a PNG, with at most 200 dots per inch and at most `width`
    pixels wide.
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

    The width is measured after the image is rotated by its EXIF data.
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


# Imported by the preloaded parent of a sandbox, so that its children do not import these for every page.
PRELOAD = (
    "octavo.extract.pictures.page_images",
    "octavo.extract.pictures.page_images",
    "octavo.extract.pictures.image_files",
)
# A user is waiting for the image.
SECONDS = 15
MOST_BYTES = 48 << 20
_PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"


async def draw_in_sandbox(sandbox: Sandbox, path: Path, source_type: SourceType, number: int, width: int) -> bytes:
    """Draw a page of the file at `path` as a PNG. Raises the same errors as `draw_page`."""
    return await _run(sandbox, draw_file_page.call(source_type=source_type, number=number, width=width), path)


@dataclass(frozen=True, slots=True)
class FigurePlace:
    """Where a figure is stored.

    It is an area of a page (`page` and `box`), or a picture file inside the document (`member`).
    """

    source_type: SourceType
    page: int | None
    box: tuple[float, ...]
    member: str | None


async def figure_in_sandbox(sandbox: Sandbox, path: Path, place: FigurePlace, width: int) -> bytes:
    """Draw a figure of the file at `path` as a PNG that is at most `width` pixels wide."""
    call = draw_file_figure.call(
        source_type=place.source_type, page=place.page, box=list(place.box), member=place.member, width=width
    )
    return await _run(sandbox, call, path)


async def show_in_sandbox(sandbox: Sandbox, path: Path, source_type: SourceType, number: int, side: int) -> bytes:
    """Draw a page as a JPEG with no side longer than `side`. Raises the same errors as `draw_in_sandbox`."""
    return await _run(sandbox, show_file_page.call(source_type=source_type, number=number, side=side), path, JPEG)


async def shrink_in_sandbox(sandbox: Sandbox, jpeg: bytes, side: int) -> bytes:
    """Scale down an image so that no side is longer than `side`."""
    with tempfile.TemporaryFile() as given:
        given.write(jpeg)
        given.flush()
        return await _run(sandbox, shrink_image.call(side=side), given, JPEG)


async def sizes_in_sandbox(sandbox: Sandbox, path: Path, most: int) -> list[tuple[float, float]]:
    """Return the width and height, in points, of the first `most` pages of a PDF. Raises the same errors as
    `draw_in_sandbox`.
    """
    made = await _run(sandbox, measure_pages.call(most=most), path, b"[")
    try:
        sizes = [(float(across), float(down)) for across, down in json.loads(made)]
    except (ValueError, TypeError):
        sizes = []
    if not sizes or not all(isfinite(side) for size in sizes for side in size):
        raise PageNotDrawn("The page sizes of the file cannot be read.")
    return sizes[:most]


async def mark_in_sandbox(sandbox: Sandbox, png: bytes, boxes: Iterable[Box], page_width: float) -> bytes:
    """Draw boxes on the image of a page. Boxes are in points, and the page is `page_width` points wide."""
    with tempfile.TemporaryFile() as given:
        given.write(png)
        given.flush()
        call = mark_image.call(boxes=[list(box) for box in boxes], page_width=page_width)
        return await _run(sandbox, call, given)


async def _run(sandbox: Sandbox, call: Call, input_file: BinaryIO | Path, begins: bytes = _PNG) -> bytes:
    try:
        with tempfile.TemporaryFile() as output:
            await sandbox.run(call, input_file=input_file, output_file=output, limits=_limits(sandbox))
            picture = output.read()
    except ENDED as error:
        raise PageNotDrawn(error.title) from error
    if not picture.startswith(begins):
        raise PageNotDrawn("The sandbox returned no valid image.")
    return picture


def _limits(sandbox: Sandbox) -> Limits:
    usual = sandbox.limits
    seconds = min(usual.cpu_seconds, SECONDS)
    return replace(usual, cpu_seconds=seconds, wall_seconds=2 * seconds, output_bytes=MOST_BYTES)


@sandboxed
def draw_file_page(task: Task, *, source_type: str, number: int, width: int) -> None:

    task.output.write(draw_page(Path(task.input_path), SourceType(source_type), number, width))


@sandboxed
def draw_file_figure(
    task: Task, *, source_type: str, page: int | None, box: list[float], member: str | None, width: int
) -> None:

    path = Path(task.input_path)
    if member is not None:
        task.output.write(draw_member(path, SourceType(source_type), member, width))
    else:
        task.output.write(draw_area(path, page or 1, Box(*box), width))


@sandboxed
def show_file_page(task: Task, *, source_type: str, number: int, side: int) -> None:

    task.output.write(show_page(Path(task.input_path), SourceType(source_type), number, side))


@sandboxed
def shrink_image(task: Task, *, side: int) -> None:
    from octavo.extract.pictures.image_files import shrink_jpeg

    task.output.write(shrink_jpeg(Path(task.input_path), side))


@sandboxed
def measure_pages(task: Task, *, most: int) -> None:

    task.output.write(json.dumps(page_sizes(Path(task.input_path), most)).encode())


@sandboxed
def mark_image(task: Task, *, boxes: list[list[float]], page_width: float) -> None:

    task.output.write(mark_boxes(task.input.read(), [Box(*sides) for sides in boxes], page_width))
