"""Answers to questions, as the server streams them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from octavo.client.errors import RemoteProblem, Unreachable
from octavo.client.following import SILENCE_SECONDS, read_data
from octavo.client.wire import Ask, Wire, read_problem
from octavo.core.http import EVENT_STREAM, read_events


@dataclass(frozen=True, slots=True)
class Citation:
    """`verified`: the quote stands in the passage, letter by letter; else it is only what a model claimed."""

    number: int
    document_id: UUID
    title: str
    chunk_id: UUID
    page: int | None
    quote: str
    verified: bool


@dataclass(frozen=True, slots=True)
class AnswerText:
    """A statement with the numbers of what it cites; `verified`: at least one of these is."""

    text: str
    citations: list[int]
    verified: bool


@dataclass(frozen=True, slots=True)
class AnswerSources:
    """What the statements cite, and who made them; `found`: the documents answer the question."""

    citations: list[Citation]
    found: bool
    made_by: str
    cost_usd: float


KINDS: dict[str, type[AnswerText | AnswerSources]] = {"text": AnswerText, "citations": AnswerSources}


async def follow_answer(
    wire: Wire, question: str, documents: Sequence[UUID]
) -> AsyncGenerator[tuple[type[AnswerText | AnswerSources], Any]]:
    """The events of an answer with their forms. Asked once: a stream that breaks is not asked for again by itself."""
    wanted: dict[str, object] = {"question": question}
    if documents:
        wanted["document_ids"] = [str(one) for one in documents]
    ask = Ask("POST", "/ask", headers={"accept": EVENT_STREAM}, json=wanted)
    async with wire.open(ask, silence_seconds=SILENCE_SECONDS) as answer:
        if not answer.is_success:
            await answer.aread()
            raise read_problem(answer)
        async with aclosing(read_events(answer.aiter_bytes())) as messages:
            async for message in messages:
                if message.name == "done":
                    return
                said = read_data(message)
                if message.name == "error":
                    raise RemoteProblem(int(said["status"]), str(said["code"]), str(said["title"]), said["detail"])
                if kind := KINDS.get(message.name):
                    yield kind, said
    raise Unreachable(f"{wire.address} ended the answer before it was whole.")
