"""Finds passages for a question, has it answered from them, and looks the citations up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from octavo.ai.calls import LOCAL, Caller
from octavo.ai.gateway import Gateway
from octavo.ai.tasks.answer_question import ANSWER_QUESTION, QuestionToAnswer
from octavo.ask.citing import Source, cite
from octavo.ask.contract import Answer, Said
from octavo.core.errors import NotFound
from octavo.database import Database, fetch_rows, load_queries
from octavo.language.insights import Passage
from octavo.library.documents import find_documents
from octavo.search import Filters, find

QUERIES = load_queries("ask")
MOST_PASSAGES = 12
# Of one document among all; who chose documents may get everything from one of them.
MOST_OF_ONE = 5
MOST_CHARACTERS = 48_000
NOTHING = "Nothing in these documents answers this."


@dataclass(frozen=True, slots=True)
class Asking:
    """A question with what it is answered from: nothing else is shown to anybody."""

    owner: UUID
    question: str
    sources: Sequence[Source]


async def find_passages(
    database: Database, gateway: Gateway, owner: UUID, question: str, documents: Sequence[UUID] = ()
) -> Asking:
    """The passages that fit a question best, of all documents or of those chosen; a stranger's are not found."""
    if documents:
        async with database.connection() as connection:
            known = {one.id for one in await find_documents(connection, owner, documents)}
        if missing := set(documents) - known:
            raise NotFound(f"Document {min(missing)}.")
    # A question is no query: quotation marks and hyphens in it are only marks.
    words = question.replace('"', " ").replace(" -", " ")
    found = await find(
        database,
        gateway,
        owner,
        words,
        limit=MOST_PASSAGES,
        filters=Filters(documents=documents),
        most_of_one=None if documents else MOST_OF_ONE,
    )
    chunks = [hit.chunk_id for hit in found.items]
    async with database.connection() as connection:
        rows = await fetch_rows(connection, QUERIES.passages, {"owner": owner, "chunks": chunks})
    return Asking(owner, question, _fitting([Source(**row) for row in rows]))


async def answer(gateway: Gateway, asking: Asking) -> Answer:
    """By a model within the owner's budget, or offline with sentences of the documents themselves."""
    if not asking.sources:
        return _nothing(LOCAL, 0.0)
    passages = [Passage(one.content, (one.title, *one.heading_path)) for one in asking.sources]
    answered = await gateway.ask(ANSWER_QUESTION, QuestionToAnswer(asking.question, passages), Caller(asking.owner))
    cost = float(answered.cost_usd)
    if not answered.output.statements:
        return _nothing(answered.made_by, cost)
    statements, citations = cite(answered.output, asking.sources)
    return Answer(found=True, statements=statements, citations=citations, made_by=answered.made_by, cost_usd=cost)


def _nothing(made_by: str, cost: float) -> Answer:
    said = [Said(NOTHING, [], verified=False)]
    return Answer(found=False, statements=said, citations=[], made_by=made_by, cost_usd=cost)


def _fitting(sources: Sequence[Source]) -> list[Source]:
    """As many of the best as a model should be shown; the best one in any case."""
    chosen, room = list[Source](), MOST_CHARACTERS
    for source in sources:
        if len(source.content) <= room or not chosen:
            chosen.append(source)
            room -= len(source.content)
    return chosen
