"""Connections as people see them. The records here are the public form: the API answers them as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.connect.contract import Engine, Status
from octavo.connect.weights import USUAL
from octavo.core.errors import BadInput, NotFound
from octavo.core.pages import Page, make_text_cursor, read_text_cursor
from octavo.database import Connection as Database
from octavo.database import Row, fetch_rows, load_queries

QUERIES = load_queries("connection_views")


@dataclass(frozen=True, slots=True)
class Place:
    """`quote` stands in the passage letter by letter; `start` is its first character in the document's markdown."""

    document_id: UUID
    title: str
    chunk_id: UUID
    quote: str
    page: int | None
    start: int


@dataclass(frozen=True, slots=True)
class Connection:
    """`source` is the side of the document that was asked about. A contradiction that only rules found is `possible`.

    `kind` says what a contradiction is about: negation, antonym, number, date or polarity.
    """

    id: UUID
    engine: Engine
    strength: float
    status: Status
    source: Place
    target: Place
    explanation: str
    kind: str | None
    made_by: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Without a status, all that nobody dismissed. `other` is the document on the other side."""

    engine: Engine | None = None
    status: Status | None = None
    chunk: UUID | None = None
    other: UUID | None = None


async def list_connections(
    connection: Database,
    owner: UUID,
    document: UUID,
    wanted: Wanted | None = None,
    *,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[Connection]:
    """The most important first, as the owner weighs the engines."""
    rank, after = _read_cursor(cursor) if cursor else (None, None)
    rows = await _rows(connection, owner, document, wanted or Wanted(), rank=rank, after=after, most=limit + 1)
    if len(rows) <= limit:
        return Page([_as_connection(row) for row in rows], None)
    last = rows[limit - 1]
    return Page([_as_connection(row) for row in rows[:limit]], make_text_cursor(str(last["rank"]), last["id"]))


async def show_connection(connection: Database, owner: UUID, ident: UUID) -> Connection:
    """Seen from either of its documents."""
    found = await fetch_rows(connection, QUERIES.document_of, {"owner": owner, "connection": ident})
    if not found:
        raise NotFound(f"Connection {ident}.")
    document = found[0]["source_document"]
    for status in (None, Status.DISMISSED):
        if rows := await _rows(connection, owner, document, Wanted(status=status), ident=ident, most=1):
            return _as_connection(rows[0])
    raise NotFound(f"Connection {ident}.")


async def count_connections(connection: Database, owner: UUID, document: UUID) -> dict[str, int]:
    rows = await fetch_rows(connection, QUERIES.counts, {"owner": owner, "document": document})
    return {row["engine"]: row["connections"] for row in rows}


async def count_by_passage(
    connection: Database, owner: UUID, document: UUID, chunks: Sequence[UUID]
) -> dict[UUID, dict[Engine, int]]:
    """Of passages of one document; those without any are missing."""
    if not chunks:
        return {}
    values = {"owner": owner, "document": document, "chunks": list(chunks)}
    counts: dict[UUID, dict[Engine, int]] = {}
    for row in await fetch_rows(connection, QUERIES.passage_counts, values):
        counts.setdefault(row["chunk"], {})[Engine(row["engine"])] = row["connections"]
    return counts


async def _rows(
    connection: Database,
    owner: UUID,
    document: UUID,
    wanted: Wanted,
    *,
    ident: UUID | None = None,
    rank: Decimal | None = None,
    after: UUID | None = None,
    most: int,
) -> list[Row]:
    values: dict[str, Any] = {
        "owner": owner,
        "document": document,
        "wanted": ident,
        "chunk": wanted.chunk,
        "other": wanted.other,
        "engine": wanted.engine,
        "status": wanted.status,
        "usual": Jsonb(USUAL),
        "after_rank": rank,
        "after_id": after,
        "most": most,
    }
    return await fetch_rows(connection, QUERIES.connections, values)


def _read_cursor(cursor: str) -> tuple[Decimal, UUID]:
    text, ident = read_text_cursor(cursor)
    try:
        rank = Decimal(text)
    except InvalidOperation:
        rank = Decimal("NaN")
    if not rank.is_finite():
        raise BadInput("The cursor is none that a list answered as next_cursor.")
    return rank, ident


def _as_connection(row: Row) -> Connection:
    source, target = (
        Place(
            row[f"{side}_document"],
            row[f"{side}_title"],
            row[f"{side}_chunk"],
            row[f"{side}_quote"],
            row[f"{side}_page"],
            row[f"{side}_start"],
        )
        for side in ("source", "target")
    )
    return Connection(
        row["id"],
        Engine(row["engine"]),
        round(row["strength"], 3),
        Status(row["status"]),
        source,
        target,
        row["explanation"],
        row["kind"],
        row["made_by"],
    )
