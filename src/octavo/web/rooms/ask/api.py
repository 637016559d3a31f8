"""The API for questions. Answers are streamed as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from octavo.core.errors import OctavoError
from octavo.core.http import EVENT_STREAM, write_event
from octavo.records.search import AnswerSources, SourceSnippet
from octavo.search.ask import Question as AskedQuestion
from octavo.search.ask import answer, find_sources
from octavo.search.citations import Answer, with_marks
from octavo.web.context.callers import ReadCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import ConcurrencyLimit
from octavo.web.http.parameters import problems
from octavo.web.live.stream import HEADERS, HEARTBEAT, first_of, send_body, wait_for_leaving

router = APIRouter(prefix="/api/v1", tags=["search"])
MOST_CHARACTERS = 1000
MOST_CHOSEN = 100
# How many questions are answered in parallel, how many wait, and when to retry if too many wait.
PARALLEL_ANSWERS, ANSWERS_WAIT, ANSWERS_BUSY_SECONDS = 8, 40, 5.0
_CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
# Any text that is not blank.
Question = Annotated[str, Field(max_length=MOST_CHARACTERS, pattern=rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$")]
EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["passages", "text", "citations", "done", "error"]},
        "data": {"type": "string", "description": "JSON."},
    },
}
STREAM = {
    200: {
        "description": "`passages` first; then `text` for each statement, `citations` once and `done`; or `error`.",
        "content": {"text/event-stream": {"schema": EVENT}},
    }
}


HEARTBEAT_SECONDS = 15.0


async def answer_events(
    snippets: Sequence[SourceSnippet], make: Callable[[], Awaitable[Answer]]
) -> AsyncGenerator[bytes]:
    """Yield the events of an answer: `passages`, one `text` for each statement, `citations` and `done`.

    If answering fails, an `error` event follows `passages` instead.
    """
    yield frame("passages", {"passages": [asdict(one) for one in snippets]})
    try:
        answer = await make()
    except OctavoError as error:
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
    yield frame("done", {})


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


class AskRequest(BaseModel):
    """A question. If `document_ids` is null, all documents are used; otherwise only the named documents."""

    model_config = ConfigDict(extra="forbid")

    question: Question
    document_ids: Annotated[list[UUID], Field(min_length=1, max_length=MOST_CHOSEN)] | None = None


@router.post("/ask", responses={**problems(401, 404, 422, 429), **STREAM}, response_class=Response)
async def ask(services: ServicesOf, caller: ReadCaller, wanted: AskRequest) -> AnswerStream:
    """Answer a question from your documents, as server-sent events.

    The first event, `passages`, lists the passages that may contain the answer, each with document, chunk, page and the
    part that matches. Each `text` event is one statement, with the numbers of its citations. The `citations` event
    lists the citations, each with document, chunk, page and quote; `verified` is true if the quote occurs word for word
    in the text. The last event is `done`.

    The `citations` event also says whether the documents answer the question (`found`) and which texts were not used
    (`note`). Its `answer` is the answer in a few words, or null. The `answer` of a citation is the part of the quote
    that answers the question.

    The whole answer is generated before the first statement is sent. Without a model, it consists of sentences from the
    documents, and an answer in a few words is found only in English texts.
    """
    gateway = services.models.gateway
    asking = await find_sources(services.database, gateway, caller.owner_id, wanted.question, wanted.document_ids or ())
    return AnswerStream(answer_events(asking.snippets, partial(answer_in_turn, services, asking)))


def answer_limit(_: Services) -> ConcurrencyLimit:
    return ConcurrencyLimit(PARALLEL_ANSWERS, ANSWERS_WAIT, ANSWERS_BUSY_SECONDS)


async def answer_in_turn(services: Services, asking: AskedQuestion) -> Answer:
    """Answer a question. Parallel answers are limited, because answering without a model uses this machine's CPU."""
    async with services.shared(answer_limit).take():
        return await answer(services.models.gateway, asking)
