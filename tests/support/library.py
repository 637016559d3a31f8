"""The intake and the library of one installation, opened for a test, and the books that must always balance."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from octavo.core.types import new_id
from octavo.database import Database
from octavo.intake import Intake, IntakeLimits, NewUpload, Outcome
from octavo.jobs.kinds import sync_kinds
from octavo.library.sweep import ObjectSweep, delete_kept_objects
from octavo.pipeline import known_kinds
from octavo.storage import Bucket

LIMITS = IntakeLimits(upload_bytes=1 << 20, stored_bytes=None, concurrent=1000)


@dataclass(frozen=True, slots=True)
class Desk:
    """Where uploads are taken in."""

    database: Database
    bucket: Bucket
    intake: Intake

    async def new_owner(self) -> UUID:
        owner = new_id()
        await self.rows("INSERT INTO owners (id, kind) VALUES (%s, 'user') RETURNING id", owner)
        return owner

    async def add(self, owner: UUID, body: bytes, limits: IntakeLimits = LIMITS, **more: Any) -> Outcome:  # noqa: ANN401
        return await self.intake.take(owner, NewUpload("note.txt", "text/plain", **more), body, limits)

    async def rows(self, statement: str, *values: object) -> list[dict[str, Any]]:
        async with self.database.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement.encode(), values)
            return await cursor.fetchall() if cursor.description else []

    async def one(self, statement: str, *values: object) -> Any:  # noqa: ANN401
        (row,) = await self.rows(statement, *values)
        return next(iter(row.values()))

    async def check_books(self) -> None:
        """Every object has its row and every row its object, and what is counted is counted right."""
        kept = {
            row["key"]: row
            for row in await self.rows("SELECT key, bytes, encode(sha256, 'hex') AS sha256 FROM objects")
        }
        pending = await self.rows("SELECT object_key FROM uploads WHERE state = 'pending' AND object_key IS NOT NULL")
        stored = {info.key async for info in self.bucket.list()}
        assert stored == set(kept) | {row["object_key"] for row in pending}
        for key, row in kept.items():
            body = await self.bucket.read(key)
            assert (len(body), sha256(body).hexdigest()) == (row["bytes"], row["sha256"])
        held = "SELECT key FROM artifacts UNION ALL SELECT key FROM conversion_files UNION ALL SELECT key FROM archives"
        counted = f"SELECT o.key FROM objects o WHERE refs <> (SELECT count(*) FROM ({held}) AS f WHERE f.key = o.key)"
        assert await self.rows(counted) == []
        doubled = "SELECT owner_id, sha256 FROM uploads WHERE is_canonical GROUP BY 1, 2 HAVING count(*) > 1"
        assert await self.rows(doubled) == []


@asynccontextmanager
async def open_desk(connection_info: str, bucket: Bucket) -> AsyncGenerator[Desk]:
    async with Database(connection_info, connections=12) as database:
        async with database.transaction() as connection:
            await sync_kinds(connection, known_kinds())
        yield Desk(database, bucket, Intake(database, bucket, lambda _head, _name, _type: "text"))


async def sweep_objects(database: Database, bucket: Bucket, older_than_seconds: float) -> int:
    """The daily clean-up of objects without a row, in one go."""
    async with database.connection() as connection:
        removed = await delete_kept_objects(connection, bucket)
    sweep = ObjectSweep(database, bucket, older_than_seconds)
    while not sweep.has_ended:
        removed += await sweep.sweep_part()
    return removed
