"""The one way from a file to its text, whoever asks: each kind by the way that suits it, always in the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from octavo.extract.contract import Extracted, SourceType
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.pdf.steps import PdfInSandbox
from octavo.extract.pictures.reading import PictureInSandbox
from octavo.extract.steps import extract_in_sandbox
from octavo.sandbox import Progress, Sandbox

# What a child of the sandbox would otherwise import anew for every step of every file.
PRELOAD = ("octavo.extract.run", "octavo.extract.pdf.run")


async def extract_file(
    sandbox: Sandbox,
    path: Path,
    *,
    filename: str | None = None,
    password: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Extracted:
    """Reads the file at `path`; `filename` is its label where the path is none.

    Raises what `Sandbox.run` raises: errors of `octavo.model.errors` for what cannot be read.
    """
    label = path.name if filename is None else filename
    match await asyncio.to_thread(_type_of, path, label):
        case SourceType.PDF:
            return await PdfInSandbox(sandbox, path, password, sandbox.limits).extract(on_progress)
        case SourceType.IMAGE:
            return await PictureInSandbox(sandbox, path, limits=sandbox.limits).extract(on_progress)
        case _:
            return await extract_in_sandbox(sandbox, path, label, password=password, on_progress=on_progress)


async def extract_alone(path: Path, password: str | None = None) -> Extracted:
    """One file in a sandbox of its own, with the limits of an installation that changed none."""
    async with Sandbox(preload=PRELOAD) as sandbox:
        return await extract_file(sandbox, path, password=password)


def _type_of(path: Path, label: str) -> SourceType:
    with path.open("rb") as file:
        return detect(file.read(HEAD_BYTES), label)
