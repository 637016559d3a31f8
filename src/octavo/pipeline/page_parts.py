"""Pages that take their time are made once: as parts of a stage, so that a killed job goes on at its page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from octavo.core.types import JSON
from octavo.database import Connection
from octavo.jobs.job_run import Run
from octavo.pipeline.revision_files import RevisionFiles
from octavo.pipeline.tools import Tools
from octavo.storage import ObjectMissing

# The files are dropped by this kind when the text is put together.
KIND = "pages"
MOST_BYTES = 256 << 20
_TYPE = "application/json"


class PageParts:
    """Batches of pages, kept in the bucket until the document is whole."""

    def __init__(self, run: Run[Tools], files: RevisionFiles) -> None:
        self._run = run
        self._files = files

    async def make(self, stage: str, part: str, read: Callable[[], Awaitable[bytes]]) -> bytes:
        async def work() -> JSON:
            return {**await self._files.put(f"{stage}-{part}.json", await read())}

        async def save(connection: Connection, made: JSON) -> None:
            await self._files.keep(connection, f"{KIND}:{stage}:{part}", made, _TYPE)

        made = await self._run.stage(stage, work, part=part, save=save)
        if not isinstance(made, dict):
            raise TypeError("this stage answers what it stored")
        try:
            return await self._run.tools.bucket.read(str(made["key"]), limit=MOST_BYTES)
        except ObjectMissing:  # a later revision that goes on from here: this one's batches are gone
            return await read()
