"""Insights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MOST_THEMES = 3
MOST_CONCEPTS = 10
MOST_TAGS = 8

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=1000)]
# A year, a month or a day, as ISO 8601 writes them.
PartialDate = Annotated[str, StringConstraints(pattern=r"^\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?$")]
LanguageCode = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")]


class Emotion(StrEnum):
    """`NEUTRAL`: none stands out. `UNKNOWN`: the language is none whose feelings the reader knows."""

    JOY = "joy"
    TRUST = "trust"
    SURPRISE = "surprise"
    FEAR = "fear"
    SADNESS = "sadness"
    ANGER = "anger"
    DISGUST = "disgust"
    NEUTRAL = "neutral"
    UNKNOWN = "unknown"


class DocumentType(StrEnum):
    """What a document is for, whatever its format."""

    ARTICLE = "article"
    BOOK = "book"
    CONTRACT = "contract"
    EMAIL = "email"
    FORM = "form"
    IMAGE = "image"
    INVOICE = "invoice"
    LETTER = "letter"
    MANUAL = "manual"
    MINUTES = "minutes"
    NOTES = "notes"
    PAPER = "paper"
    POLICY = "policy"
    PRESENTATION = "presentation"
    RECEIPT = "receipt"
    REPORT = "report"
    RESUME = "resume"
    SPREADSHEET = "spreadsheet"
    STATEMENT = "statement"
    TRANSCRIPT = "transcript"
    OTHER = "other"


class Output(BaseModel):
    """A field that nobody asked for is refused, so that a model's slip is seen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Concept(Output):
    text: Name
    importance: Share


class Tone(Output):
    """From -1, against, to 1, in favour; 0 with `UNKNOWN` means that nobody could tell."""

    polarity: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
    primary_emotion: Emotion


class ChunkInsight(Output):
    """2 to 3 themes and 5 to 10 concepts where the text has them; a summary of one or two sentences."""

    themes: Annotated[list[Name], Field(max_length=MOST_THEMES)]
    concepts: Annotated[list[Concept], Field(max_length=MOST_CONCEPTS)]
    tone: Tone
    importance: Share
    summary: Text


class DocumentInsight(Output):
    """What is not in the document is None. The title is None where only the file's name could stand for it."""

    title: Line | None
    author: Line | None
    summary: Text
    date: PartialDate | None
    language: LanguageCode | None
    type: DocumentType
    tags: Annotated[list[Name], Field(max_length=MOST_TAGS)]


class Quote(Output):
    """`text` is `content[start:end]` of the passage with this number, letter by letter."""

    passage: Annotated[int, Field(ge=0)]
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    text: str
    score: Share


class Answer(Output):
    """Nothing found is an answer without quotes."""

    quotes: list[Quote]


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk: its Markdown, and the headings that it stands under, the outermost first."""

    content: str
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A document: its chunks in order, and what the file says of itself. `kind` is how it came in: pdf, eml, web, …"""

    passages: Sequence[Passage]
    kind: str = "other"
    filename: str | None = None
    title: str | None = None
    author: str | None = None
    date: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class TwoPassages:
    """What two documents say, side by side."""

    first: str
    second: str
