"""Versions of a document, and the changes between two versions in text, fields and connections.

A new version has different bytes. A new revision is the result of processing the same bytes again.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import UUID

from octavo.core.errors import NotFound
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.library.differences import Change, compare
from octavo.library.documents import show_document
from octavo.library.errors import NothingBefore, TooLongToCompare
from octavo.records.documents import (
    Comparison,
    Document,
    FieldChange,
    OtherConnection,
    Part,
    Side,
    Span,
    TextChange,
    Version,
)
from octavo.storage import Bucket

QUERIES = load_queries("versions")
Value: TypeAlias = str | int | list[str] | None
# Text of more than ten thousand pages.
MOST_BYTES = 32 << 20
MOST_CHANGES = 500
MOST_CHARACTERS = 1_000_000
MOST_CONNECTIONS = 200
FIELDS = (
    *("title", "author", "document_date", "language", "summary", "tags", "collection", "quality"),
    *("page_count", "word_count", "filename", "source_type", "bytes"),
)


@dataclass(frozen=True, slots=True)
class DocumentRevision:
    """A document to compare, and the number of its revision. None means the current revision."""

    document: UUID
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class _LoadedSide:
    """One of the two documents that are compared, with its text and fields.

    `sheets` contains the start offset and the number of each page.
    """

    document: Document
    revision: int
    key: str | None
    sheets: list[tuple[int, int]]

    @property
    def side(self) -> Side:
        return Side(self.document.id, self.document.title, self.document.version, self.revision)

    def span(self, start: int, end: int) -> Span:
        place = bisect_right(self.sheets, start, key=lambda sheet: sheet[0])
        return Span(start, end, self.sheets[place - 1][1] if place else None)


async def list_versions(connection: Connection, owner: UUID, document: UUID) -> list[Version]:
    """List the versions of a document, newest first. Versions in the trash are left out."""
    rows = await fetch_rows(connection, QUERIES.versions, {"owner": owner, "document": document})
    if not rows:
        raise NotFound
    return [Version(**row) for row in rows]


async def compare_documents(
    database: Database, bucket: Bucket, owner: UUID, old: DocumentRevision | None, new: DocumentRevision
) -> Comparison:
    """Compare two documents of an account. Returns the changes from `old` to `new`.

    If `old` is None, `new` is compared with its previous version or, if it is the first version, with its previous
    revision.
    """
    async with database.connection() as connection:
        old = old or await _find_before(connection, owner, new)
        before, after = await _open(connection, owner, old), await _open(connection, owner, new)
        values = {"owner": owner, "old": old.document, "new": new.document, "most": MOST_CONNECTIONS}
        # Connections of earlier revisions are not kept.
        others = await fetch_rows(connection, QUERIES.other_connections, values) if old.document != new.document else []
    changes: list[Change] | None = None
    if before.key and after.key:
        texts = [(await bucket.read(key, limit=MOST_BYTES)).decode() for key in (before.key, after.key)]
        changes = await asyncio.to_thread(compare, *texts)
    return Comparison(
        old=before.side,
        new=after.side,
        fields=compare_fields(before.document, after.document),
        changes=len(changes or ()),
        text=None if changes is None else [_placed(one, before, after) for one in _first(changes)],
        appeared=_connections(others, appeared=True),
        vanished=_connections(others, appeared=False),
    )


def _connections(rows: Sequence[Row], *, appeared: bool) -> list[OtherConnection]:
    wanted = (row for row in rows if row["appeared"] is appeared)
    return [OtherConnection(**{name: value for name, value in row.items() if name != "appeared"}) for row in wanted]


async def _find_before(connection: Connection, owner: UUID, new: DocumentRevision) -> DocumentRevision:
    versions = await list_versions(connection, owner, new.document)
    here = next(one for one in versions if one.document_id == new.document)
    older = [one.document_id for one in versions if one.version < here.version]
    earlier = [one for one in here.revisions if one < (new.revision or here.revision)]
    if older and new.revision is None:
        return DocumentRevision(older[0])
    if earlier:
        return DocumentRevision(new.document, earlier[0])
    raise NothingBefore


def compare_fields(old: Document, new: Document) -> list[FieldChange]:
    """Return the fields that differ, in the format of the API."""
    values = ((name, _plain(getattr(old, name)), _plain(getattr(new, name))) for name in FIELDS)
    return [FieldChange(name, before, after) for name, before, after in values if before != after]


def _plain(value: object) -> Value:
    if value is None or isinstance(value, int):
        return value
    return [str(one) for one in value] if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


async def _open(connection: Connection, owner: UUID, pick: DocumentRevision) -> _LoadedSide:
    document = await show_document(connection, owner, pick.document)
    values = {"owner": owner, "document": pick.document}
    rows = await fetch_rows(connection, QUERIES.text_of, values | {"revision": pick.revision})
    if not rows:
        if pick.revision is not None:
            raise NotFound(f"No text is stored for revision {pick.revision}.")
        return _LoadedSide(document, document.revision, None, [])
    row = rows[0]
    if row["bytes"] > MOST_BYTES:
        raise TooLongToCompare
    starts = await fetch_rows(connection, QUERIES.page_starts, values | {"revision": row["revision"]})
    return _LoadedSide(document, row["revision"], row["key"], [(one["char_start"], one["number"]) for one in starts])


def _first(changes: Sequence[Change]) -> list[Change]:
    """Return the first changes, up to a size limit.

    If the whole text is new, a complete list would be too long to show.
    """
    chosen, room = list[Change](), MOST_CHARACTERS
    for change in changes[:MOST_CHANGES]:
        size = sum(len(part.text) for part in change.parts)
        if size > room:
            break
        chosen.append(change)
        room -= size
    return chosen or [_cut(one) for one in changes[:1]]


def _cut(change: Change) -> Change:
    room = MOST_CHARACTERS // max(1, len(change.parts))
    return replace(change, parts=tuple(Part(part.kind, part.text[:room]) for part in change.parts))


def _placed(change: Change, before: _LoadedSide, after: _LoadedSide) -> TextChange:
    return TextChange(
        before.span(change.old_start, change.old_end), after.span(change.new_start, change.new_end), list(change.parts)
    )
