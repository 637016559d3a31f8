"""The current activity of the installation, for `octavo top`, the operations page and programs."""

from __future__ import annotations

from octavo.ai.budgets import Budgets
from octavo.database import Connection, fetch_rows, load_queries, read_clock
from octavo.jobs.views import list_workers
from octavo.records.activity import Activity, KindActivity, SourceCost, Spending, StageTime

QUERIES = load_queries("metrics")
# Times of stages are taken from at most this many recent jobs of each kind.
MOST_JOBS = 200


async def read_activity(connection: Connection, budgets: Budgets) -> Activity:
    kinds = await fetch_rows(connection, QUERIES.kinds, {})
    return Activity(
        at=await read_clock(connection),
        kinds=[KindActivity(**row) for row in kinds],
        workers=await list_workers(connection),
        stages=await read_stage_times(connection),
        spending=await read_spending(connection, budgets),
    )


async def read_stage_times(connection: Connection) -> list[StageTime]:
    return [StageTime(**row) for row in await fetch_rows(connection, QUERIES.recent_stages, {"most": MOST_JOBS})]


async def read_spending(connection: Connection, budgets: Budgets) -> Spending:
    (spent,) = await fetch_rows(connection, QUERIES.spent, {"limits": budgets.limits})
    (answers,) = await fetch_rows(connection, QUERIES.answers, {})
    sources = await fetch_rows(connection, QUERIES.source_costs, {})
    return Spending(
        month_usd=spent["spent_usd"],
        budget_usd=spent["budget_usd"],
        new_answers=answers["new"],
        reused_answers=answers["reused"],
        sources=[SourceCost(**row) for row in sources],
    )
