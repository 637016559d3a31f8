"""Stores threads: questions about documents, follow-up questions and their answers. A thread belongs to an account.

A turn is stored before its question is answered, and its answer is stored afterwards, in one SQL statement. If the
process is killed before the answer is stored, the turn stays unfinished. The other turns are not affected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from octavo.ai.tasks.rewrite_question import EarlierTurn
from octavo.core.errors import BadInput, NotFound, OctavoError
from octavo.core.http import Page, make_cursor, read_cursor
from octavo.core.types import new_id
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.library.files import PICTURED
from octavo.records.search import AskScope, Citation, Statement, Thread, ThreadSummary, Turn, TurnError
from octavo.search.citations import Answer, with_marks

QUERIES = load_queries("threads")
MOST_TURNS = 200
# How many earlier turns a follow-up question can refer to.
MOST_EARLIER = 4
STATEMENTS, CITATIONS = TypeAdapter(list[Statement]), TypeAdapter(list[Citation])


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A question to store.

    If `thread_id` is None, the question starts a thread. To answer the last turn of a thread again, pass the id
    of that turn as `again`.
    """

    question: str
    scope: AskScope
    thread_id: UUID | None = None
    again: UUID | None = None


@dataclass(frozen=True, slots=True)
class StartedTurn:
    """A turn that is being answered. `earlier` are the turns before it, oldest first.

    `sources` are the documents cited in the last of these turns, in the order of the citations.
    """

    thread_id: UUID
    id: UUID
    number: int
    attempt: int
    question: str
    earlier: Sequence[EarlierTurn] = ()
    sources: Sequence[UUID] = ()


# Reading ------------------------------------------------------------------------------------------------------------


