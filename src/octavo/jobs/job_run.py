"""One attempt of a job: the interface for its handler, fault injection for tests, metrics and traces.

At named points of an attempt, a test can kill or stop the worker or raise an error. In production, each point costs
only one comparison.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from uuid import UUID

import structlog
from psycopg.types.json import Jsonb

from octavo.core.errors import BadSetting, OctavoError, OverBudget, StorageFailed
from octavo.core.instruments import JOBS, STAGES, STAGES_RESUMED, is_tracing, span
from octavo.core.types import JSON, Lane
from octavo.database import Connection, Database, load_queries, retry_until_available

log = structlog.get_logger()
QUERIES = load_queries("jobs")
# The database adds this to the priority of bulk jobs.
BULK_PRIORITY = 10

Tools = TypeVar("Tools")
Save = Callable[[Connection, JSON], Awaitable[None]]


class LeaseLost(OctavoError):
    """Another worker has taken over this job. This attempt can no longer write."""

    code = "LEASE_LOST"


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that a worker has claimed. Every write includes the fencing token `lease_token`.

    `waited` is the time in the queue in seconds. It is None if it is unknown because the response to the claim was
    lost.
    """

    id: UUID
    kind: str
    owner_id: UUID
    document_id: UUID | None
    parent_id: UUID | None
    priority: int
    virtual_time: int
    attempt: int
    stage: str | None
    lease_token: int
    input: dict[str, JSON]
    waited: float | None = None

    @property
    def lane(self) -> Lane:
        return Lane.BULK if self.priority >= BULK_PRIORITY else Lane.INTERACTIVE


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage, or a part of one. `work` returns its output, and `save` writes to the database.

    `save` runs in the transaction that finishes the stage. If the database connection is lost before the commit, `save`
    is called again.
    """

    name: str
    work: Callable[[], Awaitable[JSON]]
    save: Save | None = None
    part: str = ""


@dataclass(frozen=True, slots=True)
class FinishedStage:
    stage: Stage
    output: JSON
    seconds: float


@dataclass(slots=True)
class Run(Generic[Tools]):
    """The argument of a job handler: gives access to the job and its stages.

    `tools` contains the resources that the worker has opened. `aside` is a context manager for long work that is
    limited separately, such as text recognition. While it is active, the job does not take up one of the worker's
    slots.
    """

    job: ClaimedJob
    tools: Tools
    database: Database
    faults: FaultPlan
    renew_limit: Callable[[], None]
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    _finished: dict[tuple[str, str], JSON] | None = field(default=None, init=False)

    @property
    def input(self) -> dict[str, JSON]:
        return self.job.input

    async def stage(
        self, name: str, work: Callable[[], Awaitable[JSON]], *, part: str = "", save: Save | None = None
    ) -> JSON:
        """Run `work` and store its output. If an earlier attempt finished this stage, return the stored output instead.

        `save` writes to the database in the transaction that finishes the stage. If the database connection is lost
        before the commit, `save` is called again.
        """
        return (await self.stages([Stage(name, work, save, part)]))[0]

    async def stages(self, stages: Sequence[Stage]) -> list[JSON]:
        """Run short stages one after the other, and store their outputs in one transaction. Returns the outputs.

        Stages that an earlier attempt finished are skipped. If the worker is killed before the commit, all the others
        run again.
        """
        finished = await self._finished_stages()
        with ExitStack() as spans:
            made = [await self._work(one, spans) for one in stages if not self._is_resumed(one, finished)]
            if made:
                self.faults.reach("stage.commit.before")
                await self._commit_stages(made)
        for one in made:
            STAGES.labels(self.job.kind, one.stage.name).observe(one.seconds)
            finished[one.stage.name, one.stage.part] = one.output
            log.info("stage finished", job=str(self.job.id), stage=one.stage.name, part=one.stage.part)
        if made:
            self.faults.reach("stage.commit.after")
            self.renew_limit()
        return [finished[one.name, one.part] for one in stages]

    def _is_resumed(self, stage: Stage, finished: Mapping[tuple[str, str], JSON]) -> bool:
        if (stage.name, stage.part) not in finished:
            return False
        log.info("stage resumed", job=str(self.job.id), stage=stage.name, part=stage.part)
        STAGES_RESUMED.labels(self.job.kind).inc()
        return True

    async def _work(self, stage: Stage, spans: ExitStack) -> FinishedStage:
        self.faults.reach("stage.work.before")
        spans.close()  # the work of the previous stage is done; only its commit is missing
        spans.enter_context(span(f"stage {stage.name}", {"octavo.part": stage.part}))
        started = time.monotonic()
        output = await stage.work()
        return FinishedStage(stage, output, time.monotonic() - started)

    async def progress(self, done: int, total: int | None, unit: str, stage: str | None = None) -> None:
        """Report how many items of the stage are done. Users see this while the stage is running."""
        values = {"done": done, "total": total, "unit": unit, "stage": stage}
        if not await self._write(QUERIES.progress, values):
            raise LeaseLost
        self.renew_limit()

    async def keep_alive(self) -> None:
        """Reset the job's time limit without reporting progress. Used while waiting for work that has its own limit."""
        if not await self._write(QUERIES.renew_deadline, {}):
            raise LeaseLost
        self.renew_limit()

    async def holds_lease(self, connection: Connection) -> bool:
        """Whether this attempt may still write.

        Also locks the job until the transaction ends, so that no other attempt can begin before then.
        """
        return await _flag(connection, QUERIES.hold_lease, self._lease())

    async def note_progress(self, connection: Connection) -> None:
        """Record that a job without stages has made progress. Call this in the transaction that saves the progress.

        Earlier failures and worker crashes then no longer count against the job.
        """
        await connection.execute(QUERIES.note_progress, self._lease())

    async def current_owner(self, connection: Connection) -> UUID:
        """Return the id of the account that owns the job now.

        When a visitor signs in, running jobs move to the visitor's account, but `job.owner_id` keeps its old value.
        Inside a `save` function, the owner cannot change until the transaction ends.
        """
        row = await (await connection.execute(QUERIES.owner_of, {"job": self.job.id})).fetchone()
        if row is None:
            raise LeaseLost
        return row[0]

    async def finished_parts(self, stage: str) -> set[str]:
        """Return the names of the finished parts of a stage. An empty string means the stage as a whole."""
        return {part for name, part in await self._finished_stages() if name == stage}

    async def finished_outputs(self, stages: Collection[str]) -> list[JSON]:
        """Return the stored outputs of the given `stages` and of their parts. Unfinished stages are skipped."""
        return [output for (name, _), output in (await self._finished_stages()).items() if name in stages]

    async def forget_stages(self, connection: Connection, stages: Collection[str]) -> None:
        """Mark stages as not finished, so that they run again.

        Called by a `save` function that replaces the input of these stages.
        """
        await connection.execute(QUERIES.forget_stages, {"job": self.job.id, "stages": list(stages)})
        finished = await self._finished_stages()
        for known in [known for known in finished if known[0] in stages]:
            del finished[known]

    async def _finished_stages(self) -> dict[tuple[str, str], JSON]:
        if self._finished is None:
            # A job that never finished a stage needs no query.
            new = self.job.stage is None
            self._finished = {} if new else await retry_until_available(self._load_stages)
        return self._finished

    async def _load_stages(self) -> dict[tuple[str, str], JSON]:
        async with self.database.connection() as connection:
            cursor = await connection.execute(QUERIES.stage_outputs, {"job": self.job.id})
            return {(stage, part): output async for stage, part, output in cursor}

    async def _commit_stages(self, finished: Sequence[FinishedStage]) -> None:
        tries = itertools.count()

        async def commit() -> None:
            if next(tries) and await self._is_committed(finished[-1].stage):
                return  # they were committed; only the response was lost
            if len(finished) == 1 and finished[0].stage.save is None:
                async with self.database.connection() as connection:
                    await self._write_stage(connection, finished[0])
                return
            async with self.database.transaction() as connection:
                if not await self.holds_lease(connection):
                    raise LeaseLost
                for one in finished:
                    if one.stage.save:
                        await one.stage.save(connection, one.output)
                    await self._write_stage(connection, one)

        await retry_until_available(commit)

    async def _write_stage(self, connection: Connection, finished: FinishedStage) -> None:
        name = {"stage": finished.stage.name, "part": finished.stage.part}
        values = {**name, "output": Jsonb(finished.output), "seconds": finished.seconds}
        if not await _flag(connection, QUERIES.finish_stage, self._lease() | values):
            raise LeaseLost

    async def _is_committed(self, stage: Stage) -> bool:
        async with self.database.connection() as connection:
            values = {"job": self.job.id, "stage": stage.name, "part": stage.part}
            row = await (await connection.execute(QUERIES.stage_attempt, values)).fetchone()
            return row is not None and row[0] == self.job.attempt

    async def _write(self, query: bytes, values: dict[str, Any]) -> bool:
        async def write() -> bool:
            async with self.database.connection() as connection:
                return await _flag(connection, query, self._lease() | values)

        return await retry_until_available(write)

    def _lease(self) -> dict[str, Any]:
        return {"job": self.job.id, "token": self.job.lease_token}


