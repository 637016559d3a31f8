"""Answers the questions in threads, for the API and the pages.

First finds the chunks that may contain the answer, then answers from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from octavo.ai.providers import OnText
from octavo.ai.tasks.rewrite_question import EarlierTurn
from octavo.core.errors import OctavoError
from octavo.records.search import Citation
from octavo.search.ask import Question as AskedQuestion
from octavo.search.ask import answer, find_sources, understand
from octavo.search.citations import Answer
from octavo.search.query import Filters
from octavo.search.threads import StartedTurn, fail_turn, finish_turn, place_citations
from octavo.web.context.services import Services
from octavo.web.http.limits import ConcurrencyLimit

# How many questions are answered in parallel, how many wait, and when to retry if too many wait.
PARALLEL_ANSWERS, ANSWERS_WAIT, ANSWERS_BUSY_SECONDS = 8, 40, 5.0


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A stored question that has no answer yet, and the filters for the documents to search."""

    owner: UUID
    turn: StartedTurn
    filters: Filters

    @property
    def asked(self) -> FollowUp:
        turn = self.turn
        return FollowUp(self.owner, turn.question, self.filters, turn.earlier, turn.sources, turn.attempt - 1)


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question, the turns before it, and the documents to ask.

    If `generation` is increased, the model answers the same question again instead of reusing its stored answer.
    """

    owner: UUID
    question: str
    filters: Filters
    earlier: Sequence[EarlierTurn] = ()
    sources: Sequence[UUID] = ()
    generation: int = 0


@dataclass(frozen=True, slots=True)
class UnderstoodTurn:
    """A question with the chunks that may contain its answer. `understood_as` is None if the question was not
    rewritten.
    """

    question: AskedQuestion
    understood_as: str | None


async def find_for_turn(services: Services, asked: FollowUp) -> UnderstoodTurn:
    """Make a follow-up question self-contained, and find the chunks that may contain its answer."""
    gateway = services.models.gateway
    meant = await understand(gateway, asked.owner, asked.question, asked.earlier, asked.sources)
    filters = replace(asked.filters, documents=[meant.only]) if meant.only else asked.filters
    found = await find_sources(
        services.database,
        gateway,
        asked.owner,
        meant.text,
        filters,
        preferred=meant.preferred,
        asked=meant.asked,
        generation=asked.generation,
    )
    return UnderstoodTurn(found, meant.text if meant.text.split() != asked.question.split() else None)


async def answer_understood(
    services: Services, asked: FollowUp, found: UnderstoodTurn, on_text: OnText | None = None
) -> tuple[Answer, str | None]:
    """Answer a question. If the rewritten question has no answer, answer the original question.

    Returns the answer and the rewritten question. The second value is None if the original question was answered.
    """
    said = await answer_in_turn(services, found.question, on_text)
    if said.found or not found.understood_as:
        return said, found.understood_as
    gateway = services.models.gateway
    alone = await find_sources(services.database, gateway, asked.owner, asked.question, asked.filters)
    second = await answer_in_turn(services, replace(alone, generation=asked.generation), on_text)
    cost = said.cost_usd + second.cost_usd
    if second.found:
        return replace(second, cost_usd=cost), None
    return replace(said, cost_usd=cost), found.understood_as


async def answer_turn(
    services: Services, opened: OpenTurn, found: UnderstoodTurn, on_text: OnText | None = None
) -> Answer:
    """Answer the question of a turn and store the answer."""
    said, understood_as = await answer_understood(services, opened.asked, found, on_text)
    async with services.database.transaction() as connection:
        said = replace(said, citations=await place_citations(connection, opened.owner, said.citations))
        await finish_turn(connection, opened.turn, said, understood_as)
    return said


async def give_up(services: Services, opened: OpenTurn, error: OctavoError) -> None:
    """Store the reason why a question was not answered."""
    async with services.database.transaction() as connection:
        await fail_turn(connection, opened.turn, error)


def address_of(cited: Citation) -> str:
    """Return the path of the reading page, opened at the cited chunk."""
    return f"/documents/{cited.document_id}?c={cited.chunk_id}#c-{cited.chunk_id}"


def answer_limit(_: Services) -> ConcurrencyLimit:
    return ConcurrencyLimit(PARALLEL_ANSWERS, ANSWERS_WAIT, ANSWERS_BUSY_SECONDS)


async def answer_in_turn(services: Services, asking: AskedQuestion, on_text: OnText | None = None) -> Answer:
    """Answer a question.

    The number of parallel answers is limited, because answering without a model uses this machine's CPU.
    """
    async with services.shared(answer_limit).take():
        return await answer(services.models.gateway, asking, on_text)
