"""Applies an action to many documents, and undoes earlier changes.

Documents are changed in batches. Each batch is one transaction with its events, so an action on 10,000 documents never
locks all of them. If a batch fails, the documents of earlier batches stay changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

import psycopg

from octavo.core.errors import NotFound, OctavoError
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.facts.sheet import NAMES
from octavo.library.changes import lock_documents, record_event, restore_documents
from octavo.library.documents import Filters, select_documents
from octavo.library.facts import compose_titles
from octavo.storage import Bucket

QUERIES = load_queries("changes")
BATCH_DOCUMENTS = 500
KEPT_DAYS = 7
MOST_SELECTED = 50_000
# The maximum number of documents in one transaction. Events are delivered only after all transactions that began before
# them, so a transaction must be short.
MOST_TOGETHER = 10_000
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Chosen:
    """The documents to act on, selected by their ids or by filters."""

    ids: frozenset[UUID]
    filters: Filters | None

    @property
    def by_filter(self) -> bool:
        return self.filters is not None

    async def select(self, database: Database, owner: UUID, most: int = MOST_SELECTED) -> list[UUID]:
        """Return the ids of the selected documents.

        If they are selected by a filter, documents that start to match it later are not included.
        """
        if self.filters is None:
            return sorted(self.ids)
        async with database.connection() as connection:
            return sorted(await select_documents(connection, owner, self.filters, most))


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The number of documents that were changed, and the keys of objects to delete after the commit."""

    changed: int
    unused: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The result of all batches. If a batch failed, `error` is its error, and the batches after it were not tried."""

    changed: int
    error: OctavoError | None = None


Act: TypeAlias = Callable[[Connection, Sequence[UUID]], Awaitable[BatchResult]]
# Called in the transaction, with the number of documents that were changed.
OnChanged: TypeAlias = Callable[[Connection, int], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class BulkAction:
    """An action on many documents of an owner.

    If `trashed` is true, the documents must be in the trash. If it is false, they must not be. None allows both. If
    `skips` is true, documents that were deleted after they were selected are skipped. If the callback `on_changed` is
    set, all documents are changed in a single batch.
    """

    database: Database
    bucket: Bucket
    owner: UUID
    act: Act
    trashed: bool | None = field(default=False, kw_only=True)
    skips: bool = field(default=False, kw_only=True)
    on_changed: OnChanged | None = field(default=None, kw_only=True)

    async def run(self, documents: Collection[UUID]) -> BulkResult:
        """Apply the action to these documents, in batches.

        If a batch fails before any document was changed, its error is raised. Otherwise, the result contains the error.
        """
        changed = 0
        wanted = sorted(documents)
        for batch in [wanted] if self.on_changed else in_batches(wanted):
            try:
                done = await self._run(batch)
            except OctavoError as error:
                if not changed:
                    raise
                return BulkResult(changed, error)
            await self.bucket.delete(done.unused)
            changed += done.changed
        return BulkResult(changed)

    async def _run(self, batch: Sequence[UUID]) -> BatchResult:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self.database.transaction() as connection:
                    wanted = await self._wanted(connection, batch)
                    done = await self.act(connection, wanted) if wanted else BatchResult(0)
                    if self.on_changed:
                        await self.on_changed(connection, done.changed)
                    return done
            except NotFound:  # a document was deleted after the check
                if not self.skips or attempt == ATTEMPTS:
                    raise
            except psycopg.errors.DeadlockDetected:
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _wanted(self, connection: Connection, batch: Sequence[UUID]) -> Sequence[UUID]:
        return await find_present(connection, self.owner, batch, trashed=self.trashed) if self.skips else batch


async def find_present(
    connection: Connection, owner: UUID, documents: Sequence[UUID], *, trashed: bool | None = False
) -> list[UUID]:
    """Return which of these documents exist.

    If `trashed` is true, they must be in the trash. If it is false, they must not be. None allows both.
    """
    values = {"owner": owner, "documents": list(documents), "trashed": trashed}
    return [row["id"] for row in await fetch_rows(connection, QUERIES.present, values)]


def in_batches(documents: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    return (documents[begin : begin + BATCH_DOCUMENTS] for begin in range(0, len(documents), BATCH_DOCUMENTS))


# Undoing ------------------------------------------------------------------------------------------------------------


async def undo_change(database: Database, owner: UUID, change: UUID) -> int:
    """Restore the values that documents had before a change. Returns the number of restored documents.

    A value that was changed again in the meantime is not restored. Documents for which the change has already been
    undone are skipped, so the call can be repeated. Raises `NotFound` if there is no such change, or if it is too old.
    """
    async with database.connection() as connection:
        rows = await fetch_rows(connection, QUERIES.changed_documents, {"owner": owner, "change": change})
    if not rows:
        raise NotFound
    undo = _restore_deleted if rows[0]["action"] == "delete" else _restore_values
    left = [row["document_id"] for row in rows if not row["undone"]]
    restored = 0
    for batch in in_batches(left):
        async with database.transaction() as connection:
            restored += await undo(connection, owner, change, batch)
    return restored


async def _restore_deleted(connection: Connection, owner: UUID, change: UUID, documents: Sequence[UUID]) -> int:
    """Restore documents that are still in the trash."""
    trashed = await find_present(connection, owner, documents, trashed=True)
    undone = await _mark_undone(connection, change, trashed)
    return await restore_documents(connection, owner, undone)


async def _restore_values(connection: Connection, owner: UUID, change: UUID, documents: Sequence[UUID]) -> int:
    """Restore the earlier values of the fields that the change edited, including those of documents in the trash."""
    present = await find_present(connection, owner, documents, trashed=None)
    held = await lock_documents(connection, owner, present, trashed=None)
    undone = await _mark_undone(connection, change, [one.id for one in held])
    values = {"change": change, "documents": undone}
    facts = (QUERIES.undo_said, QUERIES.undo_facts, QUERIES.follow_undone)
    for query in (*facts, QUERIES.undo_tags, QUERIES.undo_custom, QUERIES.undo_fields):
        await connection.execute(query, values)
    await compose_titles(connection, undone, NAMES)
    await record_event(connection, "edited", undone, {"undo": True})
    return len(undone)


async def _mark_undone(connection: Connection, change: UUID, documents: Iterable[UUID]) -> list[UUID]:
    rows = await fetch_rows(connection, QUERIES.mark_undone, {"change": change, "documents": list(documents)})
    return [row["document_id"] for row in rows]


async def forget_changes(database: Database, days: int = KEPT_DAYS) -> int:
    """Delete the records of changes that are older than `days` days. These changes can no longer be undone."""
    async with database.transaction() as connection:
        return (await connection.execute(QUERIES.forget_changes, {"days": days})).rowcount
