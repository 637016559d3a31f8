"""Saves the description of a document. Values that a person has set, or that the file contains, are kept."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.core.ids import new_id
from octavo.database import Connection, load_queries
from octavo.language.insights import DocumentInsight
from octavo.library.collections import clean_label

QUERIES = load_queries("documents")


async def save_description(connection: Connection, document: UUID, insight: DocumentInsight, made_by: str) -> bool:
    """Save a description in the caller's transaction. Returns whether the document got tags."""
    values: dict[str, Any] = {
        "document": document,
        "title": insight.title,
        "author": insight.author,
        "date": whole_date(insight.date),
        "language": insight.language,
        "summary": insight.summary,
        "details": Jsonb({"document_type": insight.type}),
        "made_by": made_by,
    }
    row = await (await connection.execute(QUERIES.describe, values)).fetchone()
    if row is None or not row[1]:
        return False
    return await _add_tags(connection, row[0], document, insight.tags, made_by)


async def _add_tags(connection: Connection, owner: UUID, document: UUID, names: list[str], made_by: str) -> bool:
    """Replace the document's automatic tags.

    Tags that the owner already has are reused, even if their spelling differs.
    """
    await connection.execute(QUERIES.forget_described_tags, {"document": document})
    if not names:
        return False
    labels = [clean_label(name, "tag") for name in names]
    values = {"owner": owner, "ids": [new_id() for _ in labels], "names": labels}
    tags = [row[0] for row in await (await connection.execute(QUERIES.ensure_tags, values)).fetchall()]
    await connection.execute(QUERIES.add_described_tags, {"document": document, "tags": tags, "made_by": made_by})
    return True


def whole_date(text: str | None) -> date | None:
    """Parse a full ISO date. Returns None for a year or a month alone, and for impossible dates such as 30 February."""
    if not text or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return None
    with suppress(ValueError):
        return date.fromisoformat(text)
    return None
