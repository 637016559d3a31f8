"""Search hits, answers with citations, and connections between documents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal
from uuid import UUID

Mode = Literal["hybrid", "text", "semantic"]
# Why a hit was found: its words, its meaning, both; or the title, a tag or the file name of its document.
Why = Literal["words", "meaning", "both", "title", "tag", "filename"]


class Engine(StrEnum):
    SIMILARITY = "semantic_similarity"
    CONTRADICTION = "contradiction_detection"
    BRIDGE = "thematic_bridge"


class Status(StrEnum):
    """The status of a connection.

    `POSSIBLE`: a person or a configured model should confirm the connection. It was found without a model, and tests
    have not shown that at least 80 % of such connections are right. `DISMISSED`: rejected by a person.
    """

    FOUND = "found"
    POSSIBLE = "possible"
    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a chunk: the BM25 score of the search by words, and the similarity of the search by meaning.

    A score is None if that search did not find the chunk.
    """

    text: float | None
    semantic: float | None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A matching chunk. `snippet` is plain text; `marks` are the start and end of each matched word in it.

    `score` is between 0 and 1, and can be compared only within one search. In a video transcript, `seconds` is the time
    at which the chunk begins, and `url` opens the video at that time.
    """

    document_id: UUID
    title: str
    source_type: str
    chunk_id: UUID | None
    snippet: str
    marks: list[tuple[int, int]]
    page: int | None
    heading_path: list[str]
    seconds: float | None
    score: float
    scores: Scores
    url: str | None = None
    why: Why = "words"
    sentence: str = ""
    matched: str | None = None


@dataclass(frozen=True, slots=True)
class Degraded:
    """The reason why a search by meaning used only the words of the query."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SearchPage:
    """A page of search hits, best first.

    `mode` is the mode actually used; `degraded` says why it is not the requested one. `suggestion` is the query with
    corrected spelling. It is set if some words of the query are unknown but similar to words in the owner's documents.
    """

    items: list[SearchHit]
    mode: Mode
    degraded: Degraded | None = None
    next_cursor: str | None = None
    suggestion: str | None = None


# Answers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation in an answer. `verified`: whether the chunk contains the quote.

    If it does, `quote` is the exact text of the chunk; otherwise it is the text that the model claimed. Statements
    refer to the citation by its `number`. `answer`: the words of the quote that answer the question, if they are known.
    """

    number: int
    document_id: UUID
    title: str
    chunk_id: UUID
    page: int | None
    quote: str
    verified: bool
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class SourceSnippet:
    """A chunk that the answer is based on; sent before the answer.

    `snippet` is the part of the chunk that matches best.
    """

    document_id: UUID
    title: str
    chunk_id: UUID
    page: int | None
    snippet: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of an answer. `citations` are the numbers of its citations.

    `verified`: whether at least one of them is verified.
    """

    text: str
    citations: list[int]
    verified: bool


@dataclass(frozen=True, slots=True)
class AnswerSources:
    """The last part of an answer.

    `found` is true if the documents answer the question. `made_by` is `local` or the name of a model. `answer` is the
    answer in a few words, if there is one. `note` names texts that were not used, for example texts in a language that
    is not supported without a model.
    """

    citations: list[Citation]
    found: bool
    made_by: str
    cost_usd: float
    answer: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class RelatedDocument:
    """A document on similar topics. `score` is the mean similarity of its most similar chunks."""

    document_id: UUID
    title: str
    source_type: str
    summary: str | None
    score: float


# Connections -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConnectionSide:
    """One of the two connected passages.

    `quote` is the exact text; `start` is its position in the document's Markdown.
    """

    document_id: UUID
    title: str
    chunk_id: UUID
    quote: str
    page: int | None
    start: int


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection. `source` is the passage in the requested document, and `target` the passage in the other document.

    If a contradiction was found without a model, its `strength` is the probability that it is a real contradiction, and
    its status is `possible`. `kind` is the type of difference: number, date, negation or wording. It is polarity if a
    configured model found opposite tones.
    """

    id: UUID
    engine: Engine
    strength: float
    status: Status
    source: ConnectionSide
    target: ConnectionSide
    explanation: str
    kind: str | None
    made_by: str


class ComparisonState(StrEnum):
    """The state of a comparison.

    `not_indexed`: the text is still being indexed. `no_text`: there is nothing to compare. `never`: no comparison has
    been requested yet.
    """

    NOT_INDEXED = "not_indexed"
    NO_TEXT = "no_text"
    NEVER = "never"
    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class ComparisonStatus:
    """The comparison of a document with all other documents. Until it is `done`, connections may be missing.

    `detail` is the reason why it is waiting or failed. `may_try_now`: the next attempt can be started now.
    """

    state: ComparisonState
    detail: str | None = None
    job_id: UUID | None = None
    over_budget: bool = False
    may_try_now: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """The types of connections that can be found for a document.

    `contradictions`: whether contradictions can be found in the document's language. `contradiction_languages`: the
    languages in which this works without a configured model. `bridges`: whether bridges can be found, which requires a
    configured model.
    """

    contradiction_languages: list[str]
    contradictions: bool
    bridges: bool


@dataclass(frozen=True, slots=True)
class ConnectionPage:
    items: list[Connection]
    next_cursor: str | None
    comparison: ComparisonStatus
    coverage: Coverage
