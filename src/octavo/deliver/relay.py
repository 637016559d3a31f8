"""The relay: turns events into deliveries to recipients and notifications for owners, each exactly once.

Every worker runs the relay; a row lock lets only one of them work at a time. After a step that had work, the next step
follows sooner, because a finished delivery makes the next delivery in its queue due.
"""

from __future__ import annotations

from uuid import UUID

from octavo.choreography import Cause, job_after
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.deliver.messages import ERRORS, FAILING, NEWS
from octavo.jobs.queue import NewJob, enqueue

QUERIES = load_queries("deliveries")
BATCH = 1000
# How many deliveries to one recipient run in parallel; those of one process run one after the other.
DELIVERIES_PER_SUBSCRIBER = 2
IDLE_SECONDS = 0.5
BUSY_SECONDS = 0.1


async def relay(database: Database) -> float:
    """Run one step of the relay. Returns the number of seconds until the next step."""
    done = await relay_once(database)
    if done >= BATCH:
        return 0.0
    return BUSY_SECONDS if done else IDLE_SECONDS


async def relay_once(database: Database, batch: int = BATCH) -> int:
    """Process one batch of events. Returns the number of events read plus the number of deliveries started."""
    async with database.connection() as connection:
        row = await (await connection.execute(QUERIES.relay_has_work)).fetchone()
        if not row or not row[0]:
            return 0
        async with connection.transaction():
            return await _relay_batch(connection, batch)


async def _relay_batch(connection: Connection, batch: int) -> int:
    values = {"most": batch, "news": list(NEWS), "errors": [*ERRORS, FAILING]}
    (step,) = await fetch_rows(connection, QUERIES.relay, values)
    if step["due"]:
        await enqueue(connection, [_delivery_job(due) for due in step["due"]])
    return step["events_read"] + len(step["due"])


def _delivery_job(due: Row) -> NewJob:
    subscriber = due["subscriber"]
    return job_after(
        Cause.DELIVERY_DUE,
        UUID(due["owner"]),
        {name: due[name] for name in ("subscriber", "event", "process", "type")},
        key=f"{due['event']}:{subscriber}",
        cap_key=f"deliver:{subscriber}",
        cap=DELIVERIES_PER_SUBSCRIBER,
        job=UUID(due["job"]),
    )
