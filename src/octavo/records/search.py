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
    """The status of a connection. `POSSIBLE`: found offline and not shown to be right 8 times out of 10, so a person
    or a configured model should confirm it.

    `DISMISSED`: rejected by a person.
    """

    FOUND = "found"
    POSSIBLE = "possible"
    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class Scores:
    """The BM25 score of the search by words, and the similarity of the search by meaning.

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
    """The reason why a search by meaning was done by words only."""

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
    """A citation in an answer. `verified`: whether the chunk contains these words.

    If so, `quote` is the exact text of the chunk; otherwise it is the text that the model claimed. Statements refer to
    the citation by its `number`. `answer`: the words of the quote that answer the question, if they are known.
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
    """The end of an answer.

    `found` is true if the documents answer the question. `made_by` is `local` or the name of a model. `answer` is the
    answer in a few words, if there is one. `note` names texts that were not read, for example in a
    language that cannot be answered offline.
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

    The `strength` of a contradiction found offline is the probability that it is one, and its status is `possible`.
    `kind` says what differs: number, date, negation or wording; polarity if a configured model judged opposite tones.
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

    `not_indexed`: the text is still being indexed. `no_text`: nothing to compare. `never`: not requested yet.
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
    """The comparison of a document with all others. Until it is `done`, connections may be missing.

    `detail` is the reason why it is waiting or failed. `may_try_now`: the next attempt can be started now.
    """

    state: ComparisonState
    detail: str | None = None
    job_id: UUID | None = None
    over_budget: bool = False
    may_try_now: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is looked for in a document. `contradictions`: whether its language is covered.

    `contradiction_languages` are the languages in which contradictions are found without a configured model. `bridges`
    are found only with one.
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