async def list_threads(
    connection: Connection, owner: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[ThreadSummary]:
    """List an account's threads, the most recently used first."""
    at, after = read_cursor(cursor) if cursor else (None, None)
    values = {"owner": owner, "after_at": at, "after_id": after, "most": limit + 1}
    rows = await fetch_rows(connection, QUERIES.threads, values)
    found = [ThreadSummary(**_with(row, scope=read_scope(row["scope"]))) for row in rows[:limit]]
    return Page(found, make_cursor(found[-1].updated_at, found[-1].id) if len(rows) > limit else None)


async def show_thread(connection: Connection, owner: UUID, thread: UUID) -> Thread:
    """Return a thread with its turns. Citations refer to the current text of their documents."""
    rows = await fetch_rows(connection, QUERIES.thread, {"owner": owner, "id": thread})
    if not rows:
        raise NotFound
    turns = [_read_turn(row) for row in await fetch_rows(connection, QUERIES.turns, {"thread": thread})]
    cited = iter(await place_citations(connection, owner, [one for turn in turns for one in turn.citations]))
    turns = [replace(turn, citations=[next(cited) for _ in turn.citations]) for turn in turns]
    return Thread(**_with(rows[0], scope=read_scope(rows[0]["scope"]), turns=turns))


async def read_thread_scope(connection: Connection, owner: UUID, thread: UUID) -> AskScope:
    rows = await fetch_rows(connection, QUERIES.thread, {"owner": owner, "id": thread})
    if not rows:
        raise NotFound
    return read_scope(rows[0]["scope"])


async def place_citations(connection: Connection, owner: UUID, citations: Sequence[Citation]) -> list[Citation]:
    """Update citations to match the current state of their documents.

    Updates the page picture and the id of the chunk that contains the quote. Sets `gone` if the document was deleted.
    """
    cited = [
        {"place": place, "document_id": str(one.document_id), "chunk_id": str(one.chunk_id), "quote": one.quote}
        for place, one in enumerate(citations)
    ]
    rows = await fetch_rows(connection, QUERIES.cited_places, {"owner": owner, "cited": Jsonb(cited)}) if cited else []
    found = {row["place"]: row for row in rows}
    return [_place(one, found.get(place)) for place, one in enumerate(citations)]


def _place(cited: Citation, row: Row | None) -> Citation:
    if row is None:
        return replace(cited, gone=True, picture=None)
    shown = cited.page and row["source_type"] in PICTURED and cited.page <= (row["page_count"] or 0)
    picture = f"/api/v1/documents/{cited.document_id}/pages/{cited.page}.png" if shown else None
    return replace(cited, chunk_id=row["chunk_id"] or cited.chunk_id, picture=picture)


def _read_turn(row: Row) -> Turn:
    error = TurnError(**row["error"]) if row["error"] else None
    statements, citations = (
        STATEMENTS.validate_python(row["statements"]),
        CITATIONS.validate_python(row["citations"]),
    )
    return Turn(**_with(row, statements=statements, citations=citations, error=error))


def read_scope(stored: dict[str, Any]) -> AskScope:
    chosen = stored.get("document_ids")
    return AskScope(**_with(stored, document_ids=[UUID(one) for one in chosen] if chosen else None))


def _with(row: Row, **values: object) -> Row:
    return {**row, **values}


def _write_scope(scope: AskScope) -> Jsonb:
    return Jsonb({name: to_jsonable_python(value) for name, value in asdict(scope).items() if value})


# Writing ------------------------------------------------------------------------------------------------------------


async def begin_turn(connection: Connection, owner: UUID, new: NewTurn) -> StartedTurn:
    """Store a question before it is answered. It starts a thread, or continues one."""
    thread = new.thread_id or new_id()
    if new.thread_id is None:
        values = {"id": thread, "owner": owner, "title": new.question, "scope": _write_scope(new.scope)}
        await connection.execute(QUERIES.insert_thread, values)
    else:
        locked = await fetch_rows(connection, QUERIES.lock_thread, {"owner": owner, "id": thread})
        if not locked:
            raise NotFound
        if locked[0]["turns"] >= MOST_TURNS and not new.again:
            raise BadInput(f"A thread can have at most {MOST_TURNS} questions. Start a new thread.")
        await connection.execute(QUERIES.touch_thread, {"id": thread, "scope": _write_scope(new.scope)})
    if new.again:
        rows = await fetch_rows(connection, QUERIES.repeat_turn, {"thread": thread, "id": new.again})
        if not rows:
            raise NotFound("Only the last question of a thread can be answered again.")
    else:
        values = {"id": new_id(), "thread": thread, "question": new.question}
        rows = await fetch_rows(connection, QUERIES.insert_turn, values)
    return await _with_earlier(connection, StartedTurn(thread, **rows[0]))


async def _with_earlier(connection: Connection, turn: StartedTurn) -> StartedTurn:
    values = {"thread": turn.thread_id, "number": turn.number, "most": MOST_EARLIER}
    rows = await fetch_rows(connection, QUERIES.earlier_turns, values) if turn.number > 1 else []
    earlier = [_read_earlier(row) for row in reversed(rows)]
    sources = [UUID(one["document_id"]) for one in rows[0]["citations"]] if rows else []
    return replace(turn, earlier=earlier, sources=sources)


def _read_earlier(row: Row) -> EarlierTurn:
    statements, citations = row["statements"], row["citations"]
    answer = row["answer"] or " ".join(one["text"] for one in statements)
    return EarlierTurn(row["understood_as"] or row["question"], answer, tuple(one["title"] for one in citations))


async def finish_turn(connection: Connection, turn: StartedTurn, answer: Answer, understood_as: str | None) -> None:
    """Store the answer, unless a later attempt has started. If the thread was deleted, nothing is stored."""
    values = {
        "id": turn.id,
        "attempt": turn.attempt,
        "understood_as": understood_as,
        "answer": answer.short,
        "statements": Jsonb([asdict(one) for one in answer.statements]),
        "citations": Jsonb(to_jsonable_python([asdict(one) for one in answer.citations])),
        "found": answer.found,
        "note": answer.note,
        "made_by": answer.made_by,
        "cost_usd": answer.cost_usd,
    }
    await connection.execute(QUERIES.finish_turn, values)


async def fail_turn(connection: Connection, turn: StartedTurn, error: OctavoError) -> None:
    """Store the reason why a question was not answered."""
    problem = Jsonb({"code": error.code, "message": error.line})
    await connection.execute(QUERIES.fail_turn, {"id": turn.id, "attempt": turn.attempt, "error": problem})


async def delete_thread(connection: Connection, owner: UUID, thread: UUID) -> None:
    if not await fetch_rows(connection, QUERIES.delete_thread, {"owner": owner, "id": thread}):
        raise NotFound


async def forget_threads(database: Database, days: int) -> int:
    """Delete threads that have had no new question for `days` days. If `days` is 0, keep all threads."""
    if not days:
        return 0
    async with database.connection() as connection:
        return (await connection.execute(QUERIES.forget_threads, {"days": days})).rowcount


# Markdown -----------------------------------------------------------------------------------------------------------


def write_markdown(thread: Thread, turn: UUID | None = None) -> str:
    """Write a thread, or one of its turns, as Markdown with its sources."""
    chosen = [one for one in thread.turns if turn in {None, one.id}]
    if not chosen:
        raise NotFound
    return "\n\n".join(line for one in chosen for line in _write_turn(one)) + "\n"


def _write_turn(turn: Turn) -> Iterator[str]:
    yield f"## {_flat(turn.question)}"
    if turn.understood_as:
        yield f"*Understood as: {_flat(turn.understood_as)}*"
    if turn.status != "answered":
        yield f"*{describe_status(turn)}*"
    if turn.answer:
        yield f"**{_flat(turn.answer)}**"
    quotes = {_flat(one.quote) for one in turn.citations}
    for statement in turn.statements:
        if _flat(statement.text) not in quotes:
            yield with_marks(replace(statement, text=_flat(statement.text)), turn.citations)
    if turn.citations:
        yield "\n".join(_write_citation(one) for one in turn.citations)


def _write_citation(cited: Citation) -> str:
    page = f", p. {cited.page}" if cited.page else ""
    mark = "" if cited.verified else " (not verified)"
    return f"{cited.number}. “{_flat(cited.quote)}” — {_flat(cited.title)}{page}{mark}"


def describe_status(turn: Turn) -> str:
    """Return a sentence that says why a turn has no answer."""
    if turn.status == "failed" and turn.error:
        return turn.error.message
    if turn.status == "removed":
        return "This answer was removed, because it quoted a document that was deleted permanently."
    return "This answer was not finished."


def _flat(text: str) -> str:
    return " ".join(text.split())
