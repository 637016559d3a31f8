"""Questions to an owner's documents, answered with what they say."""

from __future__ import annotations

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from octavo.ask import Answer, Asking, answer, find_passages
from octavo.web.api import problems
from octavo.web.asking import AnswerStream, tell
from octavo.web.parts import Parts, PartsOf, Reading

router = APIRouter(prefix="/api/v1", tags=["search"])
MOST_CHARACTERS = 1000
MOST_CHOSEN = 100
_CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
# Any text with something in it.
Question = Annotated[str, Field(max_length=MOST_CHARACTERS, pattern=rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$")]
EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["text", "citations", "done", "error"]},
        "data": {"type": "string", "description": "JSON."},
    },
}
STREAM = {
    200: {
        "description": "`text` for each statement, `citations` once, then `done`; or `error`.",
        "content": {"text/event-stream": {"schema": EVENT}},
    }
}


class AskRequest(BaseModel):
    """`document_ids`: only these are asked; without them, all."""

    model_config = ConfigDict(extra="forbid")

    question: Question
    document_ids: Annotated[list[UUID], Field(min_length=1, max_length=MOST_CHOSEN)] | None = None


@router.post("/ask", responses={**problems(401, 404, 422, 429), **STREAM}, response_class=Response)
async def ask(parts: PartsOf, caller: Reading, wanted: AskRequest) -> AnswerStream:
    """Have a question answered from your documents, as server-sent events.

    Each `text` event is a statement: its text with the numbers of its citations. The `citations` event lists these with
    document, passage, page and quote; `verified` says whether the quote stands there, letter by letter. The answer is
    made as a whole and sent statement by statement. Without a model it consists of sentences of the documents.
    """
    gateway = parts.models.gateway
    asking = await find_passages(parts.database, gateway, caller.owner_id, wanted.question, wanted.document_ids or ())
    return AnswerStream(tell(partial(answer_in_turn, parts, asking)))


async def answer_in_turn(parts: Parts, asking: Asking) -> Answer:
    """A few at once: without a model it takes this machine's processor for a moment."""
    async with parts.answering.take():
        return await answer(parts.models.gateway, asking)
