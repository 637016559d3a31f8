"""What models may cost for one document: its owner may raise it up to all that they may spend themselves."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.budgets import Budgets, Scope, set_budget, take_turn
from octavo.core.errors import BudgetTooHigh
from octavo.database import Connection, fetch_rows, load_queries
from octavo.library.changes import hold
from octavo.library.documents import show_document

QUERIES = load_queries("budgets")
DOCUMENTS = load_queries("documents")


@dataclass(frozen=True, slots=True)
class DocumentBudget:
    """`usual_usd` holds when nothing is set for it, and it can be raised up to `most_usd`.

    `spent_usd` is with what is set aside for open calls. `paused` jobs wait for about `needed_usd`; `over` says whose
    budget stands in their way: that of the document, of the owner, or of everybody.
    """

    document_id: UUID
    usd: float
    usual_usd: float
    is_set: bool
    most_usd: float
    spent_usd: float
    paused: int
    needed_usd: float
    over: Scope | None


async def read_document_budget(connection: Connection, owner: UUID, document: UUID, usual: Budgets) -> DocumentBudget:
    await show_document(connection, owner, document)
    values = {"owner": owner, "document": document, "usual": usual.limits}
    (row,) = await fetch_rows(connection, QUERIES.document, values)
    own, general = row["own_usd"], float(row["usual_usd"])
    return DocumentBudget(
        document_id=document,
        usd=general if own is None else float(own),
        usual_usd=general,
        is_set=own is not None,
        most_usd=float(row["most_usd"]),
        spent_usd=float(row["spent_usd"]),
        paused=row["paused"],
        needed_usd=float(row["needed_usd"]),
        over=row["over"],
    )


async def set_document_budget(
    connection: Connection, owner: UUID, document: UUID, most: float | None, usual: Budgets
) -> DocumentBudget:
    """With None it is as for all documents again."""
    await hold(connection, owner, [document])
    await take_turn(connection)
    before = await read_document_budget(connection, owner, document, usual)
    if most is not None and most > before.most_usd:
        raise BudgetTooHigh(f"That is {before.most_usd:.2f} USD.")
    await set_budget(connection, "document", document, most)
    told = Jsonb({"fields": ["budget"], "budget_usd": most})
    await connection.execute(DOCUMENTS.record, {"kind": "edited", "documents": [document], "detail": told})
    return await read_document_budget(connection, owner, document, usual)
