"""Runs OCR for other packages, one page per call, in the sandbox. Only a few pages run in parallel, to save memory."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.core.errors import BadInput, OctavoError
from octavo.core.texts import ANY_LANGUAGE
from octavo.extract.extracted import SourceType
from octavo.extract.pdf.page_batches import Batch, batch_to_json
from octavo.sandbox import ENDED, Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import Sandbox

# Imported by a preloaded parent whose children only run OCR. It keeps the most common models in memory.
PRELOAD = (
    "octavo.extract.ocr.load_models",
    "octavo.extract.ocr.recognition",
    "octavo.extract.ocr.page_recognition",
    "octavo.extract.pdf.page_text",
    "octavo.extract.pictures.image_files",
)
SECONDS = 120
_WALL_PER_CPU_SECOND = 4  # how much longer a page can take on a busy machine


class Recognition:
    """Runs OCR in a sandbox.

    `language` is the language of the documents, and `seconds` the CPU time limit per page. At most `parallel` pages are
    recognised at the same time. Other pages wait and are processed in order.
    """

    def __init__(
        self, sandbox: Sandbox, language: str = ANY_LANGUAGE, seconds: int = SECONDS, parallel: int = 1
    ) -> None:
        self.parallel = parallel
        self._sandbox = sandbox
        self._language = language
        self._limits = replace(sandbox.limits, cpu_seconds=seconds, wall_seconds=float(_WALL_PER_CPU_SECOND * seconds))
        self._slots = asyncio.Semaphore(parallel)

    async def page(self, source_type: SourceType, path: Path, number: int, password: str | None = None) -> bytes:
        """Recognise one page. Returns a batch of one page as JSON.

        Returns empty bytes if the page cannot be recognised.
        """
        call = recognise_page_of_file.call(
            source_type=source_type, number=number, language=self._language, password=password
        )
        with tempfile.TemporaryFile() as output:
            try:
                async with self._slots:
                    await self._sandbox.run(call, input_file=path, output_file=output, limits=self._limits)
            except (BadInput, *ENDED) as error:
                _log_failure(number, error)
                return b""
            return output.read()


def _log_failure(page: int, error: OctavoError) -> None:
    # Imported late: the preloaded parent imports this module too, and its forks are faster without structlog.
    import structlog

    structlog.get_logger().warning("page not recognised", page=page, code=error.code, reason=error.title)


@sandboxed
def recognise_page_of_file(task: Task, *, source_type: str, number: int, language: str, password: str | None) -> None:
    """Recognise one page of a file.

    Each page is read in a separate child process, so that its memory is freed and a failure affects no other page.
    """
    from octavo.extract.pdf.page_text import recognise_pdf_page
    from octavo.extract.pictures.image_files import read_sheet

    path = Path(task.input_path)
    if source_type == SourceType.IMAGE:
        page = read_sheet(path, number, language)
    else:
        page = recognise_pdf_page(path, number, password, language)
    task.output.write(batch_to_json(Batch((page,))) + b"\n")
