"""Saves the generated title, summary and tags of a document. Tags that a person has set are kept."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.core.ids import new_id
from octavo.database import Connection, load_queries
from octavo.facts.confidence import MODEL, confidence
from octavo.facts.finding import FOUND, Fact
from octavo.language.description import MADE_BY as OFFLINE
from octavo.language.insights import DocumentInsight, DocumentType
from octavo.library.collections import clean_label
from octavo.library.facts import DESCRIPTION, save_facts

QUERIES = load_queries("documents")


async def save_description(connection: Connection, document: UUID, insight: DocumentInsight, made_by: str) -> bool:
    """Save the generated title, summary and tags in the caller's transaction.

    Returns whether tags were added. Other values that a model found are saved as facts. If no model was used, no facts
    are added, because the same rules have already found them.
    """
    values: dict[str, Any] = {
        "document": document,
        "summary": insight.summary,
        "details": Jsonb({"document_type": insight.type}),
        "made_by": made_by,
    }
    row = await (await connection.execute(QUERIES.describe, values)).fetchone()
    if row is None:
        return False
    owner, has_free_tags, revision = row
    facts = [] if made_by == OFFLINE else model_facts(insight)
    await save_facts(connection, document, revision, facts, DESCRIPTION)
    return has_free_tags and await _add_tags(connection, owner, document, insight.tags, made_by)


def model_facts(insight: DocumentInsight) -> list[Fact]:
    """Convert the values that a model found to facts of the document.

    Their confidence is an assumption, not a measurement.
    """
    kind = None if insight.type is DocumentType.OTHER else str(insight.type)
    said = {
        "kind": kind,
        "title": insight.title,
        "author": insight.author,
        "date": insight.date,
        "language": insight.language,
    }
    evidence = frozenset({MODEL})
    return [Fact(name, value, "", confidence(name, evidence), "model", FOUND) for name, value in said.items() if value]


async def _add_tags(connection: Connection, owner: UUID, document: UUID, names: list[str], made_by: str) -> bool:
    """Replace the tags that were added automatically.

    Returns whether there are new ones. An existing tag of the account is reused, even if its capitalisation differs.
    """
    await connection.execute(QUERIES.forget_described_tags, {"document": document})
    if not names:
        return False
    labels = [clean_label(name, "tag") for name in names]
    values = {"owner": owner, "ids": [new_id() for _ in labels], "names": labels}
    tags = [row[0] for row in await (await connection.execute(QUERIES.ensure_tags, values)).fetchall()]
    await connection.execute(QUERIES.add_described_tags, {"document": document, "tags": tags, "made_by": made_by})
    return True
