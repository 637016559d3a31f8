"""Input and output types for generating the titles, summaries, tags and themes of documents and chunks.

The models and the `local` provider use them. Models return the output types as JSON. Lists have a maximum length but no
minimum: a page of numbers has no themes, and a model that must name some would invent them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from octavo.core.texts import primary_language

MAX_THEMES = 3
MAX_CONCEPTS = 10
MAX_TAGS = 8

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=1000)]
# A year, month or day in ISO 8601.
PartialDate = Annotated[str, StringConstraints(pattern=r"^\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?$")]
# A model may return a longer language tag, such as en-GB. Only its first part is kept.
LanguageCode = Annotated[
    str,
    BeforeValidator(lambda tag: primary_language(tag) if isinstance(tag, str) else tag),
    StringConstraints(pattern=r"^[a-z]{2,3}$"),
]


class Emotion(StrEnum):
    """The primary emotion of a text. `NEUTRAL`: no emotion is prominent. `UNKNOWN`: the language is not supported."""

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
    """The purpose of a document, independent of its format."""

    INVOICE = "invoice"
    RECEIPT = "receipt"
    CONTRACT = "contract"
    LETTER = "letter"
    BANK_STATEMENT = "bank_statement"
    PAYSLIP = "payslip"
    FORM = "form"
    CERTIFICATE = "certificate"
    REPORT = "report"
    PAPER = "paper"
    ARTICLE = "article"
    BOOK = "book"
    MANUAL = "manual"
    SLIDES = "slides"
    SPREADSHEET = "spreadsheet"
    MAIL = "mail"
    CHAT = "chat"
    NOTES = "notes"
    CODE = "code"
    PHOTO = "photo"
    OTHER = "other"


class Output(BaseModel):
    """Base class of all results that models return.

    Unknown fields are rejected, so that a model's mistakes are noticed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


class Concept(Output):
    text: Name
    importance: Share


class Tone(Output):
    """The tone of a text.

    `polarity` ranges from -1 (negative) to 1 (positive). If the emotion is `UNKNOWN`, the polarity is always 0.
    """

    polarity: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
    primary_emotion: Emotion


class ChunkInsight(Output):
    """The results for a chunk: up to 3 themes, up to 10 concepts, the tone, the importance, and a summary of one or two
    sentences.
    """

    themes: Annotated[list[Name], Field(max_length=MAX_THEMES)]
    concepts: Annotated[list[Concept], Field(max_length=MAX_CONCEPTS)]
    tone: Tone
    importance: Share
    summary: Text


class DocumentInsight(Output):
    """The results for a document, such as its title, summary and tags.

    Unknown fields are None. The file name is never used as the title.
    """

    title: Line | None
    author: Line | None
    summary: Text
    date: PartialDate | None
    language: LanguageCode | None
    type: DocumentType
    tags: Annotated[list[Name], Field(max_length=MAX_TAGS)]


class Quote(Output):
    """A quote from a chunk. `text` is exactly `content[start:end]` of the chunk with the index `chunk`."""

    chunk: Annotated[int, Field(ge=0)]
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    text: str
    score: Share


class Answer(Output):
    """Quotes that answer a question. The list is empty if nothing was found."""

    quotes: list[Quote]


@dataclass(frozen=True, slots=True)
class ChunkText:
    """A chunk's Markdown and the headings above it, outermost first."""

    content: str
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """The chunks of a document in order, and the file's metadata. `kind` is the source type, such as pdf, eml or web.

    `type` is the document type that was detected from the pages. `known_tags` are tags that the account already uses.
    """

    chunks: Sequence[ChunkText]
    kind: str = "other"
    filename: str | None = None
    title: str | None = None
    author: str | None = None
    date: str | None = None
    language: str | None = None
    known_tags: Sequence[str] = ()
    type: DocumentType | None = None


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """Facts that rules found about a document. `date` is a year, month or day in ISO 8601."""

    title: str | None = None
    author: str | None = None
    date: str | None = None
    type: DocumentType = DocumentType.OTHER


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two texts from different documents, to be compared with each other."""

    first: str
    second: str


LongText = Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)]
QuoteText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class PageCitation(Output):
    """A quote from a page.

    `page` is the page number used in the request, `quote` is verbatim, and `relevance` says how important the quote is
    for the answer.
    """

    page: Annotated[int, Field(ge=1)]
    quote: QuoteText
    relevance: Share
