"""Recognition as others ask for it: a page at a time, in the sandbox, and no more pages at once than memory bears."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

import structlog

from octavo.core.errors import BadInput
from octavo.core.json import JSON
from octavo.core.languages import ANY_LANGUAGE
from octavo.extract.contract import SourceType
from octavo.sandbox import ENDED, Sandbox

log = structlog.get_logger()
# For a warm parent whose children recognise text and do nothing else: it has the models, which take a second to load.
PRELOAD = ("octavo.extract.ocr.warm", "octavo.extract.ocr.run")
SECONDS = 120
_PATIENCE = 4  # seconds that pass for each of computing, on a machine with more to do


class Recognition:
    """How text is recognised: where, in which language, how long a page may compute, and how many pages at once.

    Pages that wait for their turn get it in the order in which they came.
    """

    def __init__(
        self, sandbox: Sandbox, language: str = ANY_LANGUAGE, seconds: int = SECONDS, at_once: int = 1
    ) -> None:
        self.at_once = at_once
        self._sandbox = sandbox
        self._language = language
        self._limits = replace(sandbox.limits, cpu_seconds=seconds, wall_seconds=float(_PATIENCE * seconds))
        self._turns = asyncio.Semaphore(at_once)

    async def page(self, source_type: SourceType, path: Path, number: int, password: str | None = None) -> bytes:
        """The page as a batch; nothing if it cannot be recognised, whatever the reason."""
        arguments: dict[str, JSON] = {
            "source_type": source_type,
            "number": number,
            "language": self._language,
            "password": password,
        }
        with tempfile.TemporaryFile() as output:
            try:
                async with self._turns:
                    await self._sandbox.run(
                        "octavo.extract.ocr.run:run_page",
                        arguments,
                        input_file=path,
                        output_file=output,
                        limits=self._limits,
                    )
            except (BadInput, *ENDED) as error:
                log.warning("page not recognised", page=number, code=error.code, reason=error.title)
                return b""
            return output.read()
