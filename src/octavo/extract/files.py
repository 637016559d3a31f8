"""The one way from a file to its text, whoever asks: each kind by the way that suits it, always in the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from octavo.core.languages import ANY_LANGUAGE
from octavo.extract.contract import Extracted, SourceType
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.ocr.steps import PRELOAD as OCR_PRELOAD
from octavo.extract.ocr.steps import SECONDS, Recognition
from octavo.extract.paged import OnProgress
from octavo.extract.pdf.steps import PdfInSandbox
from octavo.extract.pictures.reading import PictureInSandbox
from octavo.extract.steps import extract_in_sandbox
from octavo.sandbox import Limits, Sandbox

# What a child of the sandbox would otherwise import anew for every step of every file.
PRELOAD = ("octavo.extract.run", "octavo.extract.pdf.run")


@dataclass(frozen=True, slots=True)
class FileReader:
    """What it takes to read files of any kind. Text in pictures is recognised in the same sandbox, if in no other."""

    sandbox: Sandbox
    recognition: Recognition | None = None

    async def read(
        self,
        path: Path,
        *,
        filename: str | None = None,
        password: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Extracted:
        """The text of the file at `path`; `filename` is its label where the path is none.

        Raises what `Sandbox.run` raises: errors of `octavo.core.errors` for what cannot be read.
        """
        sandbox, limits = self.sandbox, self.sandbox.limits
        label = path.name if filename is None else filename
        match await asyncio.to_thread(_type_of, path, label):
            case SourceType.PDF:
                return await PdfInSandbox(sandbox, path, password, limits, self.recognition).extract(on_progress)
            case SourceType.IMAGE:
                return await PictureInSandbox(sandbox, path, None, limits, self.recognition).extract(on_progress)
            case _:
                return await extract_in_sandbox(sandbox, path, label, password=password, on_progress=on_progress)


@asynccontextmanager
async def open_reader(
    limits: Limits | None = None, language: str = ANY_LANGUAGE, page_seconds: int = SECONDS
) -> AsyncGenerator[FileReader]:
    """For somebody who waits. `language` and `page_seconds` are about text in pictures, which has a sandbox of its own.

    Both start with the first file that needs them.
    """
    async with (
        aclosing(Sandbox(preload=PRELOAD, limits=limits, patience=0)) as sandbox,
        aclosing(Sandbox(preload=OCR_PRELOAD, limits=limits, patience=0)) as recognising,
    ):
        yield FileReader(sandbox, Recognition(recognising, language, page_seconds))


def _type_of(path: Path, label: str) -> SourceType:
    with path.open("rb") as file:
        return detect(file.read(HEAD_BYTES), label)
