"""An owner's spending on models: by month, by purpose and model, by document, and savings from reused answers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.records.account import DocumentUsage, MonthUsage, PurposeUsage, Usage

QUERIES = load_queries("ai")
MAX_DOCUMENTS = 50
MAX_MONTHS = 24


async def read_usage(
    connection: Connection, owner: UUID, month: str | None, *, budget_usd: float, everybody: bool
) -> Usage:
    """The usage of `month`; by default of the current month. `everybody` adds the spending of all owners."""
    (total,) = await _rows(connection, QUERIES.usage_total, owner=owner, month=month)
    same = {"owner": owner, "month": total["month"]}
    purposes = await _rows(connection, QUERIES.usage_parts, **same)
    documents = await _rows(connection, QUERIES.usage_documents, **same, most=MAX_DOCUMENTS)
    months = await _rows(connection, QUERIES.usage_months, owner=owner, most=MAX_MONTHS)
    return Usage(
        **total,
        budget_usd=budget_usd,
        everybody_usd=await _spent_by_all(connection, total["month"]) if everybody else None,
        purposes=[PurposeUsage(**row) for row in purposes],
        documents=[DocumentUsage(**row) for row in documents],
        months=[MonthUsage(**row) for row in months],
    )


async def _spent_by_all(connection: Connection, month: str) -> float:
    row = await (await connection.execute(QUERIES.spent_by_all, {"month": month})).fetchone()
    return float(row[0]) if row else 0.0


async def _rows(connection: Connection, query: bytes, **values: Any) -> list[Row]:  # noqa: ANN401
    """Fetch rows. Amounts of money are converted to float for JSON."""
    rows = await fetch_rows(connection, query, values)
    return [{name: float(value) if name.endswith("_usd") else value for name, value in row.items()} for row in rows]
