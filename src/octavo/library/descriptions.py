"""What was found out about a document: it fills in what neither a person nor the file said, and never more."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.core.ids import new_id
from octavo.database import Connection, load_queries
from octavo.language.outputs import DocumentInsight
from octavo.library.collections import clean_label

QUERIES = load_queries("documents")


async def describe_document(connection: Connection, document: UUID, insight: DocumentInsight, made_by: str) -> bool:
    """In the caller's transaction; answers whether the document got tags."""
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
    return await _tag(connection, row[0], document, insight.tags, made_by)


async def _tag(connection: Connection, owner: UUID, document: UUID, names: list[str], made_by: str) -> bool:
    """Tags of the owner that are there already are used again, whoever made them and however they were spelt."""
    await connection.execute(QUERIES.forget_described_tags, {"document": document})
    if not names:
        return False
    wanted = [clean_label(name, "tag") for name in names]
    values = {"owner": owner, "ids": [new_id() for _ in wanted], "names": wanted}
    tags = [row[0] for row in await (await connection.execute(QUERIES.ensure_tags, values)).fetchall()]
    await connection.execute(QUERIES.add_described_tags, {"document": document, "tags": tags, "made_by": made_by})
    return True


def whole_date(given: str | None) -> date | None:
    """A day as the database keeps it; a year or a month alone is not one, and neither is 30 February."""
    if not given or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", given):
        return None
    with suppress(ValueError):
        return date.fromisoformat(given)
    return None
