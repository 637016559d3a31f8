"""Draws images of pages. This always happens in the sandbox, even if only boxes are added to an existing image.

An existing image comes from a child process that read an untrusted file, so opening the image is as unsafe as opening
the file.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from octavo.core.errors import PageNotDrawn
from octavo.extract.extracted import Box, SourceType
from octavo.sandbox import ENDED, Call, Limits, Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import Sandbox

# Imported by the preloaded parent of a sandbox, so that its children do not import these for every page.
PRELOAD = (
    "octavo.extract.pictures.page_images",
    "octavo.extract.pictures.drawing",
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
    """Where a figure is stored: as an area of a page (`page` and `box`), or as a picture inside the file (`member`)."""

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
    """Draw a page as a JPEG with no side longer than `side` pixels. Raises the same errors as `draw_in_sandbox`."""
    return await _run(sandbox, show_file_page.call(source_type=source_type, number=number, side=side), path, JPEG)


async def shrink_in_sandbox(sandbox: Sandbox, jpeg: bytes, side: int) -> bytes:
    """Scale down an image so that no side is longer than `side` pixels."""
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
    from octavo.extract.pictures.drawing import draw_page

    task.output.write(draw_page(Path(task.input_path), SourceType(source_type), number, width))


@sandboxed
def draw_file_figure(
    task: Task, *, source_type: str, page: int | None, box: list[float], member: str | None, width: int
) -> None:
    from octavo.extract.pictures.drawing import draw_area, draw_member

    path = Path(task.input_path)
    if member is not None:
        task.output.write(draw_member(path, SourceType(source_type), member, width))
    else:
        task.output.write(draw_area(path, page or 1, Box(*box), width))


@sandboxed
def show_file_page(task: Task, *, source_type: str, number: int, side: int) -> None:
    from octavo.extract.pictures.drawing import show_page

    task.output.write(show_page(Path(task.input_path), SourceType(source_type), number, side))


@sandboxed
def shrink_image(task: Task, *, side: int) -> None:
    from octavo.extract.pictures.image_files import shrink_jpeg

    task.output.write(shrink_jpeg(Path(task.input_path), side))


@sandboxed
def measure_pages(task: Task, *, most: int) -> None:
    from octavo.extract.pictures.drawing import page_sizes

    task.output.write(json.dumps(page_sizes(Path(task.input_path), most)).encode())


@sandboxed
def mark_image(task: Task, *, boxes: list[list[float]], page_width: float) -> None:
    from octavo.extract.pictures.drawing import mark_boxes

    task.output.write(mark_boxes(task.input.read(), [Box(*sides) for sides in boxes], page_width))
