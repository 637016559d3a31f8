"""Builds search hits: details of the chosen chunks, the reason for each, and the sentence that matched."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from octavo.ai.calls import LOCAL, Caller, ModelAnswer
from octavo.ai.vectors import Vectors
from octavo.core.errors import OctavoError
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.library.documents import moment_url
from octavo.records.search import Scores, SearchHit, Why
from octavo.search.snippets import BEGIN, END, Snippet, cut_snippet, plain_sentences

QUERIES = load_queries("search")
# The most sentences embedded for one page of hits. It takes a few milliseconds per sentence.
MOST_SENTENCES = 60


class QueryEmbedder(Protocol):
    """Embeds texts. The AI gateway implements this."""

    async def embed(self, texts: Sequence[str], caller: Caller, model: str | None = None) -> ModelAnswer[Vectors]: ...


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a hit was found. `text` and `semantic` are its scores by words and by meaning; `field` is the field of the
    document that matched.
    """

    text: float | None = None
    semantic: float | None = None
    field: Why | None = None

    @property
    def why(self) -> Why:
        if self.text is not None and self.semantic is not None:
            return "both"
        if self.text is None and self.semantic is not None:
            return self.field or "meaning"
        return self.field if self.field and self.text is None else "words"


@dataclass(frozen=True, slots=True)
class HitDraft:
    """A hit whose snippet is not cut yet. `row` has the details from the database."""

    row: Row
    score: float
    reason: Reason

    @property
    def needs_sentence(self) -> bool:
        """Whether no matched word shows which sentence matched."""
        return self.reason.semantic is not None and BEGIN not in self.row["marked"]


async def read_details(
    connection: Connection, owner: UUID, keys: Sequence[UUID], marked: str | None
) -> dict[UUID, dict[str, Any]]:
    """The details of hits by their keys: ids of chunks, or of documents without text."""
    values = {"owner": owner, "marked": marked, "begin": BEGIN, "end": END}
    chunks = await fetch_rows(connection, QUERIES.details, {**values, "chunks": list(keys)}, prepare=False)
    found: dict[UUID, dict[str, Any]] = {row["chunk_id"]: dict(row) for row in chunks}
    documents = [row["document_id"] for row in found.values()] + [key for key in keys if key not in found]
    fields = await fetch_rows(connection, QUERIES.document_details, {**values, "documents": documents}, prepare=False)
    by_document = {row["document_id"]: row for row in fields}
    for row in found.values():
        row.update({name: by_document[row["document_id"]][name] for name in ("filename", "tags")})
    without_text: dict[str, Any] = {
        "chunk_id": None,
        "heading_path": [],
        "page_from": None,
        "seconds": None,
        "source_url": None,
    }
    return found | {key: {**row, **without_text} for key, row in by_document.items() if key in set(keys)}


async def choose_sentences(
    embedder: QueryEmbedder, owner: UUID, query: str, drafts: Sequence[HitDraft]
) -> dict[UUID, int]:
    """For each hit found only by meaning, the index of the sentence nearest to the query, by the local model.

    Hits beyond the limit show the beginning of their chunk.
    """
    sentences: dict[UUID, list[str]] = {}
    for draft in drafts:
        if draft.needs_sentence and draft.row["chunk_id"]:
            sentences[draft.row["chunk_id"]] = plain_sentences(draft.row["marked"])
    chosen = _within_limit(sentences)
    if not chosen:
        return {}
    texts = [query, *(text for texts in chosen.values() for text in texts)]
    try:
        embedded = await embedder.embed(texts, Caller(owner), LOCAL)
    except OctavoError:
        return {}
    return _nearest_sentences(chosen, embedded.output.vectors)


def _within_limit(sentences: Mapping[UUID, list[str]]) -> dict[UUID, list[str]]:
    chosen: dict[UUID, list[str]] = {}
    left = MOST_SENTENCES
    for chunk, texts in sentences.items():
        if 1 < len(texts) <= left:
            chosen[chunk] = texts
            left -= len(texts)
    return chosen


def _nearest_sentences(sentences: Mapping[UUID, list[str]], vectors: Sequence[Sequence[float]]) -> dict[UUID, int]:
    query, *rest = vectors
    left = iter([sum(a * b for a, b in zip(query, vector, strict=True)) for vector in rest])
    scores = {chunk: [next(left) for _ in texts] for chunk, texts in sentences.items()}
    return {chunk: max(range(len(one)), key=one.__getitem__) for chunk, one in scores.items()}


def finish_hit(draft: HitDraft, sentence: int | None = None) -> SearchHit:
    """Cut the snippet: around the matched words, or around the given sentence."""
    row, why = draft.row, draft.reason.why
    snippet = cut_snippet(row["marked"], chosen=sentence)
    return SearchHit(
        document_id=row["document_id"],
        title=row["title"],
        source_type=row["source_type"],
        chunk_id=row["chunk_id"],
        snippet=snippet.text,
        marks=snippet.marks,
        page=_page(row, snippet),
        heading_path=row["heading_path"],
        seconds=row["seconds"],
        url=moment_url(row["source_url"], row["seconds"]),
        score=round(draft.score, 6),
        scores=Scores(draft.reason.text, draft.reason.semantic),
        why=why,
        sentence=snippet.sentence,
        matched=_matched(row, why),
    )


def _matched(row: Row, why: Why) -> str | None:
    fields = {"title": row["title"], "tag": ", ".join(row["tags"]), "filename": row["filename"]}
    return fields.get(why)


def _page(row: Row, snippet: Snippet) -> int | None:
    """The page of the snippet, if the chunk spans several pages."""
    if row["page_from"] is None:
        return None
    return row["page_from"] + bisect_right(row["page_starts"], row["char_start"] + snippet.at)
