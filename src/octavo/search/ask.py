"""Answers a question: finds chunks, lets a model answer from them, and verifies the citations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from octavo.ai.calls import LOCAL, Caller
from octavo.ai.gateway import Gateway
from octavo.ai.tasks.answer_question import ANSWER_QUESTION, QuestionToAnswer
from octavo.core.errors import NotFound
from octavo.database import Database, fetch_rows, load_queries
from octavo.language.insights import ChunkText
from octavo.library.documents import find_documents
from octavo.records.search import SourceSnippet, Statement
from octavo.search.chunk_search import SearchOptions, find_drafts
from octavo.search.citations import Answer, SourceChunk, cite
from octavo.search.fact_answers import answer_from_facts
from octavo.search.hits import HitDraft, finish_hit
from octavo.search.query import Filters

QUERIES = load_queries("search")
MOST_CHUNKS = 12
# Most chunks per document if all documents are searched. If documents were chosen, one may provide all chunks.
MOST_OF_ONE = 5
MOST_CHARACTERS = 48_000
NOTHING = "These documents do not answer the question."


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the chunks to answer it from. Models get no other text. `snippets` are parts of the same chunks.

    `fact` is the answer if the question asks for a known fact.
    """

    owner: UUID
    text: str
    sources: Sequence[SourceChunk]
    snippets: Sequence[SourceSnippet] = ()
    fact: Answer | None = None


async def find_sources(
    database: Database, gateway: Gateway, owner: UUID, question: str, documents: Sequence[UUID] = ()
) -> Question:
    """Find the best chunks for a question, in all documents or only in `documents`.

    Raises `NotFound` if one of them does not exist.
    """
    if documents:
        async with database.connection() as connection:
            known = {one.id for one in await find_documents(connection, owner, documents)}
        if missing := set(documents) - known:
            raise NotFound(f"Document {min(missing)}.")
    # A question has no query syntax: its quotation marks and hyphens are plain text.
    words = question.replace('"', " ").replace(" -", " ")
    options = SearchOptions(
        limit=MOST_CHUNKS,
        filters=Filters(documents=documents),
        most_of_one=None if documents else MOST_OF_ONE,
        nearest_always=True,  # the model judges whether they answer the question
    )
    drafts = await find_drafts(database, gateway, owner, words, options)
    hits = {draft.row["chunk_id"]: draft for draft in drafts if draft.row["chunk_id"]}
    async with database.connection() as connection:
        rows = await fetch_rows(connection, QUERIES.source_chunks, {"owner": owner, "chunks": list(hits)})
        fact = await answer_from_facts(connection, owner, question, documents)
    sources = _fitting([SourceChunk(**row) for row in rows])
    return Question(owner, question, sources, [_snippet(hits[one.chunk_id]) for one in sources], fact)


def _snippet(draft: HitDraft) -> SourceSnippet:
    hit = finish_hit(draft)
    return SourceSnippet(hit.document_id, hit.title, draft.row["chunk_id"], hit.page, hit.snippet)


async def answer(gateway: Gateway, question: Question) -> Answer:
    """Answer a question from known facts or, within the owner's budget, with a model.

    If neither is possible, the answer is a list of quoted sentences, found offline.
    """
    if question.fact:
        return question.fact
    if not question.sources:
        return _nothing(LOCAL, 0.0)
    passages = [ChunkText(one.content, (one.title, *one.heading_path)) for one in question.sources]
    answered = await gateway.ask(ANSWER_QUESTION, QuestionToAnswer(question.text, passages), Caller(question.owner))
    cost = float(answered.cost_usd)
    if not answered.output.statements:
        return _nothing(answered.made_by, cost)
    statements, citations = cite(answered.output, question.sources)
    return Answer(found=True, statements=statements, citations=citations, made_by=answered.made_by, cost_usd=cost)


def _nothing(made_by: str, cost: float) -> Answer:
    statements = [Statement(NOTHING, [], verified=False)]
    return Answer(found=False, statements=statements, citations=[], made_by=made_by, cost_usd=cost)


def _fitting(sources: Sequence[SourceChunk]) -> list[SourceChunk]:
    """The best chunks that fit within the character limit. Returns at least one."""
    chosen, left = list[SourceChunk](), MOST_CHARACTERS
    for source in sources:
        if len(source.content) <= left or not chosen:
            chosen.append(source)
            left -= len(source.content)
    return chosen