async def _flag(connection: Connection, query: bytes, values: dict[str, Any]) -> bool:
    row = await (await connection.execute(query, values)).fetchone()
    return row is not None and bool(row[0])


POINTS = (
    "claim.after",
    "stage.work.before",
    "stage.commit.before",
    "stage.commit.after",
    "complete.before",
    "complete.after",
    "fail.before",
    "fail.after",
    "heartbeat.before",
)
ACTIONS = ("kill", "stop", "raise")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault to inject: do `action` when `point` is reached for the `number`th time."""

    point: str
    number: int
    action: str


class FaultPlan:
    """The faults to inject, such as `claim.after@3=kill,fail.before@1=stop`. Used only in tests."""

    def __init__(self, text: str) -> None:
        self._faults = [_parse(part) for part in text.split(",") if part]
        self._reached: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        if not self._faults:
            return
        self._reached[point] += 1
        for fault in self._faults:
            if (fault.point, fault.number) == (point, self._reached[point]):
                _act(fault.action)


def _parse(text: str) -> Fault:
    point, _, rest = text.partition("@")
    number, _, action = rest.partition("=")
    if point not in POINTS or not number.isdigit() or action not in ACTIONS:
        raise BadSetting(f"OCTAVO_FAULTS: {text} must look like {POINTS[0]}@1={ACTIONS[0]}.")
    return Fault(point, int(number), action)


def _act(action: str) -> None:
    match action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case _:
            raise StorageFailed("Injected by a test.")


@asynccontextmanager
async def recorded_attempt(job: ClaimedJob, database: Database) -> AsyncGenerator[None]:
    started, outcome = time.monotonic(), "failed"
    parent = await _read_trace(job.id, database) if is_tracing() else None
    described = {"octavo.job": str(job.id), "octavo.document": str(job.document_id), "octavo.attempt": job.attempt}
    try:
        with span(f"job {job.kind}", described, parent=parent):
            yield
        outcome = "complete"
    except OverBudget:
        outcome = "paused"
        raise
    except (LeaseLost, asyncio.CancelledError):
        outcome = "stopped"
        raise
    finally:
        JOBS.labels(job.kind, outcome).observe(time.monotonic() - started)


async def _read_trace(job: UUID, database: Database) -> str | None:
    async with database.connection() as connection:
        row = await (await connection.execute(QUERIES.trace_of, {"job": job})).fetchone()
    return str(row[0]) if row else None
