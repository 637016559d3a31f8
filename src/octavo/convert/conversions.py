"""Reads conversions (status, values, files, revisions and costs), and deletes them on request or when they expire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import class_row

from octavo.convert.errors import Expired
from octavo.core.errors import NotFound
from octavo.core.http import Page, make_cursor, read_cursor
from octavo.core.types import RESTING, JobStatus
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.jobs.queue import cancel_jobs
from octavo.library.errors import NeverReady, NotReady
from octavo.records.conversions import NEEDS_REVIEW
from octavo.storage import Bucket

QUERIES = load_queries("conversions")
OWNER_LOCK = load_queries("documents")
EXPIRY_BATCH = 500
RECENT_HOURS = 24
KIND = "convert"


@dataclass(frozen=True, slots=True)
class StoredConversion:
    """A conversion as it is stored in the database. `record` is the JSON of its current revision."""

    id: UUID
    document_id: UUID | None
    filename: str
    mapping: str
    status: str
    error_code: str | None
    error_message: str | None
    revision: int
    sha256: str | None
    bytes: int | None
    download_count: int
    first_downloaded_at: datetime | None
    archived_at: datetime | None
    created_at: datetime
    needs_review: bool
    batch_id: UUID | None
    source_expires_at: datetime | None
    result_expires_at: datetime | None
    record: str | None

    @property
    def state(self) -> str:
        """The status shown to callers.

        It is `needs_review` if the conversion is complete but should be reviewed, and otherwise the status of the job.
        """
        return NEEDS_REVIEW if self.status == JobStatus.COMPLETE and self.needs_review else self.status

    @property
    def complete_record(self) -> bytes:
        """The JSON of the values. Raises an error if the conversion is not complete or its result has expired."""
        if self.archived_at:
            raise Expired
        if self.status != "complete" or self.record is None:
            raise NeverReady if self.error_code else NotReady
        return self.record.encode()


@dataclass(frozen=True, slots=True)
class ConfidenceSummary:
    """Shows how reliable the values of a conversion are.

    `found` counts all values, `unverified` the values that need review, `missing` the required fields without a value,
    and `broken` the failed checks. `least` is the lowest measured confidence of a value. It is None if no confidence
    was measured.
    """

    id: UUID
    found: int
    unverified: int
    least: float | None
    missing: int
    broken: int


class ModelCost(NamedTuple):
    """The cost of all model calls for a conversion.

    `calls` is 0 if no call was needed or an earlier answer was reused.
    """

    calls: int
    tokens: int
    cost_usd: float


class ResultFile(NamedTuple):
    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of a conversion. `record` is the JSON of its values.

    `user_id` and `person` are the id and name of the person who made the correction. `changes` is the JSON of that
    person's changes, or None if the rules made the revision.
    """

    number: int
    made_by: str
    user_id: UUID | None
    person: str | None
    created_at: datetime
    record: str
    changes: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A group of conversions that were requested together.

    `total` is the number of conversions queued so far, and `ended` is how many of them have ended. `existing` counts
    documents that had already been converted, and `skipped` counts documents that are not PDFs. `listed` is true once
    all documents of the batch are included in these counts.
    """

    id: UUID
    mapping: str
    total: int
    ended: int
    existing: int
    skipped: int
    listed: bool
    created_at: datetime
    completed_at: datetime | None
    needs_review: int
    failed: int


async def show_conversion(connection: Connection, owner: UUID, conversion: UUID) -> StoredConversion:
    """Return a conversion. Raises `NotFound` if it does not exist or belongs to another account."""
    async with connection.cursor(row_factory=class_row(StoredConversion)) as cursor:
        await cursor.execute(QUERIES.show, {"owner": owner, "id": conversion})
        found = await cursor.fetchone()
    if found is None:
        raise NotFound
    return found


async def list_conversions(
    connection: Connection,
    owner: UUID,
    *,
    status: str | None,
    cursor: str | None,
    limit: int,
    id_part: str | None = None,
    batch: UUID | None = None,
    document: UUID | None = None,
) -> Page[StoredConversion]:
    """List conversions, newest first, without their values. `id_part` is the beginning or end of an id."""
    before = read_cursor(cursor)[1] if cursor else None
    values = {"owner": owner, "status": status, "batch": batch, "document": document, "before": before}
    values["id_part"] = id_part.lower() if id_part else None
    async with connection.cursor(row_factory=class_row(StoredConversion)) as rows:
        await rows.execute(QUERIES.page, values | {"limit": limit + 1})
        found = await rows.fetchall()
    more = len(found) > limit
    items = found[:limit]
    return Page(items, make_cursor(items[-1].created_at, items[-1].id) if more else None)


async def count_states(connection: Connection, owner: UUID) -> dict[str, int]:
    """Count an account's conversions: in total, running, complete, failed, and in need of review."""
    return (await fetch_rows(connection, QUERIES.count_states, {"owner": owner}))[0]


