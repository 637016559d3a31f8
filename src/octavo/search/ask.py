"""Answers a question: finds chunks, lets a model answer from them, and verifies the citations.

A question about a known fact, or about which documents mention something, is answered without a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from octavo.ai.calls import LOCAL, Caller
from octavo.ai.gateway import Gateway
from octavo.ai.tasks.answer_question import ANSWER_QUESTION, OfflineAnswer, QuestionToAnswer
from octavo.core.errors import NotFound
from octavo.database import Database, fetch_rows, load_queries
from octavo.language.insights import ChunkText, DocumentType
from octavo.language.sentences import split_sentences
from octavo.language.vocabulary import STOPWORDS, WORD
from octavo.library.documents import find_documents
from octavo.records.search import Citation, SourceSnippet, Statement
from octavo.search.chunk_search import SearchOptions, find_drafts
from octavo.search.citations import Answer, SourceChunk, cite
from octavo.search.fact_answers import answer_from_facts
from octavo.search.hits import BEGIN, END, HitDraft, finish_hit
from octavo.search.query import Filters

QUERIES = load_queries("search")
MOST_CHUNKS = 12
# Most chunks per document if all documents are searched. If documents were chosen, one may provide all chunks.
MOST_OF_ONE = 5
MOST_CHARACTERS = 48_000
MOST_LISTED = 20
NOTHING = "These documents do not answer the question."
_KINDS = {f"{one.value.replace('_', ' ')}s": one.value for one in DocumentType}
_ASKS_LIST = re.compile(
    r"\W*(?:in )?(?:which|what|list|find|show(?: me)?|welchen?)(?: (?:all|the|my|of|these|every|meiner))*"
    rf" (?P<noun>documents?|files?|texts?|dokumenten?|dateien|texten?|{'|'.join(_KINDS)})"
    r"(?: (?:that|which|in which|die))? (?:mention|name|contain|include|talk about|speak (?:of|about)|refer to|discuss"
    r"|describe|cover|deal with|say (?:some|any)thing about|are about|about|erwähnen|nennen|enthalten|beschreiben"
    r"|handeln von|geht es um)s? (?:the words? )?(?P<topic>[^?]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the chunks to answer it from. Models receive only these chunks.

    `snippets` are parts of these chunks. `known` is an answer that needs no chunks: a fact, or a list of documents.
    """

    owner: UUID
    text: str
    sources: Sequence[SourceChunk]
    snippets: Sequence[SourceSnippet] = ()
    known: Answer | None = None


async def find_sources(
    database: Database, gateway: Gateway, owner: UUID, question: str, documents: Sequence[UUID] = ()
) -> Question:
    """Find the best chunks for a question, in all documents or only in `documents`.

    Raises `NotFound` if one of `documents` does not exist.
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
        known = await answer_from_facts(connection, owner, question, documents)
    known = known or await _list_documents(database, gateway, owner, question, documents)
    sources = _fitting([SourceChunk(**row) for row in rows])
    return Question(owner, question, sources, [_snippet(hits[one.chunk_id]) for one in sources], known)


def _snippet(draft: HitDraft) -> SourceSnippet:
    hit = finish_hit(draft)
    return SourceSnippet(hit.document_id, hit.title, draft.row["chunk_id"], hit.page, hit.snippet)


async def answer(gateway: Gateway, question: Question) -> Answer:
    """Answer a question from known facts or, within the account's budget, with a model.

    If neither is possible, the answer consists of quoted sentences that were found without a model.
    """
    if question.known:
        return question.known
    if not question.sources:
        return _nothing(LOCAL, 0.0)
    passages = [ChunkText(one.content, (one.title, *one.heading_path)) for one in question.sources]
    answered = await gateway.ask(ANSWER_QUESTION, QuestionToAnswer(question.text, passages), Caller(question.owner))
    output, cost = answered.output, float(answered.cost_usd)
    short, note = (output.short, output.note) if isinstance(output, OfflineAnswer) else (None, None)
    if not output.statements:
        return _nothing(answered.made_by, cost, note)
    statements, citations = cite(output, question.sources)
    return Answer(
        found=True,
        statements=statements,
        citations=citations,
        made_by=answered.made_by,
        cost_usd=cost,
        short=short,
        note=note,
    )


def _nothing(made_by: str, cost: float, note: str | None = None) -> Answer:
    statements = [Statement(NOTHING, [], verified=False)]
    return Answer(found=False, statements=statements, citations=[], made_by=made_by, cost_usd=cost, note=note)


def read_list_question(question: str) -> str | None:
    """Return the search query for a question such as "Which letters mention birches?", or None for other questions."""
    match = _ASKS_LIST.match(question)
    if not match:
        return None
    ignored = STOPWORDS["en"] | STOPWORDS["de"]
    words = [word for word in WORD.findall(match["topic"]) if word.lower() not in ignored]
    kind = _KINDS.get(match["noun"].lower())
    required = " ".join(f'"{word}"' for word in words)
    return f"type:{kind} {required}" if kind and words else required or None


async def _list_documents(
    database: Database, gateway: Gateway, owner: UUID, question: str, documents: Sequence[UUID]
) -> Answer | None:
    """List the documents that contain all words of the query."""
    query = read_list_question(question)
    if query is None:
        return None
    options = SearchOptions("text", MOST_LISTED + 1, Filters(documents=documents), most_of_one=1)
    drafts = [one for one in await find_drafts(database, gateway, owner, query, options) if one.row["chunk_id"]]
    if not drafts:
        return _nothing(LOCAL, 0.0)
    citations = [_cite_hit(draft, number) for number, draft in enumerate(drafts[:MOST_LISTED], start=1)]
    count = "One document contains" if len(citations) == 1 else f"{len(citations)} documents contain"
    more = "More than " if len(drafts) > MOST_LISTED else ""
    first = Statement(f"{more}{count} these words:", [], verified=True)
    listed = [Statement(one.title, [one.number], verified=True) for one in citations]
    return Answer(found=True, statements=[first, *listed], citations=citations, made_by=LOCAL, cost_usd=0.0)


def _cite_hit(draft: HitDraft, number: int) -> Citation:
    """Cite the sentence that contains the first matched word."""
    row, before = draft.row, draft.row["marked"].partition(BEGIN)[0]
    content = row["marked"].replace(BEGIN, "").replace(END, "")
    place = len(before) if BEGIN in row["marked"] else 0
    start, end = next((one for one in split_sentences(content) if one[1] > place), (0, len(content)))
    page = finish_hit(draft).page
    return Citation(number, row["document_id"], row["title"], row["chunk_id"], page, content[start:end], verified=True)


def _fitting(sources: Sequence[SourceChunk]) -> list[SourceChunk]:
    """Return the best chunks that together fit into the character limit, but at least one."""
    chosen, left = list[SourceChunk](), MOST_CHARACTERS
    for source in sources:
        if len(source.content) <= left or not chosen:
            chosen.append(source)
            left -= len(source.content)
    return chosen
