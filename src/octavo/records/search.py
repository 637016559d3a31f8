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
    """`POSSIBLE`: found by a rule and not confirmed yet. `DISMISSED`: rejected by a person."""

    FOUND = "found"
    POSSIBLE = "possible"
    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class Scores:
    """BM25 score of the words and similarity of the vectors; None where that search did not find the chunk."""

    text: float | None
    semantic: float | None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A matching chunk. `snippet` is plain text; `marks` are the start and end of the matched words in it.

    `sentence` is the sentence that matched. `matched` is the title, tag or file name that matched, if the text did not.
    `chunk_id` is null if the document has no text. `score` is between 0 and 1 and comparable only within one search.
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
    why: Why = "words"
    sentence: str = ""
    matched: str | None = None


@dataclass(frozen=True, slots=True)
class Degraded:
    """The reason why a search that should include meaning used words only."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Best hits first. `mode` is the mode actually used; `degraded` gives the reason if it differs from the request.

    `suggestion` is the query with corrected spelling, if some of its words are unknown and similar to words of the
    owner's documents.
    """

    items: list[SearchHit]
    mode: Mode
    degraded: Degraded | None = None
    next_cursor: str | None = None
    suggestion: str | None = None


# Answers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Citation:
    """`verified`: the chunk contains these words, and `quote` is its exact text. Otherwise `quote` is what
    the model claimed.

    The answer refers to it by `number`.
    """

    number: int
    document_id: UUID
    title: str
    chunk_id: UUID
    page: int | None
    quote: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """`citations` are the numbers of citations. `verified`: at least one of these is verified."""

    text: str
    citations: list[int]
    verified: bool


@dataclass(frozen=True, slots=True)
class AnswerSources:
    """Sent at the end of an answer. `found`: the documents answer the question. `made_by` is `local` or a model."""

    citations: list[Citation]
    found: bool
    made_by: str
    cost_usd: float


# Connections -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConnectionSide:
    """`quote` is verbatim text of the chunk; `start` is its first character in the document's markdown."""

    document_id: UUID
    title: str
    chunk_id: UUID
    quote: str
    page: int | None
    start: int


@dataclass(frozen=True, slots=True)
class Connection:
    """`source` is the side of the requested document. A contradiction that only rules found has the status `possible`.

    `kind` is the type of a contradiction: negation, antonym, number, date or polarity.
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
