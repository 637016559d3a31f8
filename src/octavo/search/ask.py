"""Answers a question: understands follow-up questions, finds chunks, and lets a model answer from them.

The citations of the answer are verified. No model is needed for questions about a known fact, and for questions that
request a list of documents, such as "Which documents mention ferries?".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from uuid import UUID

from octavo.ai.calls import LOCAL, Caller
from octavo.ai.gateway import Gateway
from octavo.ai.providers import OnText
from octavo.ai.tasks.answer_question import ANSWER_QUESTION, OfflineAnswer, QuestionToAnswer
from octavo.ai.tasks.rewrite_question import REWRITE_QUESTION, EarlierTurn, FollowUp, rewrite_offline
from octavo.core.errors import BadInput, NotFound, OctavoError
from octavo.database import Database, fetch_rows, load_queries
from octavo.language.insights import ChunkText, DocumentType
from octavo.language.markdown_segments import split_sentences
from octavo.language.vocabulary import STOPWORDS, WORD
from octavo.library.collections import list_collections
from octavo.library.documents import find_documents
from octavo.records.search import AskScope, Citation, SourceSnippet, Statement
from octavo.search.chunk_search import SearchOptions, find_drafts
from octavo.search.citations import Answer, SourceChunk, cite
from octavo.search.fact_answers import answer_from_facts
from octavo.search.hits import BEGIN, END, HitDraft, finish_hit
from octavo.search.query import Filters, parse_query

QUERIES = load_queries("search")
MOST_CHUNKS = 12
# The maximum number of chunks per document if all documents are searched. A chosen document may provide all chunks.
MOST_OF_ONE = 5
MOST_CHARACTERS = 48_000
MOST_LISTED = 20
# The maximum number of documents that the words of a scope select.
MOST_SELECTED = 100
_EMPTY_WORDS = frozenset(
    {"one", "ones", "same", "also", "many", "much", "long", "often", "happen", "happens", "exactly"}
)
_NOT_SYNTAX = str.maketrans(dict.fromkeys('"\u201c\u201d\u201e\u00ab\u00bb', " "))
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
    """A question, and the chunks from which to answer it. Models receive only these chunks.

    `snippets` are the best matching parts of the chunks. `known` is an answer that needs no chunks: a fact, or a list
    of documents. A stored answer is reused only if it has the same `generation`. To get a new answer, pass another
    number.
    """

    owner: UUID
    text: str
    sources: Sequence[SourceChunk]
    snippets: Sequence[SourceSnippet] = ()
    known: Answer | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Understood:
    """A follow-up question to which the missing words were added. `asked` is the original question.

    `preferred` are the documents that the previous answer cited, if the question is probably about them. They are also
    searched for the words of `asked`. `only` is a document that the question is certainly about.
    """

    text: str
    preferred: Sequence[UUID] = ()
    only: UUID | None = None
    asked: str | None = None


# Understanding ------------------------------------------------------------------------------------------------------


async def understand(
    gateway: Gateway, owner: UUID, question: str, earlier: Sequence[EarlierTurn], sources: Sequence[UUID]
) -> Understood:
    """Add the words that a follow-up question leaves out. `sources` are the documents cited by the last answer.

    Without a model, or if the model fails, rules add the words.
    """
    if not earlier:
        return Understood(question)
    given = FollowUp(question, earlier)
    try:
        rewritten = (await gateway.ask(REWRITE_QUESTION, given, Caller(owner))).output
    except OctavoError:
        rewritten = rewrite_offline(given)
    only = sources[rewritten.source - 1] if rewritten.source and rewritten.source <= len(sources) else None
    preferred = list(dict.fromkeys(sources)) if rewritten.same_documents else []
    return Understood(rewritten.question, preferred, only, question)


async def resolve_scope(
    database: Database, gateway: Gateway, owner: UUID, scope: AskScope, *, is_new: bool = True
) -> Filters:
    """Return the filters for a scope. Raises `NotFound` if a collection or a document does not exist.

    If `is_new` is false, documents that have been deleted in the meantime are left out. In that case, raises `BadInput`
    if no document remains.
    """
    if scope.query is not None:
        return await _limit_to_query(database, gateway, owner, scope.query)
    async with database.connection() as connection:
        if scope.collection is not None:
            names = [one.name for one in await list_collections(connection, owner)]
            missing = [scope.collection] if scope.collection.lower() not in map(str.lower, names) else []
        else:
            known = {one.id for one in await find_documents(connection, owner, scope.document_ids or [])}
            missing = [one for one in scope.document_ids or [] if one not in known]
    if missing and is_new:
        raise NotFound(f"{'Collection' if scope.collection else 'Document'} {missing[0]}.")
    left = [one for one in scope.document_ids or [] if one not in missing]
    if missing and not left:
        raise BadInput("scope: the documents of this thread were deleted. Choose other documents.")
    return Filters(documents=left, collection=scope.collection)


async def _limit_to_query(database: Database, gateway: Gateway, owner: UUID, query: str) -> Filters:
    """Return filters for the documents that match a query. Raises `BadInput` if there are none.

    Operators such as `type:invoice` become filters. Other words select the documents that match best.
    """
    parsed = parse_query(query)
    options = SearchOptions("text", MOST_SELECTED if parsed.words else 1, most_of_one=1)
    drafts = await find_drafts(database, gateway, owner, query, options)
    if not drafts:
        raise BadInput(f"scope.query: no document matches {query}")
    return (
        Filters(documents=[one.row["document_id"] for one in drafts]) if parsed.words else Filters(facts=parsed.facts)
    )


# Finding ------------------------------------------------------------------------------------------------------------


async def find_sources(
    database: Database,
    gateway: Gateway,
    owner: UUID,
    question: str,
    filters: Filters | None = None,
    *,
    preferred: Sequence[UUID] = (),
    asked: str | None = None,
    generation: int = 0,
) -> Question:
    """Find the best chunks for a question.

    `asked` is the question before it was rewritten. Up to three searches are run: for `asked` in the preferred
    documents, for `question` in all documents, and for `asked` in all documents, in case the rewritten question is
    wrong. The result takes the first hit of each search, then the second hit of each, and so on.
    """
    chosen = filters or Filters()
    favoured = [replace(chosen, documents=found)] if (found := _among(preferred, chosen)) else []
    searches = [*((_own_words(asked) or question, one) for one in favoured), (question, chosen)]
    if (own := _own_words(asked)) and own != question:
        searches.append((own, chosen))
    hits = await _find_chunks(database, gateway, owner, searches)
    async with database.connection() as connection:
        rows = await fetch_rows(connection, QUERIES.source_chunks, {"owner": owner, "chunks": list(hits)})
        known = None
        for one in (*favoured, chosen):
            known = known or await answer_from_facts(connection, owner, question, one)
    known = known or await _list_documents(database, gateway, owner, question, chosen)
    sources = _fitting([SourceChunk(**row) for row in rows])
    return Question(owner, question, sources, [_snippet(hits[one.chunk_id]) for one in sources], known, generation)


def _own_words(asked: str | None) -> str | None:
    """Return the question if it has words to search for, as in "And how much is the deposit?".

    Returns None if it has none, as in "And why?".
    """
    words = [word for word in WORD.findall(asked or "") if word.lower() not in STOPWORDS["en"] | _EMPTY_WORDS]
    return asked if words else None


def _among(preferred: Sequence[UUID], filters: Filters) -> list[UUID]:
    return [one for one in preferred if not filters.documents or one in filters.documents]


async def _find_chunks(
    database: Database, gateway: Gateway, owner: UUID, searches: Sequence[tuple[str, Filters]]
) -> dict[UUID, HitDraft]:
    """Run several searches and merge their hits: the first hit of each search, then the second of each, and so on."""
    found: list[list[HitDraft]] = []
    for question, filters in searches:
        # A question has no query syntax: its quotation marks and hyphens are plain text.
        words = question.translate(_NOT_SYNTAX).replace(" -", " ")
        options = SearchOptions(
            limit=MOST_CHUNKS,
            filters=filters,
            most_of_one=None if filters.documents else MOST_OF_ONE,
            nearest_always=True,  # the model judges whether they answer the question
        )
        found.append(await find_drafts(database, gateway, owner, words, options))
    merged = [draft for drafts in zip_longest(*found) for draft in drafts if draft and draft.row["chunk_id"]]
    hits: dict[UUID, HitDraft] = {}
    for draft in merged:
        hits.setdefault(draft.row["chunk_id"], draft)
    return dict(islice(hits.items(), MOST_CHUNKS))


def _snippet(draft: HitDraft) -> SourceSnippet:
    hit = finish_hit(draft)
    return SourceSnippet(hit.document_id, hit.title, draft.row["chunk_id"], hit.page, hit.snippet)


# Answering ----------------------------------------------------------------------------------------------------------


async def answer(gateway: Gateway, question: Question, on_text: OnText | None = None) -> Answer:
    """Answer a question from known facts or, within the account's budget, with a model.

    If neither is possible, the answer consists of quoted sentences that were found without a model. While a model is
    writing, `on_text` is called with the unverified text so far.
    """
    if question.known:
        return question.known
    if not question.sources:
        return _nothing(LOCAL, 0.0)
    passages = [ChunkText(one.content, (one.title, *one.heading_path)) for one in question.sources]
    caller = Caller(question.owner, generation=question.generation)
    answered = await gateway.ask(ANSWER_QUESTION, QuestionToAnswer(question.text, passages), caller, on_text=on_text)
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
    """Return the search query for a question such as "Which letters mention birches?".

    Returns None for other questions.
    """
    match = _ASKS_LIST.match(question)
    if not match:
        return None
    ignored = STOPWORDS["en"] | STOPWORDS["de"]
    words = [word for word in WORD.findall(match["topic"]) if word.lower() not in ignored]
    kind = _KINDS.get(match["noun"].lower())
    required = " ".join(f'"{word}"' for word in words)
    return f"type:{kind} {required}" if kind and words else required or None


async def _list_documents(
    database: Database, gateway: Gateway, owner: UUID, question: str, filters: Filters
) -> Answer | None:
    """Answer a question that requests a list of documents, such as "Which letters mention birches?".

    The documents must contain all words of the query. Returns None for other questions.
    """
    query = read_list_question(question)
    if query is None:
        return None
    options = SearchOptions("text", MOST_LISTED + 1, filters, most_of_one=1)
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
    """Return the best chunks that together stay below the character limit. The best chunk is always included."""
    chosen, left = list[SourceChunk](), MOST_CHARACTERS
    for source in sources:
        if len(source.content) <= left or not chosen:
            chosen.append(source)
            left -= len(source.content)
    return chosen
