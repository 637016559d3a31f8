"""Recognition as others ask for it: a page at a time, in the sandbox, and no more pages at once than memory bears."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from octavo.extract.contract import SourceType
from octavo.model.json import JSON
from octavo.model.languages import ANY_LANGUAGE
from octavo.sandbox import ChildCrashed, OutOfTime, OutputTooLarge, Sandbox, TaskFailed

# For a warm parent whose children recognise text and do nothing else: it has the models, which take a second to load.
PRELOAD = ("octavo.extract.ocr.warm", "octavo.extract.ocr.run")
SECONDS = 120
_PATIENCE = 4  # seconds that pass for each of computing, on a machine with more to do
_ENDED = (ChildCrashed, OutOfTime, OutputTooLarge, TaskFailed)


@dataclass(frozen=True, slots=True)
class Recognition:
    """`seconds` is what one page may compute; `turns` lets so many pages go at once, over all documents."""

    sandbox: Sandbox
    language: str = ANY_LANGUAGE
    seconds: int = SECONDS
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    async def page(self, source_type: SourceType, path: Path, number: int, password: str | None = None) -> bytes:
        """The page as a batch; nothing if it cannot be recognised, whatever the reason."""
        arguments: dict[str, JSON] = {
            "source_type": source_type,
            "number": number,
            "language": self.language,
            "password": password,
        }
        limits = replace(self.sandbox.limits, cpu_seconds=self.seconds, wall_seconds=float(_PATIENCE * self.seconds))
        with tempfile.TemporaryFile() as output:
            try:
                async with self.turns:
                    await self.sandbox.run(
                        "octavo.extract.ocr.run:run_page",
                        arguments,
                        input_file=path,
                        output_file=output,
                        limits=limits,
                    )
            except _ENDED:
                return b""
            return output.read()
