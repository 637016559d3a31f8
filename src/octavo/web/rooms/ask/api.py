"""The API for questions and threads. Answers are streamed as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any, Self, TypeVar
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from octavo.ai.tasks.answer_question import read_draft
from octavo.core.errors import OctavoError
from octavo.core.http import EVENT_STREAM, Page, write_event
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.records.search import (
    AnswerSources,
    AskScope,
    FoundPassages,
    Thread,
    ThreadReference,
    ThreadSummary,
)
from octavo.search.ask import resolve_scope
from octavo.search.citations import with_marks
from octavo.search.query import parse_query
from octavo.search.threads import (
    NewTurn,
    begin_turn,
    delete_thread,
    list_threads,
    read_thread_scope,
    show_thread,
    write_markdown,
)
from octavo.storage import attachment_header
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import Cursor, Limit, problems
from octavo.web.live import HEADERS, HEARTBEAT, first_of, send_body, wait_for_leaving
from octavo.web.rooms.ask.turns import OpenTurn, answer_turn, find_for_turn, give_up

Out = TypeVar("Out")
router = APIRouter(prefix="/api/v1", tags=["search"])
MOST_CHARACTERS = 1000
MOST_CHOSEN = 100
MARKDOWN_TYPE = "text/markdown; charset=utf-8"
_CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
# Any text that is not blank.
Question = Annotated[str, Field(max_length=MOST_CHARACTERS, pattern=rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$")]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=rf"^[^{_CONTROL}]*$")]
Chosen = Annotated[list[UUID], Field(min_length=1, max_length=MOST_CHOSEN)]
EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["thread", "passages", "draft", "text", "citations", "error"]},
        "data": {"type": "string", "description": "JSON."},
    },
}
STREAM = {
    200: {
        "description": "Server-sent events: `thread`, `passages`, `draft` while a model writes, one `text` for each "
        "statement, and `citations`. If answering fails, the last event is `error`.",
        "content": {"text/event-stream": {"schema": EVENT}},
    }
}
MARKDOWN = {200: {"description": "Markdown", "content": {MARKDOWN_TYPE: {"schema": {"type": "string"}}}}}


HEARTBEAT_SECONDS = 15.0
# How often the answer so far is sent while a model writes.
DRAFT_SECONDS = 0.25


class ScopeRequest(BaseModel):
    """The documents to ask. Exactly one of the three fields is required.

    `query` uses the syntax of the search box, such as `type:invoice after:2024`.
    """

    model_config = ConfigDict(extra="forbid")

    collection: Name | None = None
    query: Name | None = None
    document_ids: Chosen | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if sum(one is not None for one in (self.collection, self.query, self.document_ids)) != 1:
            raise ValueError("exactly one of collection, query and document_ids is required")
        return self


class AskRequest(BaseModel):
    """A question.

    `thread_id` continues a thread, so that follow-up questions such as "And in 2023?" are understood. `scope` limits
    the documents; `document_ids` is short for a scope with only `document_ids`. If neither is sent, a new thread uses
    all documents, and a follow-up question uses the documents of the previous question. If `scope` is null, a follow-up
    question uses all documents.

    `again` is the id of the last turn of the thread. Its question is answered again, and the new answer replaces the
    old one. If `drafts` is true, `draft` events contain the text that a model has written so far.
    """

    model_config = ConfigDict(extra="forbid")

    question: Question
    document_ids: Chosen | None = None
    thread_id: UUID | None = None
    scope: ScopeRequest | None = None
    again: UUID | None = None
    drafts: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.document_ids and self.scope:
            raise ValueError("document_ids and scope cannot be used together")
        if self.again and not self.thread_id:
            raise ValueError("again requires thread_id")
        return self

    def new_scope(self) -> AskScope | None:
        """Return the scope that the request names. Returns None if the request names no scope."""
        if self.document_ids:
            return AskScope(document_ids=self.document_ids)
        if "scope" not in self.model_fields_set:
            return None
        return AskScope(**self.scope.model_dump()) if self.scope else AskScope()


async def open_turn(services: Services, owner: UUID, wanted: AskRequest) -> OpenTurn:
    """Check a question, and store it as a turn without an answer. `answer_turn` stores the answer later."""
    parse_query(wanted.question)
    scope = wanted.new_scope()
    async with services.database.connection() as connection:
        stored = await read_thread_scope(connection, owner, wanted.thread_id) if wanted.thread_id else AskScope()
    filters = await resolve_scope(
        services.database, services.models.gateway, owner, scope or stored, is_new=scope is not None
    )
    new = NewTurn(wanted.question, scope or stored, wanted.thread_id, wanted.again)
    async with services.database.transaction() as connection:
        return OpenTurn(owner, await begin_turn(connection, owner, new), filters)


async def answer_events(services: Services, opened: OpenTurn, draft: Draft | None = None) -> AsyncGenerator[bytes]:
    """Yield the events of an answer: `thread`, `passages`, one `text` for each statement, and `citations`.

    If answering fails, the last event is `error`. If `draft` is given, `draft` events contain the text that a model has
    written so far.
    """
    yield frame("thread", asdict(ThreadReference(opened.turn.thread_id, opened.turn.id)))
    try:
        found = await find_for_turn(services, opened.asked)
        yield frame("passages", asdict(FoundPassages(list(found.question.snippets), found.understood_as)))
        answering_turn = answer_turn(services, opened, found, draft.write if draft else None)
        async with cancelled_at_the_end(answering_turn) as answering:
            while not (await asyncio.wait([answering], timeout=DRAFT_SECONDS if draft else None))[0]:
                if draft and (text := draft.take()):
                    yield frame("draft", {"text": text})
            answer = answering.result()
    except OctavoError as error:
        await give_up(services, opened, error)
        problem = {"status": error.status, "code": error.code, "title": error.title, "detail": error.detail}
        yield frame("error", problem)
        return
    for statement in answer.statements:
        text = f"{with_marks(statement, answer.citations)}\n"
        yield frame("text", {"text": text, "citations": statement.citations, "verified": statement.verified})
    sources = AnswerSources(
        answer.citations, answer.found, answer.made_by, answer.cost_usd, answer=answer.short, note=answer.note
    )
    yield frame("citations", asdict(sources))


class Draft:
    """The answer so far, while a model writes it. Citations are left out, because they are not checked yet."""

    def __init__(self) -> None:
        self._written = ""
        self._taken = ""

    def write(self, written: str) -> None:
        self._written = written

    def take(self) -> str | None:
        """Return the text so far. Returns None if it has not changed since the last call."""
        text = read_draft(self._written)
        if text == self._taken:
            return None
        self._taken = text
        return text


@asynccontextmanager
async def cancelled_at_the_end(work: Coroutine[Any, Any, Out]) -> AsyncGenerator[asyncio.Task[Out]]:
    """Run a coroutine as a task. Cancel the task if it is still running when the context manager ends."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


