"""Record types for search hits, answers with citations, and connections between documents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
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

    `POSSIBLE` means that it was found without a configured model. No test has shown that at least 80 % of these
    connections are right, so a person or a model should confirm them. `DISMISSED` means that a person rejected it.
    """

    FOUND = "found"
    POSSIBLE = "possible"
    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a chunk.

    `text` is its BM25 score in keyword search, and `semantic` is its similarity in semantic search. A score is None if
    this kind of search did not find the chunk.
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
    """The reason why a semantic search fell back to keyword search."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SearchPage:
    """A page of search hits, best first.

    `mode` is the search mode that was used. If it is not the requested one, `degraded` says why. `suggestion` is the
    query with corrected spelling. It is set if words of the query are unknown but similar to words in your documents.
    """

    items: list[SearchHit]
    mode: Mode
    degraded: Degraded | None = None
    next_cursor: str | None = None
    suggestion: str | None = None


# Answers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation in an answer. Statements refer to it by its `number`.

    If `verified` is true, the chunk contains the quote, and `quote` is its exact text there. Otherwise, `quote` is the
    text that the model claims to quote. `answer` contains the words of the quote that answer the question, if they are
    known. `picture` is the path of a picture of the page. If `gone` is true, the document was deleted.
    """

    number: int
    document_id: UUID
    title: str
    chunk_id: UUID
    page: int | None
    quote: str
    verified: bool
    answer: str | None = None
    picture: str | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class SourceSnippet:
    """A chunk that the answer is based on.

    It is sent before the answer. `snippet` is the part of the chunk that matches best.
    """

    document_id: UUID
    title: str
    chunk_id: UUID
    page: int | None
    snippet: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of an answer.

    `citations` contains the numbers of its citations. `verified` is true if at least one of these citations is
    verified.
    """

    text: str
    citations: list[int]
    verified: bool


@dataclass(frozen=True, slots=True)
class ThreadReference:
    """The start of an answer: the ids of its thread and its turn."""

    thread_id: UUID
    turn_id: UUID


@dataclass(frozen=True, slots=True)
class FoundPassages:
    """The chunks that may contain the answer to a question.

    If the question is a follow-up question and was rewritten, `understood_as` is the complete question.
    """

    passages: list[SourceSnippet]
    understood_as: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerSources:
    """The end of an answer, sent after its statements.

    `found` is true if the documents answer the question. `made_by` is the name of a model, or `local`. `answer` is a
    short answer of a few words, if there is one. `note` says which texts were not used, for example because their
    language is not supported without a model.
    """

    citations: list[Citation]
    found: bool
    made_by: str
    cost_usd: float
    answer: str | None = None
    note: str | None = None


# Threads -----------------------------------------------------------------------------------------------------------


TurnStatus = Literal["unfinished", "answered", "failed", "removed"]


@dataclass(frozen=True, slots=True)
class AskScope:
    """The documents that a question is about: a collection, those that match a query, or selected ones.

    By default, the question is about all documents. `query` uses the syntax of the search box.
    """

    collection: str | None = None
    query: str | None = None
    document_ids: list[UUID] | None = None


@dataclass(frozen=True, slots=True)
class TurnError:
    """The reason why a question was not answered."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of a thread and its answer.

    If the question is a follow-up question and was rewritten, `understood_as` is the complete question. `status` is
    `unfinished` while the question is being answered, and if answering was stopped or interrupted. It is `removed` if
    the answer quoted a document that was deleted permanently. `answer` is the answer in a few words, if there is one.
    """

    id: UUID
    number: int
    question: str
    understood_as: str | None
    status: TurnStatus
    answer: str | None
    statements: list[Statement]
    citations: list[Citation]
    found: bool | None
    note: str | None
    made_by: str | None
    cost_usd: float
    error: TurnError | None
    asked_at: datetime
    answered_at: datetime | None


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A thread in a list. `title` is its first question, and `turns` is the number of questions."""

    id: UUID
    title: str
    scope: AskScope
    turns: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread: its questions in order, with their answers. `scope` applies to the next question."""

    id: UUID
    title: str
    scope: AskScope
    turns: list[Turn]
    created_at: datetime
    updated_at: datetime


# Related documents -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RelatedDocument:
    """A document on similar topics.

    `score` is the average similarity between the requested document and the most similar chunks of the related one.
    """

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

    A contradiction that was found without a configured model has the status `possible`, and its `strength` is the
    probability that it is real. For a contradiction, `kind` says how the passages differ: number, date, negation or
    wording. With a configured model, it can also be polarity, which means opposite tones.
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

    `not_indexed` means that the text is still being indexed. `no_text` means that there is nothing to compare. `never`
    means that no comparison has been requested yet.
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
    """The status of comparing a document with all other documents. Until `state` is `done`, connections may be missing.

    `detail` says why the comparison is waiting or has failed. If `may_try_now` is true, users can start the next
    attempt now.
    """

    state: ComparisonState
    detail: str | None = None
    job_id: UUID | None = None
    over_budget: bool = False
    may_try_now: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """The types of connections that can be found for a document.

    `contradictions` is true if contradictions can be found in the document's language. `contradiction_languages` are
    the languages in which they can be found without a configured model. `bridges` is true if thematic bridges can be
    found, which requires a configured model.
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


@dataclass(frozen=True, slots=True)
class SimilarTag:
    name: str
    score: float
    documents: int


@dataclass(frozen=True, slots=True)
class Node:
    """A document on the map. `x` and `y` are its position on a canvas of 1000 by 700."""

    document_id: UUID
    title: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """All connections of one type between two documents. `strength` is the strength of the strongest connection."""

    source: UUID
    target: UUID
    engine: Engine
    connections: int
    strength: float


@dataclass(frozen=True, slots=True)
class ConnectionMap:
    nodes: list[Node]
    edges: list[Edge]
