"""Details of a document and its chunks, shown next to the text: themes, tone, facts, related documents and tags."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from uuid import UUID

from octavo.core.formatting import format_full_date, format_money
from octavo.core.settings import Settings
from octavo.core.texts import Texts, mark
from octavo.core.texts import gettext as _
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.describe.embedding import embedding_model
from octavo.facts.confidence import REVIEW
from octavo.library.files import is_pictured
from octavo.records.documents import Document, FactView
from octavo.search.related import RelatedDocument, SimilarTag, close_tags, related_documents
from octavo.web.shell.document_rows import kind_label

QUERIES = load_queries("reader")
MOST_RELATED, MOST_TAGS, MOST_SIMILAR = 5, 5, 6
# A weaker polarity is called neutral.
CLEAR_POLARITY = 0.15
# The lowest importance of each label, from 0 to 1.
IMPORTANCE = ((0.66, mark("High")), (0.33, mark("Medium")), (0.0, mark("Low")))


@dataclass(frozen=True, slots=True)
class ChunkInsight:
    """The summary, themes and other details of one chunk.

    `tone` and `importance` are short texts; `made_by` is `local` or the name of a model.
    """

    chunk_id: UUID
    summary: str | None
    themes: list[str]
    concepts: list[str]
    tone: str | None
    importance: str | None
    made_by: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Documents on similar topics, and tags with a meaning similar to the document's tags."""

    documents: list[RelatedDocument]
    tags: list[SimilarTag]


async def find_skipped_analysis(connection: Connection, owner: UUID, document: UUID) -> float | None:
    """Return the estimated cost (US dollars) of an automatic analysis that was skipped because it exceeded the budget.

    Returns None if no analysis was skipped.
    """
    rows = await fetch_rows(connection, QUERIES.skipped_analysis, {"owner": owner, "document": document})
    return rows[0]["estimated_usd"] if rows else None


async def find_insight(connection: Connection, owner: UUID, document: UUID, chunk: UUID) -> ChunkInsight | None:
    """Return the details of a chunk of the current text. Returns None if they have not been generated yet."""
    values = {"owner": owner, "document": document, "passage": chunk}
    rows = await fetch_rows(connection, QUERIES.insight, values)
    if not rows:
        return None
    row = rows[0]
    return ChunkInsight(
        row["id"],
        row["summary"],
        row["themes"],
        row["concepts"],
        describe_tone(row["polarity"], row["emotion"]),
        describe_importance(row["importance"]),
        row["made_by"],
    )


EMOTIONS = Texts(
    {
        "joy": "joy",
        "trust": "trust",
        "surprise": "surprise",
        "fear": "fear",
        "sadness": "sadness",
        "anger": "anger",
        "disgust": "disgust",
    }
)


def describe_tone(polarity: float | None, emotion: str | None) -> str | None:
    """Describe the tone, for example “Negative, fear”. Returns None if it is unknown."""
    if polarity is None:
        return None
    word = _("Neutral") if abs(polarity) < CLEAR_POLARITY else _("Positive") if polarity > 0 else _("Negative")
    return f"{word}, {EMOTIONS.get(emotion, emotion)}" if emotion and emotion not in {"unknown", "neutral"} else word


def describe_importance(importance: float | None) -> str | None:
    if importance is None:
        return None
    label = next((word for least, word in IMPORTANCE if importance >= least), IMPORTANCE[-1][1])
    return f"{_(label)} ({importance:.0%})"


async def find_neighbours(database: Database, settings: Settings, owner: UUID, document: Document) -> Neighbours:
    """Find related documents and similar tags. For a document in the trash, both lists are empty."""
    if document.deleted_at:
        return Neighbours([], [])
    model = embedding_model(settings)
    async with database.transaction() as connection:
        documents = await related_documents(connection, owner, document.id, model, MOST_RELATED)
        tags = await close_tags(connection, owner, document.tags[:MOST_TAGS], model, MOST_SIMILAR)
    own = {name.lower() for name in document.tags}
    return Neighbours(documents, [tag for tag in tags if tag.name.lower() not in own])


# Facts --------------------------------------------------------------------------------------------------------------

_LABELS = Texts(
    {
        "title": "Title",
        "sender": "Sender",
        "recipient": "Recipient",
        "date": "Date",
        "amount": "Amount",
        "currency": "Currency",
        "language": "Language",
        "author": "Author",
        "period": "Period",
        "party": "Party",
        "kind": "Kind",
        "number": "Number",
        "due_date": "Due",
        "iban": "IBAN",
        "vat_id": "VAT id",
        "doi": "DOI",
        "isbn": "ISBN",
        "order_id": "Order number",
        "account_id": "Customer number",
        "register_id": "Registration number",
    }
)
_SOURCES = Texts(
    {
        "metadata": "from the metadata of the file, not printed",
        "layout": "printed",
        "rule": "printed",
        "mapping": "found by a conversion",
        "model": "read by a model",
        "person": "entered by a person",
    }
)
_CERTAINTIES = Texts(
    {
        "checked": "Checked",
        "confirmed": "Confirmed",
        "sure": "Certain",
        "probable": "Probable",
        "unsure": "Uncertain",
    }
)
_SURE, _PROBABLE = 0.95, REVIEW


@dataclass(frozen=True, slots=True)
class ShownFact:
    """A fact as shown in the panel.

    `entered` is its value in the edit form. `picture` is the path of a page picture that highlights the fact.
    """

    name: str
    label: str
    shown: str
    entered: str
    source: str
    certainty: str
    page: int | None
    quote: str
    picture: str | None

    @property
    def certainty_label(self) -> str:
        return _CERTAINTIES[self.certainty]


def show_fact(fact: FactView, document: Document) -> ShownFact:
    picture = None
    if fact.page and fact.box and is_pictured(document):
        box = ",".join(f"{side:g}" for side in fact.box)
        picture = f"/api/v1/documents/{document.id}/pages/{fact.page}.png?width=1600&box={box}"
    return ShownFact(
        name=fact.name,
        label=fact_label(fact.name),
        shown=_shown_value(fact, document),
        entered=fact.value,
        source=_SOURCES[fact.source] if fact.quote or fact.source in {"metadata", "person", "model"} else _("by rules"),
        certainty=_certainty(fact),
        page=fact.page,
        quote=fact.quote,
        picture=picture,
    )


def fact_label(name: str) -> str:
    return _LABELS.get(name) or name.replace("_", " ").capitalize()


def _shown_value(fact: FactView, document: Document) -> str:
    """Format the value of a fact for people, for example 19 April 2014, € 717.97 or Invoice."""
    if fact.name in {"date", "due_date"} and len(fact.normalized or "") == len("2014-04-19"):
        return format_full_date(date.fromisoformat(fact.normalized or ""))
    if fact.name == "amount" and fact.normalized:
        return format_money(float(fact.normalized), document.currency)
    return kind_label(fact.value) if fact.name == "kind" else fact.value


def _certainty(fact: FactView) -> str:
    if fact.status != "found":
        return fact.status
    return "sure" if fact.confidence >= _SURE else "probable" if fact.confidence >= _PROBABLE else "unsure"
