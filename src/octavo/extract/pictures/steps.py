"""Pictures of pages as others ask for them: always drawn in the sandbox, also where only boxes are drawn over one.

A picture is what a child made of somebody's file, so that opening it is no safer than opening the file.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import BinaryIO

from octavo.core.errors import PageNotDrawn
from octavo.core.json import JSON
from octavo.extract.contract import Box, SourceType
from octavo.sandbox import ENDED, Limits, Sandbox

PRELOAD = ("octavo.extract.pictures.run",)
# Somebody waits for it.
SECONDS = 15
MOST_BYTES = 48 << 20
_PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"


async def draw_in_sandbox(sandbox: Sandbox, path: Path, source_type: SourceType, number: int, width: int) -> bytes:
    """One page of the file at `path` as a PNG. Raises `PageMissing`, `PageNotDrawn`, and `Encrypted` among others."""
    arguments: dict[str, JSON] = {"source_type": source_type, "number": number, "width": width}
    return await _run(sandbox, "run_draw", arguments, path)


async def show_in_sandbox(sandbox: Sandbox, path: Path, source_type: SourceType, number: int, side: int) -> bytes:
    """One page as a JPEG with no side longer than this. Raises as drawing does."""
    arguments: dict[str, JSON] = {"source_type": source_type, "number": number, "side": side}
    return await _run(sandbox, "run_show", arguments, path, JPEG)


async def shrink_in_sandbox(sandbox: Sandbox, jpeg: bytes, side: int) -> bytes:
    """The same picture with no side longer than this."""
    with tempfile.TemporaryFile() as given:
        given.write(jpeg)
        given.flush()
        return await _run(sandbox, "run_shrink", {"side": side}, given, JPEG)


async def sizes_in_sandbox(sandbox: Sandbox, path: Path, most: int) -> list[tuple[float, float]]:
    """Width and height in points of the first pages of a PDF. Raises as drawing does."""
    made = await _run(sandbox, "run_sizes", {"most": most}, path, b"[")
    try:
        sizes = [(float(across), float(down)) for across, down in json.loads(made)]
    except (ValueError, TypeError):
        sizes = []
    if not sizes or not all(isfinite(side) for size in sizes for side in size):
        raise PageNotDrawn("Its pages have no size.")
    return sizes[:most]


async def mark_in_sandbox(sandbox: Sandbox, png: bytes, boxes: Iterable[Box], page_width: float) -> bytes:
    """The same picture with boxes on it, which are in points of a page that is so many across."""
    sides = " ".join(str(side) for box in boxes for side in box)
    with tempfile.TemporaryFile() as given:
        given.write(png)
        given.flush()
        return await _run(sandbox, "run_mark", {"sides": sides, "page_width": page_width}, given)


async def _run(
    sandbox: Sandbox, function: str, arguments: Mapping[str, JSON], given: BinaryIO | Path, begins: bytes = _PNG
) -> bytes:
    try:
        with tempfile.TemporaryFile() as made:
            await sandbox.run(
                f"octavo.extract.pictures.run:{function}",
                arguments,
                input_file=given,
                output_file=made,
                limits=_limits(sandbox),
            )
            picture = made.read()
    except ENDED as error:
        raise PageNotDrawn(error.title) from error
    if not picture.startswith(begins):
        raise PageNotDrawn("What was drawn is no picture.")
    return picture


def _limits(sandbox: Sandbox) -> Limits:
    usual = sandbox.limits
    seconds = min(usual.cpu_seconds, SECONDS)
    return replace(usual, cpu_seconds=seconds, wall_seconds=2 * seconds, output_bytes=MOST_BYTES)
