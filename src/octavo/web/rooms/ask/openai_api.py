"""An API that is compatible with OpenAI's chat completions, so that chat programs can use Octavo like a model.

The program sends the whole conversation with each request, so nothing is stored. The last message is the question. The
earlier messages are used to understand a follow-up question. The answers are the same as those of `/api/v1/ask`: all
quotes are checked before anything is sent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Coroutine, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, Self
from urllib.parse import urljoin

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import to_jsonable_python
from starlette.responses import Response

from octavo.ai.tasks.rewrite_question import EarlierTurn
from octavo.core.errors import NotFound, OctavoError
from octavo.core.http import write_event
from octavo.core.types import new_id
from octavo.database import read_clock
from octavo.library.collections import list_collections
from octavo.records.search import AnswerSources, AskScope, Citation
from octavo.search.ask import resolve_scope
from octavo.search.citations import Answer, with_marks
from octavo.search.query import parse_query
from octavo.search.threads import MOST_EARLIER, place_citations
from octavo.web.context.callers import KeyCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.problems import openai_error
from octavo.web.live import while_connected
from octavo.web.rooms.ask.api import MOST_CHARACTERS, AnswerStream, cancelled_at_the_end
from octavo.web.rooms.ask.turns import FollowUp, address_of, answer_understood, find_for_turn

# Not in the API reference: the protocol belongs to another project.
router = APIRouter(prefix="/v1", include_in_schema=False)
# The name of the model that answers from all documents. `octavo/<collection>` answers from one collection.
MODEL = "octavo"
MOST_MESSAGES = 500
DONE = write_event("[DONE]")
SOURCES = "\nSources:\n"


class TextPart(BaseModel):
    """A text part of a message. Other parts, such as pictures and sound, are refused."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(one.text for one in self.content)
        return self.content or ""


class ResponseFormat(BaseModel):
    """The format of the answer. Octavo returns text."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["text"] = "text"


class ChatRequest(BaseModel):
    """A conversation. Options for models, such as `temperature` and `tools`, are accepted and have no effect."""

    model_config = ConfigDict(extra="ignore")

    model: Annotated[str, Field(max_length=300)] = MODEL
    messages: Annotated[list[Message], Field(min_length=1, max_length=MOST_MESSAGES)]
    stream: bool | None = False
    n: Annotated[int, Field(ge=1, le=1)] | None = 1
    response_format: ResponseFormat | None = None

    @model_validator(mode="after")
    def _ends_with_a_question(self) -> Self:
        last = self.messages[-1]
        if last.role != "user" or not last.text.strip():
            raise ValueError("messages: the last message must be a question of the user")
        if len(last.text) > MOST_CHARACTERS:
            raise ValueError(f"messages: a question must have at most {MOST_CHARACTERS} characters")
        if "\x00" in last.text:
            raise ValueError("messages: must not contain null characters")
        return self


@router.get("/models")
async def models(services: ServicesOf, caller: KeyCaller) -> dict[str, Any]:
    """List the models that can be chosen: one for all documents, and one for each collection."""
    async with services.database.connection() as connection:
        found = await list_collections(connection, caller.owner_id)
        now = await read_clock(connection)
    dated = [(MODEL, now), *((f"{MODEL}/{one.name}", one.created_at) for one in found)]
    items = [{"id": name, "object": "model", "created": int(at.timestamp()), "owned_by": MODEL} for name, at in dated]
    return {"object": "list", "data": items}


@router.post("/chat/completions", response_class=Response)
async def chat(request: Request, services: ServicesOf, caller: KeyCaller, wanted: ChatRequest) -> Response:
    """Answer the last message from the caller's documents, in one response or as server-sent events."""
    question = wanted.messages[-1].text
    parse_query(question)
    filters = await resolve_scope(services.database, services.models.gateway, caller.owner_id, scope_of(wanted.model))
    async with services.database.connection() as connection:
        created = int((await read_clock(connection)).timestamp())
    reply = Reply(
        f"chatcmpl-{new_id().hex}", created, wanted.model, services.settings.public_url or str(request.base_url)
    )

    asked = FollowUp(caller.owner_id, question, filters, read_earlier(wanted.messages[:-1]))
    if wanted.stream:
        return AnswerStream(reply.events(answer_chat(services, asked)))
    return JSONResponse(reply.whole(await while_connected(request, answer_chat(services, asked))))


