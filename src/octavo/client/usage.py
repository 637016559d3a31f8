"""What models cost, as the API answers it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class PurposeUsage:
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
    """A month, as `2026-11`. `estimated_usd` is that part of the cost of which nobody heard the price.

    `everybody_usd` is the cost of all owners; only administrators are told.
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
