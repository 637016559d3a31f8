"""Job kind that adds the files of a source which have stopped changing, each in one transaction.

The transaction that creates a document also records the file as added, so a killed job continues with the next file
and adds none twice. Files go through the same intake as uploads.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from octavo.core.errors import BadInput, StorageFailed
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
# Errors of a file that stay until somebody changes the file. After any other error, the job is retried.
LASTING = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG})
# The job ends after so many files that could not be read, because then the folder itself has a problem.
MOST_UNREAD = 10


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
    """A file to add. `document` is the document of which it becomes a new version."""

    seen: SeenFile
    seen_at: datetime
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
        """Add files until none is left, the quota is used up, or the source is paused. Each file is tried once.

        Files that could not be read do not delay the others. Raises the first of their errors at the end.
        """
        tried, unread, last = 0, list[str](), None
        while waiting := await self._waiting(last):
            for last in waiting:
                tried += 1
                try:
                    if not await self._add(last):
                        return tried
                except OSError as error:
                    unread.append(f"{last.seen.path}: {error.strerror}.")
                    if len(unread) >= MOST_UNREAD:
                        raise StorageFailed(unread[0]) from error
                await self.run.progress(tried, None, "files")
        if unread:
            raise StorageFailed(unread[0])
        return tried

    async def _waiting(self, after: WaitingFile | None) -> list[WaitingFile]:
        values = {"source": self.source.id, "settle": SETTLE_SECONDS, "most": BATCH}
        values |= {"after_at": after and after.seen_at, "after_path": after and after.seen.path}
        async with self.run.tools.database.connection() as connection:
            rows = await fetch_rows(connection, QUERIES.settled_files, values)
        return [
            WaitingFile(SeenFile(row["path"], row["bytes"], row["modified"]), row["seen_at"], row["document"])
            for row in rows
        ]

    async def _add(self, file: WaitingFile) -> bool:
        """Add one file. Returns False if no more files can be added."""
        new = await self._announce(file)
        if new is None:
            return False
        try:
            body, record = read_file(self.source, file.seen), partial(self._record, file, new)
            await self.intake.take(self.source.owner_id, new, body, self.limits, on_created=record)
        except FileChanged:
            pass
        except QuotaExceeded as error:
            values = {"source": self.source.id, "error": error.line, "seconds": QUOTA_SECONDS}
            await self._execute(QUERIES.postpone_source, values)
            return False
        except BadInput as error:
            await self._fail(file, error.line)
        except OSError as error:
            if error.errno not in LASTING:
                raise
            await self._fail(file, f"The file cannot be read: {error.strerror}.")
        return True

    async def _announce(self, file: WaitingFile) -> NewUpload | None:
        """Describe the upload. Returns None if the source was paused or deleted."""
        document = file.document if self._makes_versions and self.source.options.changed == "version" else None
        async with self.run.tools.database.connection() as connection:
            values = {"source": self.source.id, "document": document}
            rows = await fetch_rows(connection, QUERIES.active_source, values)
        # The files of a job are one import, so that they never delay what a person adds.
        given: dict[str, JSON] = {"import": str(self.run.job.id)}
        name = PurePosixPath(file.seen.path).name
        return NewUpload(name, bytes=file.seen.bytes, given=given, version_of=rows[0]["document"]) if rows else None

    @property
    def _makes_versions(self) -> bool:
        """If added files are moved, a file with the same name is a new one."""
        return self.source.options.after != "move"

    async def _record(self, file: WaitingFile, new: NewUpload, connection: Connection, outcome: Outcome) -> None:
        """Record the file as added, in the transaction that creates its document."""
        place = self._place(file)
        if not await self.run.holds_lease(connection) or not await fetch_rows(connection, QUERIES.take_file, place):
            raise FileChanged
        is_new = outcome.state == "uploaded"
        own = is_new or new.version_of is not None  # and not a document that another file created
        values = {"state": "added" if is_new else "known", "document": outcome.document_id, "error": None}
        await connection.execute(QUERIES.set_file, place | values | {"versioned": own and self._makes_versions})
        edit = edit_of(self.source, file.seen.path)
        if is_new and edit and new.version_of is None:
            await edit_documents(connection, self.source.owner_id, [outcome.document_id], edit)

    async def _fail(self, file: WaitingFile, error: str) -> None:
        values = {"state": "failed", "document": None, "versioned": None, "error": error}
        await self._execute(QUERIES.set_file, self._place(file) | values)

    def _place(self, file: WaitingFile) -> dict[str, Any]:
        return {"source": self.source.id, **asdict(file.seen)}

    async def _execute(self, query: bytes, values: dict[str, Any]) -> None:
        async with self.run.tools.database.transaction() as connection:
            if await self.run.holds_lease(connection):
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
    except (FileNotFoundError, NotADirectoryError):
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
