"""`octavo doctor --repair`: corrects values that can be computed from other rows. No user data is deleted.

Missing files, illegal histories and unfinished analyses are only reported, because no row contains the right values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from octavo.core.settings import Settings
from octavo.database import Connection, load_queries
from octavo.ops.instance import open_connection

QUERIES = load_queries("repairs")


@dataclass(frozen=True, slots=True)
class Repair:
    """A correction, and the number of rows that it changed."""

    name: str
    changed: int


@dataclass(frozen=True, slots=True)
class _Step:
    """Corrections that run one after the other while one lock is held."""

    lock: bytes
    corrections: Sequence[tuple[str, bytes]]


STEPS = (
    _Step(QUERIES.lock_caps, [("abandoned jobs", QUERIES.take_over)]),
    _Step(QUERIES.lock_caps, [("slot counts", QUERIES.count_caps), ("free slots", QUERIES.admit_waiting)]),
    _Step(
        QUERIES.lock_documents,
        [
            ("document statuses", QUERIES.mirror_jobs),
            ("canonical documents", QUERIES.claim_contents),
            ("versions", QUERIES.order_versions),
            ("orphaned chunks", QUERIES.forget_orphan_chunks),
            ("reference counts", QUERIES.count_references),
            ("unused file rows", QUERIES.forget_unused_objects),
            ("storage usage", QUERIES.count_usage),
        ],
    ),
    _Step(QUERIES.lock_ledger, [("model costs", QUERIES.count_spending)]),
)


async def repair(settings: Settings) -> list[Repair]:
    """Run every repair. Returns those that changed something."""
    async with open_connection(settings) as connection:
        made = [one for step in STEPS for one in await _run(connection, step)]
    return [one for one in made if one.changed]


async def _run(connection: Connection, step: _Step) -> list[Repair]:
    repairs: list[Repair] = []
    async with connection.transaction():
        await connection.execute(step.lock)
        for name, query in step.corrections:
            row = await (await connection.execute(query)).fetchone()
            repairs.append(Repair(name, row[0] if row else 0))
    return repairs
