"""What models cost an owner, for people: by month, by purpose and model, by document, and what reuse saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from octavo.database import Connection, Row, fetch_rows, load_queries

QUERIES = load_queries("ai")
MOST_DOCUMENTS = 50
MOST_MONTHS = 24


@dataclass(frozen=True, slots=True)
class PurposeUsage:
    """`failed` are calls without an answer that could be used; some of them cost money too."""

    purpose: str
    model: str
    calls: int
    failed: int
    tokens_in: int
    tokens_out: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class DocumentUsage:
    document_id: UUID
    title: str
    calls: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class MonthUsage:
    month: str
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Usage:
    """A month, as `2026-11`. Of `cost_usd`, `estimated_usd` is for calls of which nobody heard the price.

    `reserved_usd` is set aside for calls that are open now; `saved_usd` is what answers that were used again would
    have cost; `budget_usd` is what the owner may cost in a month. `purposes` and `documents` are of this month, the
    dearest first; `months` are the last ones. `everybody_usd` is the cost of all owners, for administrators only.
    """

    month: str
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    estimated_usd: float
    reserved_usd: float
    reuses: int
    saved_usd: float
    budget_usd: float
    everybody_usd: float | None
    purposes: list[PurposeUsage]
    documents: list[DocumentUsage]
    months: list[MonthUsage]


async def read_usage(
    connection: Connection, owner: UUID, month: str | None, *, budget_usd: float, everybody: bool
) -> Usage:
    """The present month, if none is named."""
    (total,) = await _rows(connection, QUERIES.usage_total, owner=owner, month=month)
    same = {"owner": owner, "month": total["month"]}
    purposes = await _rows(connection, QUERIES.usage_parts, **same)
    documents = await _rows(connection, QUERIES.usage_documents, **same, most=MOST_DOCUMENTS)
    months = await _rows(connection, QUERIES.usage_months, owner=owner, most=MOST_MONTHS)
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
    """Money as a number of a kind that JSON has."""
    rows = await fetch_rows(connection, query, values)
    return [{name: float(value) if name.endswith("_usd") else value for name, value in row.items()} for row in rows]