async def list_batches(connection: Connection, owner: UUID, batch: UUID | None = None) -> list[Batch]:
    """Return the batches that are running or that ended within the last day, newest first.

    If `batch` is given, return only that batch, even if it ended earlier.
    """
    values = {"owner": owner, "id": batch, "recent": RECENT_HOURS}
    async with connection.cursor(row_factory=class_row(Batch)) as rows:
        await rows.execute(QUERIES.batches, values)
        return await rows.fetchall()


async def summarise_confidence(
    connection: Connection, owner: UUID, conversions: Sequence[UUID]
) -> dict[UUID, ConfidenceSummary]:
    """Summarise the confidence of each conversion that has values. The result maps conversion ids to summaries."""
    async with connection.cursor(row_factory=class_row(ConfidenceSummary)) as rows:
        await rows.execute(QUERIES.confidence_summaries, {"owner": owner, "ids": list(conversions)})
        return {one.id: one for one in await rows.fetchall()}


async def show_model_cost(connection: Connection, owner: UUID, conversion: UUID) -> ModelCost:
    row = await (await connection.execute(QUERIES.model_cost, {"owner": owner, "id": conversion})).fetchone()
    return ModelCost(*row) if row else ModelCost(0, 0, 0.0)


async def find_result(connection: Connection, owner: UUID, conversion: UUID, kind: str = "result_xml") -> ResultFile:
    row = await (await connection.execute(QUERIES.file, {"owner": owner, "id": conversion, "kind": kind})).fetchone()
    if row is None:
        raise Expired
    return ResultFile(*row)


async def count_download(connection: Connection, conversion: UUID, *, expire_now: bool) -> None:
    """Count a download and record an event for it. If `expire_now` is true, the result expires immediately."""
    await connection.execute(QUERIES.count_download, {"id": conversion, "expire_now": expire_now})


async def list_revisions(connection: Connection, owner: UUID, conversion: UUID) -> list[Revision]:
    await show_conversion(connection, owner, conversion)
    async with connection.cursor(row_factory=class_row(Revision)) as cursor:
        await cursor.execute(QUERIES.revisions, {"owner": owner, "id": conversion})
        return await cursor.fetchall()


async def export_conversions(
    connection: Connection, owner: UUID, document: UUID, *, cursor: str | None, limit: int
) -> Page[dict[str, Any]]:
    """Return the conversions of a document, each with the values, changes, author and time of every revision."""
    page = await list_conversions(connection, owner, status=None, cursor=cursor, limit=limit, document=document)
    items: list[dict[str, Any]] = []
    for one in page.items:
        revisions = [
            {
                "number": made.number,
                "made_by": made.made_by,
                "person": made.person,
                "at": made.created_at,
                "changes": json.loads(made.changes) if made.changes else None,
                "record": json.loads(made.record),
            }
            for made in await list_revisions(connection, owner, one.id)
        ]
        named = {"id": one.id, "mapping": one.mapping, "status": one.state, "created_at": one.created_at}
        items.append({**named, "revisions": revisions, "history": await kept_history(connection, owner, one.id)})
    return Page(items, page.next_cursor)


