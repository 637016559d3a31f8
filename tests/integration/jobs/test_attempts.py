"""Attempts in one worker: an earlier one takes nothing from a later one, and a busy one does not lose its lease."""

from __future__ import annotations

import asyncio

from octavo.core.errors import TokenLimit
from octavo.core.types import JSON
from octavo.database import Database
from octavo.jobs.job_run import ClaimedJob, Run
from octavo.jobs.kinds import JobKind, Kinds
from octavo.jobs.worker import Worker
from octavo.jobs.worker_state import WorkerLimits
from tests.support.engine import engine_on
from tests.support.processes import PATIENCE_SECONDS, wait_until


class Attempts:
    """A kind of job of which every attempt goes on until it is stopped."""

    def __init__(self) -> None:
        self.begun = [asyncio.Event() for _ in range(2)]
        self.stopped = [asyncio.Event() for _ in range(2)]

    async def run(self, run: Run[None]) -> JSON:
        self.begun[run.job.attempt - 1].set()
        try:
            await asyncio.sleep(3600)
        finally:
            self.stopped[run.job.attempt - 1].set()

    def kinds(self) -> Kinds[None]:
        kinds: Kinds[None] = Kinds()
        kinds.add(JobKind("demo", self.run, time_limit_seconds=600))
        return kinds


async def test_a_job_that_was_cancelled_and_restarted_can_be_cancelled_again(database_info: str) -> None:
    attempts, stopping = Attempts(), asyncio.Event()
    with engine_on(database_info) as engine:
        (job,) = engine.put(engine.add_owner())
        async with Database(database_info, connections=4) as database, asyncio.timeout(PATIENCE_SECONDS):
            limits = WorkerLimits(poll_seconds=0.1, lease_seconds=60)
            running = asyncio.create_task(Worker(database, attempts.kinds(), None, limits).run(stopping))
            await attempts.begun[0].wait()
            engine.cancel(job)
            engine.requeue(job)
            await attempts.begun[1].wait()
            await attempts.stopped[0].wait()
            assert not attempts.stopped[1].is_set()
            engine.cancel(job)
            await attempts.stopped[1].wait()
            stopping.set()
            await running
        assert engine.status(job) == "cancelled"
        engine.check_invariants()


async def test_a_worker_whose_event_loop_is_busy_keeps_its_jobs(database_info: str) -> None:
    """Leases are renewed beside the loop: it waits here, and does nothing else, until they have been."""
    stopping = asyncio.Event()
    with engine_on(database_info) as engine:
        (job,) = engine.put(engine.add_owner())

        async def keep_the_loop_busy(run: Run[None]) -> JSON:
            first = engine.job(run.job.id)["lease_expires_at"]
            wait_until(lambda: engine.job(run.job.id)["lease_expires_at"] > first, "the lease is renewed")
            stopping.set()
            return run.job.attempt

        kinds: Kinds[None] = Kinds()
        kinds.add(JobKind("demo", keep_the_loop_busy, time_limit_seconds=600))
        async with Database(database_info, connections=4) as database:
            await Worker(database, kinds, None, WorkerLimits(lease_seconds=4)).run(stopping)
        assert (engine.status(job), engine.job(job)["output"]) == ("complete", 1)


async def test_what_follows_a_failure_is_not_cut_short(database_info: str) -> None:
    """The job is no longer held when it has failed, but its lease was not lost: its hook runs to the end."""
    stopping, followed = asyncio.Event(), asyncio.Event()

    async def fail(run: Run[None]) -> JSON:
        raise TokenLimit(f"attempt {run.job.attempt}")

    async def follow(_tools: None, _job: ClaimedJob) -> None:
        await asyncio.sleep(1)  # the leases are checked four times meanwhile
        followed.set()

    kinds: Kinds[None] = Kinds()
    kinds.add(JobKind("demo", fail, time_limit_seconds=600, after_failure=follow))
    with engine_on(database_info) as engine:
        (job,) = engine.put(engine.add_owner())
        async with Database(database_info, connections=4) as database:
            running = asyncio.create_task(Worker(database, kinds, None, WorkerLimits(lease_seconds=2)).run(stopping))
            async with asyncio.timeout(PATIENCE_SECONDS):
                await followed.wait()
            stopping.set()
            await running
        assert engine.status(job) == "failed"
