"""Reads conversions: status, values, files, revisions and costs. Deletes them when they expire."""

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
from octavo.core.pagination import Page, make_cursor, read_cursor
from octavo.database import Connection, Database, load_queries
from octavo.library.errors import NeverReady, NotReady
from octavo.storage import Bucket

QUERIES = load_queries("conversions")
EXPIRY_BATCH = 500
KIND = "convert"


@dataclass(frozen=True, slots=True)
class StoredConversion:
    """A conversion as stored. `record` is the JSON of its current revision."""

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
    record: str | None

    @property
    def complete_record(self) -> bytes:
        """The JSON of the values. Raises an error if the conversion is not complete or has expired."""
        if self.archived_at:
            raise Expired
        if self.status != "complete" or self.record is None:
            raise NeverReady if self.error_code else NotReady
        return self.record.encode()


@dataclass(frozen=True, slots=True)
class ConfidenceSummary:
    """Counts of values, unverified values, missing required fields and failed checks, and the lowest confidence.

    A value that a person entered or accepted counts as verified, even if the document does not contain it.
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

    `user_id` and `person` are the id and the email address of the person who made the correction.
    """

    number: int
    made_by: str
    user_id: UUID | None
    person: str | None
    created_at: datetime
    record: str


async def show_conversion(connection: Connection, owner: UUID, conversion: UUID) -> StoredConversion:
    """Read a conversion. Raises `NotFound` if it does not exist or belongs to another owner."""
    async with connection.cursor(row_factory=class_row(StoredConversion)) as cursor:
        await cursor.execute(QUERIES.show, {"owner": owner, "id": conversion})
        found = await cursor.fetchone()
    if found is None:
        raise NotFound
    return found


async def list_conversions(
    connection: Connection, owner: UUID, *, status: str | None, cursor: str | None, limit: int
) -> Page[StoredConversion]:
    """List conversions, newest first, without values."""
    before = read_cursor(cursor)[1] if cursor else None
    async with connection.cursor(row_factory=class_row(StoredConversion)) as rows:
        await rows.execute(QUERIES.page, {"owner": owner, "status": status, "before": before, "limit": limit + 1})
        found = await rows.fetchall()
    more = len(found) > limit
    items = found[:limit]
    return Page(items, make_cursor(items[-1].created_at, items[-1].id) if more else None)


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
    """Count a download and record its event. `expire_now`: delete the result after its first download."""
    await connection.execute(QUERIES.count_download, {"id": conversion, "expire_now": expire_now})


async def list_revisions(connection: Connection, owner: UUID, conversion: UUID) -> list[Revision]:
    await show_conversion(connection, owner, conversion)
    async with connection.cursor(row_factory=class_row(Revision)) as cursor:
        await cursor.execute(QUERIES.revisions, {"owner": owner, "id": conversion})
        return await cursor.fetchall()


async def training_samples(connection: Connection, owner: UUID) -> list[dict[str, Any]]:
    """The values before and after correction, for every conversion that a person corrected."""
    rows = await (await connection.execute(QUERIES.corrected, {"owner": owner})).fetchall()
    return [
        {
            "conversion": str(conversion),
            "mapping": mapping,
            "sha256": sha256,
            "found": json.loads(found)["values"],
            "corrected": json.loads(corrected)["values"],
        }
        for conversion, mapping, sha256, found, corrected in rows
    ]


async def model_checks(connection: Connection, owner: UUID) -> list[dict[str, Any]]:
    """All model calls for conversions: their answers, and the values that were accepted after verification."""
    rows = await (await connection.execute(QUERIES.model_checks, {"owner": owner})).fetchall()
    return [_model_check(*row) for row in rows]


def _model_check(conversion: UUID, mapping: str, sha256: str, at: datetime, record: str) -> dict[str, Any]:
    read = json.loads(record)
    # The rules found no value for these fields, so their values are the model's answers in canonical form.
    accepted = {name: value for name, value, *_ in read["values"]}
    answers = [{**one, "accepted": accepted.get(one["name"])} for one in read["model"]["said"]]
    named = {"conversion": str(conversion), "mapping": mapping, "sha256": sha256, "at": at.isoformat()}
    return {**named, **read["model"], "said": answers}


async def expire_conversions(database: Database, bucket: Bucket) -> int:
    """Delete expired results and sources in batches. The conversion itself is kept as archived.

    Each batch changes its rows and records the events in one transaction, then deletes the objects that are no longer
    used.
    """
    return await _expire(database, bucket, QUERIES.expire_results) + await _expire(
        database, bucket, QUERIES.expire_sources
    )


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