async def training_samples(connection: Connection, owner: UUID) -> list[dict[str, Any]]:
    """Return a training sample for every corrected conversion: its values before and after correction, and all changes.

    Samples are kept longer than their conversions.
    """
    return [
        {
            "conversion": str(row["conversion_id"]),
            "document": str(row["document_id"]) if row["document_id"] else None,
            "mapping": row["mapping"],
            "sha256": row["sha256"],
            "found": json.loads(row["found"])["values"],
            "corrected": json.loads(row["corrected"])["values"],
            "history": json.loads(row["history"]),
            "kept_until": row["expires_at"].isoformat(),
        }
        for row in await fetch_rows(connection, QUERIES.corrected, {"owner": owner})
    ]


async def kept_history(connection: Connection, owner: UUID, conversion: UUID) -> list[dict[str, Any]]:
    """Return all corrections of a conversion, oldest first.

    Includes corrections that were carried over from an earlier conversion of the same content.
    """
    row = await (await connection.execute(QUERIES.kept_history, {"owner": owner, "id": conversion})).fetchone()
    return json.loads(row[0]) if row else []


async def model_checks(connection: Connection, owner: UUID) -> list[dict[str, Any]]:
    """List the model calls that were made to find missing values of conversions.

    Each answer is listed with the value that was accepted, if any.
    """
    rows = await (await connection.execute(QUERIES.model_checks, {"owner": owner})).fetchall()
    return [_model_check(*row) for row in rows]


def _model_check(conversion: UUID, mapping: str, sha256: str, at: datetime, record: str) -> dict[str, Any]:
    read = json.loads(record)
    # The rules found no value for these fields, so the values are the model's answers in canonical form.
    accepted = {name: value for name, value, *_ in read["values"]}
    answers = [{**one, "accepted": accepted.get(one["name"])} for one in read["model"]["said"]]
    named = {"conversion": str(conversion), "mapping": mapping, "sha256": sha256, "at": at.isoformat()}
    return {**named, **read["model"], "said": answers}


async def delete_conversion(connection: Connection, owner: UUID, conversion: UUID) -> list[str]:
    """Delete a conversion, its values and its corrections.

    Returns the storage keys of objects that are no longer used. The caller must delete these objects afterwards.
    """
    await connection.execute(OWNER_LOCK.hold_owner, {"owner": owner})
    found = await show_conversion(connection, owner, conversion)
    if found.status not in RESTING:
        await cancel_jobs(connection, owner, [conversion])
    row = await (await connection.execute(QUERIES.delete, {"owner": owner, "id": conversion})).fetchone()
    if row is None:
        raise NotFound
    await connection.execute(QUERIES.delete_unused_texts, {"owner": owner})
    unused = await (await connection.execute(QUERIES.delete_unused_objects, {"keys": row[0]})).fetchall()
    return [key for (key,) in unused]


async def expire_conversions(database: Database, bucket: Bucket) -> int:
    """Delete expired results, source files and corrections in batches.

    The conversions themselves are kept and marked as archived. For each batch, the rows are updated and the events
    recorded in one transaction. Then the stored objects that are no longer used are deleted.
    """
    queries = (QUERIES.expire_results, QUERIES.expire_sources, QUERIES.expire_corrections)
    return sum([await _expire(database, bucket, query) for query in queries])


async def _expire(database: Database, bucket: Bucket, query: bytes) -> int:
    expired = 0
    while True:
        async with database.transaction() as connection:
            row = await (await connection.execute(query, {"most": EXPIRY_BATCH})).fetchone()
            count, keys = row or (0, [])
            cursor = await connection.execute(QUERIES.delete_unused_objects, {"keys": keys})
            unused = [key for (key,) in await cursor.fetchall()]
        await bucket.delete(unused)
        expired += count
        if count < EXPIRY_BATCH:
            return expired
