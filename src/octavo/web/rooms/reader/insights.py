"""Details of a document and its chunks, shown next to the text: themes, tone, related documents and similar tags."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from octavo.core.settings import Settings
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.describe.embedding import embedding_model
from octavo.records.documents import Document
from octavo.search.related import RelatedDocument, SimilarTag, close_tags, related_documents

QUERIES = load_queries("reader")
MOST_RELATED, MOST_TAGS, MOST_SIMILAR = 5, 5, 6
# A weaker polarity is called neutral.
CLEAR_POLARITY = 0.15
# The least importance of each label, from 0 to 1.
IMPORTANCE = ((0.66, "High"), (0.33, "Medium"), (0.0, "Low"))


@dataclass(frozen=True, slots=True)
class ChunkInsight:
    """The description of one chunk. `tone` and `importance` are texts; `made_by` is `local` or a model."""

    chunk_id: UUID
    summary: str | None
    themes: list[str]
    concepts: list[str]
    tone: str | None
    importance: str | None
    made_by: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Documents on similar topics, and tags with a meaning similar to those of the document."""

    documents: list[RelatedDocument]
    tags: list[SimilarTag]


async def find_skipped_analysis(connection: Connection, owner: UUID, document: UUID) -> float | None:
    """What the automatic analysis would have cost, in US dollars, if it was skipped because of its budget."""
    rows = await fetch_rows(connection, QUERIES.skipped_analysis, {"owner": owner, "document": document})
    return rows[0]["estimated_usd"] if rows else None


async def find_insight(connection: Connection, owner: UUID, document: UUID, chunk: UUID) -> ChunkInsight | None:
    """The description of a chunk of the current text; None if it has none yet."""
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


def describe_tone(polarity: float | None, emotion: str | None) -> str | None:
    """For example “Negative, fear”; None if the tone is unknown."""
    if polarity is None:
        return None
    word = "Neutral" if abs(polarity) < CLEAR_POLARITY else "Positive" if polarity > 0 else "Negative"
    return f"{word}, {emotion}" if emotion and emotion not in {"unknown", "neutral"} else word


def describe_importance(importance: float | None) -> str | None:
    if importance is None:
        return None
    label = next((word for least, word in IMPORTANCE if importance >= least), IMPORTANCE[-1][1])
    return f"{label} ({importance:.0%})"


async def find_neighbours(database: Database, settings: Settings, owner: UUID, document: Document) -> Neighbours:
    """Related documents and similar tags. There are none for a document in the trash."""
    if document.deleted_at:
        return Neighbours([], [])
    model = embedding_model(settings)
    async with database.transaction() as connection:
        documents = await related_documents(connection, owner, document.id, model, MOST_RELATED)
        tags = await close_tags(connection, owner, document.tags[:MOST_TAGS], model, MOST_SIMILAR)
    own = {name.lower() for name in document.tags}
    return Neighbours(documents, [tag for tag in tags if tag.name.lower() not in own])
