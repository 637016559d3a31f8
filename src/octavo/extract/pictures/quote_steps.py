"""Quotes on pages as others ask for them: the file is read in the sandbox, and what comes out is checked."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from math import isfinite
from pathlib import Path

from octavo.core.errors import PageNotDrawn
from octavo.extract.contract import Box, FoundQuote
from octavo.sandbox import ENDED, Limits, Sandbox

PRELOAD = ("octavo.extract.pictures.quote_run",)
# Somebody waits for it.
SECONDS = 10
MOST_BYTES = 1 << 20


async def quote_in_sandbox(sandbox: Sandbox, path: Path, number: int, quote: str) -> FoundQuote:
    """Raises `PageNotDrawn`, and `Encrypted` among others."""
    arguments = {"number": number, "quote": quote}
    try:
        with tempfile.TemporaryFile() as made:
            await sandbox.run(
                f"{PRELOAD[0]}:run", arguments, input_file=path, output_file=made, limits=_limits(sandbox)
            )
            made.seek(0)
            answer = made.read()
    except ENDED as error:
        raise PageNotDrawn(error.title) from error
    return _checked(answer)


def _checked(answer: bytes) -> FoundQuote:
    try:
        given = json.loads(answer)
        width, height = float(given["width"]), float(given["height"])
        boxes = [Box(*map(float, box)) for box in given["boxes"]]
    except (ValueError, TypeError, KeyError):
        raise PageNotDrawn from None
    if not all(isfinite(side) for box in (*boxes, (width, height)) for side in box) or min(width, height) <= 0:
        raise PageNotDrawn
    return FoundQuote(width, height, boxes)


def _limits(sandbox: Sandbox) -> Limits:
    usual = sandbox.limits
    seconds = min(usual.cpu_seconds, SECONDS)
    return replace(usual, cpu_seconds=seconds, wall_seconds=2 * seconds, output_bytes=MOST_BYTES)
