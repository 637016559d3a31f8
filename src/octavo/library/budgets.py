"""The budget of one document. It can be raised up to the monthly budget of the account (owner)."""

from __future__ import annotations

from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.budgets import Budgets, lock_ledger, set_budget
from octavo.core.errors import BudgetTooHigh
from octavo.database import Connection, fetch_rows, load_queries
from octavo.library.changes import lock_documents
from octavo.library.documents import show_document
from octavo.records.account import DocumentBudget

QUERIES = load_queries("budgets")
DOCUMENTS = load_queries("documents")


async def read_document_budget(
    connection: Connection, owner: UUID, document: UUID, defaults: Budgets
) -> DocumentBudget:
    await show_document(connection, owner, document)
    values = {"owner": owner, "document": document, "usual": defaults.limits}
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
    connection: Connection, owner: UUID, document: UUID, most: float | None, defaults: Budgets
) -> DocumentBudget:
    """Set the budget of a document. None restores the default."""
    await lock_documents(connection, owner, [document])
    await lock_ledger(connection)
    before = await read_document_budget(connection, owner, document, defaults)
    if most is not None and most > before.most_usd:
        raise BudgetTooHigh(f"The maximum is {before.most_usd:.2f} USD.")
    await set_budget(connection, "document", document, most)
    told = Jsonb({"fields": ["budget"], "budget_usd": most})
    await connection.execute(DOCUMENTS.record, {"kind": "edited", "documents": [document], "detail": told})
    return await read_document_budget(connection, owner, document, defaults)