def scope_of(model: str) -> AskScope:
    """Return the scope of documents that this model name selects."""
    if model == MODEL:
        return AskScope()
    beginning, _, collection = model.partition("/")
    if beginning != MODEL or not collection:
        raise NotFound(f"Unknown model. Use {MODEL}, or {MODEL}/ and the name of a collection.")
    return AskScope(collection=collection)


def read_earlier(messages: Sequence[Message]) -> list[EarlierTurn]:
    """Return the last questions of a conversation with their answers. Instructions to a model are left out."""
    turns = list[EarlierTurn]()
    for one in messages:
        if one.role == "user":
            turns.append(EarlierTurn(one.text[:MOST_CHARACTERS]))
        elif one.role == "assistant" and turns:
            turns[-1] = replace(turns[-1], answer=one.text.partition(SOURCES)[0])
    return turns[-MOST_EARLIER:]


async def answer_chat(services: Services, asked: FollowUp) -> Answer:
    """Answer a question without storing it."""
    said, _ = await answer_understood(services, asked, await find_for_turn(services, asked))
    async with services.database.connection() as connection:
        return replace(said, citations=await place_citations(connection, asked.owner, said.citations))


# The response -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to one request. `base` is the base URL of this server, for links to documents."""

    id: str
    created: int
    model: str
    base: str

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the answer as one object. Its `octavo` field contains the citations with their quotes, in the format
        of the API.
        """
        message = {
            "role": "assistant",
            "content": "".join(write_parts(answer)),
            "refusal": None,
            "annotations": self._annotations(answer),
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return self._envelope("chat.completion", choice) | {"octavo": about(answer)}

    async def events(self, answering: Coroutine[Any, Any, Answer]) -> AsyncGenerator[bytes]:
        """Yield the answer as events. Its text is sent only after the whole answer has been checked."""
        yield self._event({"role": "assistant", "content": ""})
        try:
            async with cancelled_at_the_end(answering) as task:
                answer = await task
        except OctavoError as error:
            failure = {"error": openai_error(error.status, error.code, error.line)}
            yield write_event(json.dumps(failure))
            return
        for part in write_parts(answer):
            yield self._event({"content": part})
        yield self._event({"annotations": self._annotations(answer)}, "stop", {"octavo": about(answer)})
        yield DONE

    def _event(self, delta: dict[str, Any], finish: str | None = None, more: dict[str, Any] | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return write_event(json.dumps(self._envelope("chat.completion.chunk", choice) | (more or {})))

    def _envelope(self, kind: str, choice: dict[str, Any]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": [choice]}

    def _annotations(self, answer: Answer) -> list[dict[str, Any]]:
        """Return links from each statement to its verified citations."""
        found, start = list[dict[str, Any]](), 0
        for statement, part in zip(answer.statements, write_parts(answer), strict=False):
            for cited in (answer.citations[number - 1] for number in statement.citations):
                if cited.verified and not cited.gone:
                    link = {"title": cited.title, "url": urljoin(self.base, address_of(cited))}
                    place = {"start_index": start, "end_index": start + len(part.rstrip())}
                    found.append({"type": "url_citation", "url_citation": place | link})
            start += len(part)
        return found


def write_parts(answer: Answer) -> list[str]:
    """Return the answer in parts: one for each statement, then the note and the list of sources, if there are any."""
    parts = [f"{with_marks(one, answer.citations)}\n" for one in answer.statements]
    if answer.note:
        parts.append(f"\n{answer.note}\n")
    if answer.citations:
        parts.append(SOURCES + "\n".join(map(write_source, answer.citations)))
    return parts


def write_source(cited: Citation) -> str:
    page = f", page {cited.page}" if cited.page else ""
    doubt = "" if cited.verified else " (no exact match for this quote)"
    return f"[{cited.number}] {cited.title}{page}: “{' '.join(cited.quote.split())}”{doubt}"


def about(answer: Answer) -> dict[str, Any]:
    """Return the values that have no field in OpenAI's format.

    They have the same format as the `citations` event of `/api/v1/ask`.
    """
    sources = AnswerSources(
        answer.citations, answer.found, answer.made_by, answer.cost_usd, answer=answer.short, note=answer.note
    )
    return to_jsonable_python(asdict(sources))
