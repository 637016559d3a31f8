"""Adds the files in an archive and the attachments of an email as documents, with one transaction for each.

Each added file is recorded in the stage `parts_added`, so a killed job resumes after the last file that was added.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import BinaryIO
from uuid import UUID

from octavo.choreography import Cause
from octavo.core.errors import BadInput, Defect
from octavo.core.formatting import count_of
from octavo.core.types import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.extracted import SourceType
from octavo.extract.formats.archive import Part, read_parts, unpack
from octavo.intake import Intake, IntakeLimits, NewUpload, Outcome
from octavo.intake.errors import QuotaExceeded
from octavo.intake.upload_rows import Upload, announced_upload, intake_limits
from octavo.jobs.job_run import Run
from octavo.pipeline.revision_files import RevisionFiles, SourceFile
from octavo.pipeline.tools import Tools
from octavo.sandbox import ENDED

QUERIES = load_queries("parts")
PARTS_ADDED = "parts_added"
WITH_PARTS = frozenset[str]({SourceType.ARCHIVE, SourceType.EML, SourceType.MSG})
# An archive in an archive is unpacked, but not one inside that.
DEEPEST = 2
SECONDS = 120


@dataclass(frozen=True, slots=True)
class PartsOf:
    """An archive or email whose files are added as documents."""

    document: UUID
    file: SourceFile
    source_type: str


async def add_parts(run: Run[Tools], files: RevisionFiles, whole: PartsOf) -> None:
    """Add the files in an archive or the attachments of an email as documents.

    Documents that already exist are not added again, even if the archive or email is reprocessed.
    """
    if whole.source_type not in WITH_PARTS or "" in await run.finished_parts(PARTS_ADDED):
        return
    left_out = await _add_parts(run, files, whole)

    async def work() -> JSON:
        return {"left_out": left_out}

    async def save(connection: Connection, made: JSON) -> None:
        del made
        await connection.execute(QUERIES.set_parts, {"document": whole.document, "left_out": left_out})

    await run.stage(PARTS_ADDED, work, save=save)


async def _add_parts(run: Run[Tools], files: RevisionFiles, whole: PartsOf) -> str | None:
    """Add the files of an archive or email as documents.

    Returns the reason why some files were left out. Returns None if all were added.
    """
    async with run.tools.database.connection() as connection:
        depth = await _one(connection, QUERIES.depth, {"document": whole.document, "most": DEEPEST})
        anonymous = await _one(connection, QUERIES.is_visitor, {"owner": run.job.owner_id})
        known = {
            row["number"]: row["sha256"]
            for row in await fetch_rows(connection, QUERIES.known_parts, {"document": whole.document})
        }
    if isinstance(depth, int) and depth >= DEEPEST:
        return "Archives and emails inside archives are unpacked only two levels deep."
    adding = _PartsIntake(run, whole.document, intake_limits(run.tools.settings, anonymous=bool(anonymous)), known)
    with tempfile.TemporaryFile() as unpacked:
        try:
            left_out = await _unpack(run, files, whole, adding.limits, unpacked)
            await adding.add_all(unpacked)
        except QuotaExceeded as error:
            return f"Not all files were added. {error.line}"
        except (BadInput, Defect, *ENDED) as error:
            return f"Not all files could be unpacked. {error.line}"
    return f"{count_of(left_out, 'file')} left out: encrypted, too large or too many." if left_out else None


async def _unpack(
    run: Run[Tools], files: RevisionFiles, whole: PartsOf, limits: IntakeLimits, unpacked: BinaryIO
) -> int:
    allowed = replace(run.tools.sandbox.limits, cpu_seconds=SECONDS, wall_seconds=SECONDS * 2)
    call = unpack.call(
        source_type=whole.source_type,
        filename=whole.file.filename,
        most=run.tools.settings.parts_most,
        most_bytes=limits.upload_bytes,
        most_total=allowed.output_bytes // 2,
    )
    async with files.local_copy(whole.file.key) as path:
        outcome = await run.tools.sandbox.run(call, input_file=path, output_file=unpacked, limits=allowed)
    return outcome.value if isinstance(outcome.value, int) else 0


@dataclass(frozen=True, slots=True)
class _PartsIntake:
    run: Run[Tools]
    document: UUID
    limits: IntakeLimits
    known: dict[int, str]

    async def add_all(self, unpacked: BinaryIO) -> None:
        unpacked.seek(0)
        parts = read_parts(unpacked)
        count = 0
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            digest = await asyncio.to_thread(sha256, part.content)
            if self.known.get(part.number) != digest.hexdigest():
                await self._add(part)
            count += 1
            await self.run.progress(count, None, "files", PARTS_ADDED)

    async def _add(self, part: Part) -> None:
        tools = self.run.tools
        intake = Intake(tools.database, tools.bucket, detect)
        new = NewUpload(part.name, part.content_type or "application/octet-stream")
        upload = announced_upload(self.run.job.owner_id, new)
        unused: list[str] = []

        async def work() -> JSON:
            stored = await tools.bucket.put(f"sources/{upload.id}/{upload.document_id}", part.content)
            return {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256}

        async def save(connection: Connection, made: JSON) -> None:
            owner = await self.run.current_owner(connection)
            outcome = await self._place(connection, intake, _received(upload, owner, made), part)
            unused[:] = [_key(made)] if outcome.duplicate_of or outcome.state == "deduplicated" else []

        await self._stage(part, work, save)
        await tools.bucket.delete(unused)

    async def _stage(
        self, part: Part, work: Callable[[], Awaitable[JSON]], save: Callable[[Connection, JSON], Awaitable[None]]
    ) -> None:
        await self.run.stage(PARTS_ADDED, work, part=str(part.number), save=save)

    async def _place(self, connection: Connection, intake: Intake, upload: Upload, part: Part) -> Outcome:
        kind = await asyncio.to_thread(detect, part.content[:HEAD_BYTES], upload.filename, upload.content_type)
        placed = await intake.place(connection, upload, kind, self.limits, fresh=True, cause=Cause.PART_STORED)
        if placed is None:
            raise AssertionError("no other request knows this upload")
        values = {"parent": self.document, "number": part.number, "name": part.name, "document": placed.document_id}
        await connection.execute(QUERIES.add_part, values)
        return placed


def _received(upload: Upload, owner: UUID, made: JSON) -> Upload:
    if not isinstance(made, dict):
        raise TypeError("this stage returns what it stored")
    key, size, digest = made["key"], made["bytes"], made["sha256"]
    return replace(upload, owner_id=owner, object_key=str(key), bytes=int(str(size)), sha256=str(digest))


def _key(made: JSON) -> str:
    return str(made["key"]) if isinstance(made, dict) else ""


async def _one(connection: Connection, query: bytes, values: dict[str, object]) -> object:
    row = await (await connection.execute(query, values)).fetchone()
    return row[0] if row else None
