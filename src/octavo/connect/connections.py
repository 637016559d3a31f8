"""Lists, counts, confirms and dismisses stored connections, and sets the weights that determine their order.

The API returns these records unchanged.

A comparison is a job that looks for connections between a document and all others. This module returns the status of a
comparison and the types of connections that it can find, and queues comparisons again. The status is stored, so that
"no connections" is shown only after the comparison is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.models import uses_remote_model
from octavo.choreography import Cause, job_after
from octavo.core.errors import BadInput, NotFound
from octavo.core.http import Page, make_text_cursor, read_text_cursor
from octavo.core.settings import Settings
from octavo.core.texts import primary_language
from octavo.core.types import JobStatus, Lane
from octavo.database import Connection as DatabaseConnection
from octavo.database import Row, fetch_rows, load_queries
from octavo.jobs.queue import enqueue
from octavo.jobs.views import find_jobs
from octavo.language.small_model import LANGUAGES
from octavo.owners import Caller
from octavo.records.documents import Document
from octavo.records.jobs import JobView
from octavo.records.search import (
    ComparisonState,
    ComparisonStatus,
    Connection,
    ConnectionSide,
    Coverage,
    Engine,
    Status,
)

QUERIES = load_queries("connection_views")
DOCUMENTS = load_queries("documents")


@dataclass(frozen=True, slots=True)
class ConnectionFilter:
    """Selects connections. If `status` is None, all connections match except dismissed ones.

    If `other` is set, only connections to that document match.
    """

    engine: Engine | None = None
    status: Status | None = None
    chunk: UUID | None = None
    other: UUID | None = None


async def list_connections(
    connection: DatabaseConnection,
    owner: UUID,
    document: UUID,
    filters: ConnectionFilter | None = None,
    *,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[Connection]:
    """List connections, highest rank first.

    The rank is the strength of a connection times the account's weight for its type.
    """
    rank, after = _read_cursor(cursor) if cursor else (None, None)
    rows = await _rows(
        connection, owner, document, filters or ConnectionFilter(), rank=rank, after=after, most=limit + 1
    )
    if len(rows) <= limit:
        return Page([_as_connection(row) for row in rows], None)
    last = rows[limit - 1]
    return Page([_as_connection(row) for row in rows[:limit]], make_text_cursor(str(last["rank"]), last["id"]))


async def show_connection(connection: DatabaseConnection, owner: UUID, ident: UUID) -> Connection:
    """Return one connection, with `source` and `target` as they are stored.

    In the list of a document's connections, that document is always the `source`.
    """
    found = await fetch_rows(connection, QUERIES.document_of, {"owner": owner, "connection": ident})
    if not found:
        raise NotFound(f"Connection {ident}.")
    document = found[0]["source_document"]
    for status in (None, Status.DISMISSED):
        if rows := await _rows(connection, owner, document, ConnectionFilter(status=status), ident=ident, most=1):
            return _as_connection(rows[0])
    raise NotFound(f"Connection {ident}.")


async def find_connections(connection: DatabaseConnection, owner: UUID, part: str, limit: int) -> list[Connection]:
    """Find connections whose id begins or ends with `part`. `source` and `target` are returned as they are stored."""
    rows = await fetch_rows(connection, QUERIES.find, {"owner": owner, "part": part.lower(), "most": limit})
    return [await show_connection(connection, owner, row["id"]) for row in rows]


async def count_connections(connection: DatabaseConnection, owner: UUID, document: UUID) -> dict[str, int]:
    rows = await fetch_rows(connection, QUERIES.counts, {"owner": owner, "document": document})
    return {row["engine"]: row["connections"] for row in rows}


async def count_by_chunk(
    connection: DatabaseConnection, owner: UUID, document: UUID, chunks: Sequence[UUID]
) -> dict[UUID, dict[Engine, int]]:
    """Count the connections of each chunk by type. Chunks without connections are left out."""
    if not chunks:
        return {}
    values = {"owner": owner, "document": document, "chunks": list(chunks)}
    counts: dict[UUID, dict[Engine, int]] = {}
    for row in await fetch_rows(connection, QUERIES.chunk_counts, values):
        counts.setdefault(row["chunk"], {})[Engine(row["engine"])] = row["connections"]
    return counts


async def _rows(
    connection: DatabaseConnection,
    owner: UUID,
    document: UUID,
    filters: ConnectionFilter,
    *,
    ident: UUID | None = None,
    rank: Decimal | None = None,
    after: UUID | None = None,
    most: int,
) -> list[Row]:
    values: dict[str, Any] = {
        "owner": owner,
        "document": document,
        "connection": ident,
        "chunk": filters.chunk,
        "other": filters.other,
        "engine": filters.engine,
        "status": filters.status,
        "default_weights": Jsonb(DEFAULT_WEIGHTS),
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
        raise BadInput("Invalid cursor. Use the next_cursor of the previous page.")
    return rank, ident


def _as_connection(row: Row) -> Connection:
    source, target = (
        ConnectionSide(
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


@dataclass(frozen=True, slots=True)
class Weights:
    """The importance of each type of connection to an account, from 0 to 100.

    By default, contradictions rank highest and bridges lowest.
    """

    semantic_similarity: int = 60
    contradiction_detection: int = 80
    thematic_bridge: int = 40


DEFAULT_WEIGHTS = {engine.value: int(asdict(Weights())[engine.value]) for engine in Engine}


async def read_weights(connection: DatabaseConnection, owner: UUID) -> Weights:
    rows = await fetch_rows(connection, QUERIES.weights, {"owner": owner})
    return Weights(**rows[0]) if rows else Weights()


async def set_weights(connection: DatabaseConnection, owner: UUID, weights: Weights) -> None:
    await connection.execute(QUERIES.set_weights, {"owner": owner, **asdict(weights)})


class Decision(StrEnum):
    CONFIRM = "confirm"
    DISMISS = "dismiss"
    UNDO = "undo"


VERDICTS = {Decision.CONFIRM: "confirmed", Decision.DISMISS: "dismissed"}


async def decide(connection: DatabaseConnection, owner: UUID, ident: UUID, decision: Decision) -> Connection:
    """Confirm or dismiss a connection, or undo such a decision. Records an event for both documents.

    Returns the updated connection. The decision is stored with the text of both quotes, so it also applies to other
    connections with the same quotes.
    """
    found = await fetch_rows(connection, QUERIES.document_of, {"owner": owner, "connection": ident})
    if not found:
        raise NotFound(f"Connection {ident}.")
    values: dict[str, Any] = {"owner": owner, "digest": found[0]["digest"]}
    if decision is Decision.UNDO:
        await connection.execute(QUERIES.undecide, values)
    else:
        await connection.execute(QUERIES.decide, values | {"verdict": VERDICTS[decision]})
    event = {
        "kind": "connection_judged",
        "documents": [found[0]["source_document"], found[0]["target_document"]],
        "detail": Jsonb({"connection": str(ident), "decision": decision}),
    }
    await connection.execute(DOCUMENTS.record, event)
    return await show_connection(connection, owner, ident)


# The kind of the jobs that compare documents.
KIND = "detect_connections"
STATES = {
    JobStatus.QUEUED: ComparisonState.WAITING,
    JobStatus.PROCESSING: ComparisonState.RUNNING,
    JobStatus.PAUSED: ComparisonState.PAUSED,
    JobStatus.COMPLETE: ComparisonState.DONE,
    JobStatus.CANCELLED: ComparisonState.CANCELLED,
}


async def show_comparison(connection: DatabaseConnection, owner: UUID, document: Document) -> ComparisonStatus:
    """Return the status of the last comparison of the document's current revision."""
    values = {"owner": owner, "document": document.id, "revision": document.revision, "kind": KIND}
    rows = await fetch_rows(connection, QUERIES.last_comparison, values)
    jobs = await find_jobs(connection, owner, [row["id"] for row in rows]) if rows else {}
    job = next(iter(jobs.values()), None)
    return _of_job(job) if job else ComparisonStatus(_without_job(document))