def frame(name: str, data: dict[str, Any]) -> bytes:
    """Encode one server-sent event. The JSON contains no line breaks."""
    return write_event(json.dumps(data, default=str), name=name)


class AnswerStream(Response):
    """Sends events until the answer is complete. If the caller disconnects, the model call is cancelled."""

    media_type = EVENT_STREAM

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        leaving = asyncio.create_task(wait_for_leaving(receive))
        try:
            await first_of(leaving, self._send_all(send))
            if not leaving.done():
                await send_body(send, b"", more=False)
        finally:
            leaving.cancel()

    async def _send_all(self, send: Send) -> None:
        """Send events, with heartbeats while waiting for the model."""
        async with aclosing(self._events) as events:
            while True:
                coming = asyncio.ensure_future(anext(events, b""))
                try:
                    while not (await asyncio.wait([coming], timeout=HEARTBEAT_SECONDS))[0]:
                        await send_body(send, HEARTBEAT)
                    event = coming.result()
                finally:
                    coming.cancel()
                    await asyncio.wait([coming])
                if not event:
                    return
                await send_body(send, event)


@router.post("/ask", responses={**problems(400, 401, 404, 422, 429), **STREAM}, response_class=Response)
async def ask(services: ServicesOf, caller: ReadCaller, wanted: AskRequest) -> AnswerStream:
    """Answer a question from your documents, as server-sent events.

    The events are `thread`, `passages`, one `text` for each statement, and `citations`. If answering fails, the last
    event is `error`.

    `thread` contains the `thread_id`, which a follow-up question continues, and the `turn_id`.

    `passages` lists the passages that may contain the answer, each with document, chunk, page and the part that
    matches. If a follow-up question was rewritten, `understood_as` is the question that is answered.

    `text` contains one statement, with the numbers of its citations.

    `citations` lists the citations, each with document, chunk, page and quote. `verified` is true if the text contains
    the quote word for word. The `answer` of a citation is the part of the quote that answers the question. The event
    also says whether the documents answer the question (`found`), and which texts were not used (`note`). The
    event's own `answer` field contains the answer to the question in a few words, or null.

    If `drafts` is true, `draft` events contain the text that a model has written so far, without citations. Each draft
    replaces the previous one. The statements are sent when the whole answer has been checked and stored.

    Without a model, the answer consists of sentences from the documents. An answer in a few words is then found only in
    English texts.
    """
    opened = await open_turn(services, caller.owner_id, wanted)
    return AnswerStream(answer_events(services, opened, Draft() if wanted.drafts else None))


@router.get("/threads", responses=problems(401, 422))
async def threads(
    services: ServicesOf, caller: ReadCaller, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[ThreadSummary]:
    """List your threads, the most recently used first."""
    async with services.database.connection() as connection:
        return await list_threads(connection, caller.owner_id, cursor=cursor, limit=limit)


@router.get("/threads/{thread}", responses=problems(401, 404, 422))
async def thread(services: ServicesOf, caller: ReadCaller, thread: UUID) -> Thread:
    """Show a thread: its questions, answers and citations."""
    async with services.database.connection() as connection:
        return await show_thread(connection, caller.owner_id, thread)


@router.get("/threads/{thread}/markdown", responses={**MARKDOWN, **problems(401, 404, 422)}, response_class=Response)
async def thread_markdown(
    services: ServicesOf,
    caller: ReadCaller,
    thread: UUID,
    turn: Annotated[UUID | None, Query(description="Only this turn.")] = None,
) -> Response:
    """Export a thread, or one of its answers, as Markdown with citations."""
    async with services.database.connection() as connection:
        found = await show_thread(connection, caller.owner_id, thread)
    headers = {
        "content-disposition": attachment_header(f"{found.title[:80]}.md"),
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
    }
    return Response(write_markdown(found, turn), media_type=MARKDOWN_TYPE, headers=headers)


@router.delete("/threads/{thread}", status_code=204, responses=problems(401, 403, 404, 422))
async def remove_thread(services: ServicesOf, caller: WriteCaller, thread: UUID) -> None:
    """Delete a thread with its questions and answers. This cannot be undone."""
    async with services.database.transaction() as connection:
        await delete_thread(connection, caller.owner_id, thread)
