"""Job kind that adds files from a source once they have stopped changing, with one transaction for each file.

The transaction that creates a document also records the file as added, so a killed job continues with the next file and
adds no file twice. Files go through the same intake as uploads.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from octavo.core.errors import BadInput, NetworkFailed, OctavoError, StorageFailed, TimedOut
from octavo.core.types import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.extract.detect import detect
from octavo.intake import Intake, IntakeLimits, NewUpload, Outcome
from octavo.intake.errors import BadSource, QuotaExceeded, SourceRefused
from octavo.intake.sources.reading import FileChanged, Reader, ReadFile, SeenFile, Source
from octavo.intake.sources.watching import open_reader
from octavo.intake.upload_rows import intake_limits, with_details
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.library.changes import Edit, edit_documents
from octavo.pipeline.tools import Tools

QUERIES = load_queries("sources")
BATCH = 100
QUOTA_SECONDS = 600
# Errors that persist until somebody changes the file. After any other error, the job is retried.
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


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file to add. If `document` is set, the file becomes a new version of this document."""

    seen: SeenFile
    seen_at: datetime
    document: UUID | None


async def add_files(run: Run[Tools]) -> JSON:
    async with run.tools.database.connection() as connection:
        rows = await fetch_rows(connection, QUERIES.source_of_job, {"id": read_input(run.input).source})
    if not rows:  # deleted or paused
        return {"files": 0}
    source = Source.of(rows[0])
    intake = Intake(run.tools.database, run.tools.bucket, detect)
    limits = intake_limits(run.tools.settings, anonymous=False)
    async with aclosing(open_reader(run.tools.connections, source)) as reader:
        return {"files": await SourceIntake(run, source, reader, intake, limits).add_all()}


@dataclass(frozen=True, slots=True)
class SourceIntake:
    """Adds the waiting files of one source."""

    run: Run[Tools]
    source: Source
    reader: Reader
    intake: Intake
    limits: IntakeLimits

    async def add_all(self) -> int:
        """Add files until none is left, the quota is used up, or the source is paused. Each file is tried once.

        Files that cannot be read do not delay the others; the first of their errors is raised at the end.
        """
        tried, unread, last = 0, list[OctavoError](), None
        while waiting := await self._waiting(last):
            for last in waiting:
                tried += 1
                if problem := await self._try(last):
                    if isinstance(problem, _Stop):
                        return tried
                    unread.append(problem)
                    if len(unread) >= MOST_UNREAD:
                        raise unread[0]
                await self.run.progress(tried, None, "files")
        if self.source.options.after != "keep":
            await self._execute(QUERIES.look_again, {"source": self.source.id})
        if unread:
            raise unread[0]
        return tried

    async def _try(self, file: WaitingFile) -> OctavoError | None:
        """Add one file. Returns an error if the file should be tried again, and `_Stop` if no more files can be added.

        Otherwise, returns None.
        """
        try:
            return None if await self._add(file) else _Stop()
        except OSError as error:
            return StorageFailed(f"{file.seen.path}: {error.strerror}.")
        except (NetworkFailed, TimedOut, StorageFailed) as error:
            return error

    async def _waiting(self, after: WaitingFile | None) -> list[WaitingFile]:
        values = {"source": self.source.id, "settle": self.reader.settle_seconds, "most": BATCH}
        values |= {"after_at": after and after.seen_at, "after_path": after and after.seen.path}
        async with self.run.tools.database.connection() as connection:
            rows = await fetch_rows(connection, QUERIES.settled_files, values)
        return [
            WaitingFile(
                SeenFile(row["path"], row["bytes"], row["modified"], row["etag"]), row["seen_at"], row["document"]
            )
            for row in rows
        ]

    async def _add(self, file: WaitingFile) -> bool:
        """Add one file. Returns False if no more files can be added."""
        try:
            read = await self._announce(file)
            if read is None:
                return False
            record = partial(self._record, file, read.upload)
            await self.intake.take(self.source.owner_id, read.upload, read.body, self.limits, on_created=record)
        except FileChanged:
            pass
        except QuotaExceeded as error:
            values = {"source": self.source.id, "error": error.line, "seconds": QUOTA_SECONDS}
            await self._execute(QUERIES.postpone_source, values)
            return False
        except (SourceRefused, BadSource):  # a problem of the source, not of this file
            raise
        except BadInput as error:
            await self._fail(file, error.line)
        except OSError as error:
            if error.errno not in LASTING:
                raise
            await self._fail(file, f"The file cannot be read: {error.strerror}.")
        return True

    async def _announce(self, file: WaitingFile) -> ReadFile | None:
        """Start reading a file. Returns None if the source was paused or deleted."""
        document = file.document if self.reader.makes_versions and self.source.options.changed == "version" else None
        async with self.run.tools.database.connection() as connection:
            values = {"source": self.source.id, "document": document}
            rows = await fetch_rows(connection, QUERIES.active_source, values)
        if not rows:
            return None
        read = await self.reader.read(file.seen)
        # The files of a job are one import, so that they never delay documents that a person adds.
        upload = with_details(read.upload, **{"import": str(self.run.job.id)})
        return replace(read, upload=replace(upload, version_of=rows[0]["document"]))

    async def _record(self, file: WaitingFile, new: NewUpload, connection: Connection, outcome: Outcome) -> None:
        """Record the file as added, in the transaction that creates its document."""
        place = self._place(file)
        if not await self.run.holds_lease(connection) or not await fetch_rows(connection, QUERIES.take_file, place):
            raise FileChanged
        is_new = outcome.state == "uploaded"
        own = is_new or new.version_of is not None  # and not a document that another file created
        values = {"state": "added" if is_new else "known", "document": outcome.document_id, "error": None}
        await connection.execute(QUERIES.set_file, place | values | {"versioned": own and self.reader.makes_versions})
        await self.run.note_progress(connection)
        edit = edit_of(self.source, self.reader.parents(file.seen))
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


class _Stop(OctavoError):
    """No more files can be added now."""


def edit_of(source: Source, parents: Sequence[str]) -> Edit | None:
    """Return the edit that sets the collection or adds the tags of a file in a subfolder.

    Returns None if the file is not in a subfolder, or if the source does not use subfolders as collections or tags.
    """
    if not parents or source.options.subfolders not in {"collections", "tags"}:
        return None
    return (
        Edit(collection=parents[0]) if source.options.subfolders == "collections" else Edit(added_tags=tuple(parents))
    )


KIND = JobKind("add_files", add_files, time_limit_seconds=600, limit_renewed_by_stage=True, check_input=read_input)