def _of_job(job: JobView) -> ComparisonStatus:
    state = STATES.get(job.status, ComparisonState.FAILED)
    if state is ComparisonState.FAILED and job.error:
        return ComparisonStatus(state, f"{job.error.message.rstrip('.')} ({job.error.code})", job.id)
    because = job.waiting_because
    if because is None:
        return ComparisonStatus(state, None, job.id)
    over_budget = because.facts.get("code") == "OVER_BUDGET"
    detail = because.detail.rstrip(".")
    return ComparisonStatus(state, detail, job.id, over_budget=over_budget, may_try_now=because.is_retry)


def _without_job(document: Document) -> ComparisonState:
    if document.embeddings_ready and document.word_count:
        return ComparisonState.NEVER
    return ComparisonState.NOT_INDEXED if document.status == "pending" else ComparisonState.NO_TEXT


def coverage_of(settings: Settings, caller: Caller, document: Document | None = None) -> Coverage:
    """Return the types of connections that the caller's models can find, for one document or in general.

    A document in an unknown language may be in English, so it is treated as supported.
    """
    is_offline = caller.is_anonymous and not settings.anonymous_models
    judged, explained = (
        not is_offline and uses_remote_model(settings, task) for task in ("judge_contradictions", "explain_bridges")
    )
    known = document is None or primary_language(document.language) in {None, *LANGUAGES}
    return Coverage(sorted(LANGUAGES), known or judged, explained)


async def count_unfinished(connection: DatabaseConnection, owner: UUID) -> int:
    """Count the account's documents whose comparison is still waiting or running."""
    rows = await fetch_rows(connection, QUERIES.unfinished_comparisons, {"owner": owner, "kind": KIND})
    return int(rows[0]["documents"])


async def failed_comparisons(connection: DatabaseConnection, owner: UUID) -> list[UUID]:
    """Return the ids of the account's documents whose last comparison failed."""
    rows = await fetch_rows(connection, QUERIES.failed_comparisons, {"owner": owner, "kind": KIND})
    return [row["id"] for row in rows]


async def rebuild(connection: DatabaseConnection, owner: UUID, documents: Sequence[UUID] | None = None) -> list[UUID]:
    """Queue a comparison job for each document that has vectors, unless one is already queued.

    Returns the ids of the new jobs and of the jobs that were already queued. Raises `NotFound` if one of `documents`
    cannot be compared.
    """
    cursor = await connection.execute(QUERIES.connectable, {"owner": owner, "documents": documents})
    rows = await cursor.fetchall()
    if documents is not None and (missing := set(documents) - {row[0] for row in rows}):
        raise NotFound(f"Document {min(missing)}.")
    lane = Lane.INTERACTIVE if documents is not None and len(documents) == 1 else Lane.BULK
    jobs = [
        job_after(Cause.COMPARISON_REQUESTED, owner, {"revision": revision}, document=document, lane=lane)
        for document, revision, queued in rows
        if queued is None
    ]
    new = [job.id for job in await enqueue(connection, jobs)] if jobs else []
    return [*new, *(queued for _, _, queued in rows if queued is not None)]
