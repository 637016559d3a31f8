"""Job kind that adds the files of a source which have stopped changing, each in one transaction.

The transaction that creates a document also records the file as added, so a killed job continues with the next file
and adds none twice. Files go through the same intake as uploads.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from octavo.core.errors import BadInput
from octavo.core.types import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.extract.detect import detect
from octavo.intake import Intake, IntakeLimits, NewUpload, Outcome
from octavo.intake.errors import QuotaExceeded
from octavo.intake.sources import SETTLE_SECONDS, FolderSource, SeenFile, as_folder, open_inside
from octavo.intake.upload_rows import intake_limits
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.library.changes import Edit, edit_documents
from octavo.pipeline.tools import Tools

QUERIES = load_queries("sources")
BATCH = 100
BLOCK_BYTES = 1 << 20
QUOTA_SECONDS = 600


class SourceInput(BaseModel):
    """The input of the job: the id of the source."""

    model_config = ConfigDict(extra="forbid")

    source: UUID


def read_input(given: dict[str, JSON]) -> SourceInput:
    try:
        return SourceInput.model_validate(given)
    except ValidationError:
        raise BadInput("source: must be the id of a source.") from None


class FileChanged(Exception):
    """The file changed, or was added by another job. It is left as it is, and the next look decides."""


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file to add. `document` is the document of its earlier content."""

    seen: SeenFile
    document: UUID | None


async def add_files(run: Run[Tools]) -> JSON:
    async with run.tools.database.connection() as connection:
        rows = await fetch_rows(connection, QUERIES.source_of_job, {"id": read_input(run.input).source})
    if not rows:  # deleted or paused
        return {"files": 0}
    source = as_folder(rows[0])
    intake = Intake(run.tools.database, run.tools.bucket, detect)
    adding = FolderIntake(run, source, intake, intake_limits(run.tools.settings, anonymous=False))
    return {"files": await adding.add_all()}


@dataclass(frozen=True, slots=True)
class FolderIntake:
    """Adds the waiting files of one folder."""

    run: Run[Tools]
    source: FolderSource
    intake: Intake
    limits: IntakeLimits

    async def add_all(self) -> int:
        """Add files until none is left, or the quota is used up. Each file is tried once."""
        tried: set[SeenFile] = set()
        while waiting := [one for one in await self._waiting(len(tried)) if one.seen not in tried]:
            for one in waiting:
                tried.add(one.seen)
                if not await self._add(one):
                    return len(tried)
                await self.run.progress(len(tried), None, "files")
        return len(tried)

    async def _waiting(self, tried: int) -> list[WaitingFile]:
        values = {"source": self.source.id, "settle": SETTLE_SECONDS, "most": BATCH + tried}
        async with self.run.tools.database.connection() as connection:
            rows = await fetch_rows(connection, QUERIES.settled_files, values)
        return [WaitingFile(SeenFile(row["path"], row["bytes"], row["modified"]), row["document_id"]) for row in rows]

    async def _add(self, file: WaitingFile) -> bool:
        """Add one file. Returns False if no more files can be added."""
        owner = self.source.owner_id
        new = await self._announce(file)
        try:
            body = read_file(self.source, file.seen)
            await self.intake.take(owner, new, body, self.limits, on_created=partial(self._record, file, new))
        except FileChanged:
            pass
        except QuotaExceeded as error:
            values = {"source": self.source.id, "error": error.line, "seconds": QUOTA_SECONDS}
            await self._execute(QUERIES.postpone_source, values)
            return False
        except (BadInput, OSError) as error:
            await self._fail(file, error)
        return True

    async def _announce(self, file: WaitingFile) -> NewUpload:
        # The files of a job are one import, so that they never delay what a person adds.
        given: dict[str, JSON] = {"import": str(self.run.job.id)}
        new = NewUpload(PurePosixPath(file.seen.path).name, bytes=file.seen.bytes, given=given)
        if file.document is None or self.source.options.changed != "version":
            return new
        async with self.run.tools.database.connection() as connection:
            values = {"document": file.document, "owner": self.source.owner_id}
            found = await fetch_rows(connection, QUERIES.version_of, values)
        return replace(new, version_of=file.document) if found else new

    async def _record(self, file: WaitingFile, new: NewUpload, connection: Connection, outcome: Outcome) -> None:
        """Record the file as added, in the transaction that creates its document."""
        seen = file.seen
        values = {"source": self.source.id, "path": seen.path, "bytes": seen.bytes, "modified": seen.modified}
        if not await fetch_rows(connection, QUERIES.take_file, values):
            raise FileChanged
        is_new = outcome.state == "uploaded"
        values = {"source": self.source.id, "path": seen.path, "state": "added" if is_new else "known"}
        await connection.execute(QUERIES.set_file, values | {"document": outcome.document_id, "error": None})
        edit = edit_of(self.source, seen.path)
        if is_new and edit and new.version_of is None:
            await edit_documents(connection, self.source.owner_id, [outcome.document_id], edit)

    async def _fail(self, file: WaitingFile, error: BadInput | OSError) -> None:
        text = error.line if isinstance(error, BadInput) else f"The file cannot be read: {error.strerror}."
        values = {"source": self.source.id, "path": file.seen.path, "state": "failed", "document": None, "error": text}
        await self._execute(QUERIES.set_file, values)

    async def _execute(self, query: bytes, values: dict[str, Any]) -> None:
        async with self.run.tools.database.transaction() as connection:
            await connection.execute(query, values)


def edit_of(source: FolderSource, path: str) -> Edit | None:
    """Return the collection or the tags of a file in a sub-folder."""
    parents = PurePosixPath(path).parts[:-1]
    if not parents or source.options.subfolders not in {"collections", "tags"}:
        return None
    return Edit(collection=parents[0]) if source.options.subfolders == "collections" else Edit(added_tags=parents)


async def read_file(source: FolderSource, file: SeenFile) -> AsyncGenerator[bytes]:
    """Yield the bytes of a file. Raises `FileChanged` if it is not the file that was seen, or changes meanwhile."""
    try:
        opened = await asyncio.to_thread(open_inside, source.folder, file.path)
    except FileNotFoundError:
        raise FileChanged from None
    try:
        _check_unchanged(opened, file)
        while block := await asyncio.to_thread(os.read, opened, BLOCK_BYTES):
            yield block
        _check_unchanged(opened, file)
    finally:
        os.close(opened)


def _check_unchanged(opened: int, file: SeenFile) -> None:
    about = os.fstat(opened)
    if (about.st_size, about.st_mtime_ns) != (file.bytes, file.modified):
        raise FileChanged


KIND = JobKind("add_files", add_files, time_limit_seconds=600, limit_renewed_by_stage=True, check_input=read_input)
