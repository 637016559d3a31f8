"""Runs jobs: claims what is next, keeps leases alive, and lets go of what is no longer its own."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import psycopg
import structlog
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.core.errors import RETRY_RULES, DatabaseUnavailable, ErrorClass, OctavoError, OverBudget, TimedOut
from octavo.core.ids import new_id
from octavo.core.types import JSON
from octavo.database import Connection, Database, explain, load_queries, retry_until_available
from octavo.jobs.faults import FaultPlan
from octavo.jobs.kinds import Kinds
from octavo.jobs.marks import Marks
from octavo.jobs.registration import register_worker
from octavo.jobs.run import ClaimedJob, LeaseLost, Run
from octavo.jobs.schedules import Schedule, run_due, sync_schedules
from octavo.jobs.slots import Running, Slots, WorkerLimits, as_array, end, leases_of

log = structlog.get_logger()
QUERIES = load_queries("jobs")
CHANNEL = "octavo_jobs"
SCHEDULE_SECONDS = 1.0
TIME_SECONDS = 0.25
RETRY_SECONDS = 0.2
# A connection that takes longer than this was not there.
AWAY_SECONDS = 0.5

Tools = TypeVar("Tools")
# What a worker does again and again beside its jobs; it answers after how many seconds it is due again.
Chore = Callable[[Database], Awaitable[float]]


class Worker(Generic[Tools]):
    """One process of the engine; any number may run on any number of machines."""

    def __init__(
        self,
        database: Database,
        kinds: Kinds[Tools],
        tools: Tools,
        limits: WorkerLimits,
        faults: FaultPlan | None = None,
        schedules: Sequence[Schedule] = (),
        chores: Sequence[Chore] = (),
    ) -> None:
        self.id = new_id()
        self._database = database
        self._kinds = kinds
        self._tools = tools
        self._limits = limits
        self._faults = faults or FaultPlan("")
        self._schedules = schedules
        self._chores = chores
        self._marks = Marks()
        self._slots = Slots(limits)
        self._known = as_array(f'"{name}"' for name in kinds.names)
        self._wake = asyncio.Event()
        self._renewed = time.monotonic()
        self._answer_lost = False
        self._visits: Connection | None = None

    async def run(self, stopping: asyncio.Event) -> None:
        """Until asked to stop; then what runs gets a moment to finish, and the rest is handed back."""
        if not await self._registered(stopping):
            return
        helpers = [
            asyncio.create_task(work)
            for work in (
                self._listen(),
                self._keep_leases(),
                self._keep_time(),
                self._keep_schedules(),
                self._wake_when(stopping),
                *map(self._keep_doing, self._chores),
            )
        ]
        try:
            while not stopping.is_set():
                if not await self._visit():
                    await self._rest()
        finally:
            await self._leave(helpers)

    # Taking work -------------------------------------------------------------------------------------------------

    async def _visit(self) -> bool:
        """Bring back what is finished and take what is next; true when there may be more."""
        self._wake.clear()
        if not self._slots.free and not self._slots.unsaid:
            return False
        try:
            more, claimed = await self._exchange()
        except DatabaseUnavailable as error:
            log.warning("waiting for the database", reason=error.line)
            self._answer_lost = True
            return False
        for job in claimed:
            self._start(job)
        return more

    async def _exchange(self) -> tuple[bool, list[ClaimedJob]]:
        async with self._own_connection() as connection:
            if self._answer_lost:
                await self._find_unknown(connection)
            if abandoned := self._slots.abandoned[:]:
                await connection.execute(QUERIES.hand_back, {**leases_of(abandoned), "because": "database_away"})
                del self._slots.abandoned[: len(abandoned)]
            # Read together, with no wait in between: what has ended and is not brought back still takes its slot.
            free, finished = self._slots.free, self._slots.finished[:]
            if finished:
                self._faults.reach("complete.before")
            claimed = await self._claim(connection, finished, free)
        del self._slots.finished[: len(finished)]
        if finished:
            self._faults.reach("complete.after")
        if claimed:
            self._faults.reach("claim.after")
            self._marks.add(claimed, time.monotonic())
        # What ended passed its slots on after the claim, so who got them can be claimed by the next visit.
        return free > 0 and (len(claimed) == free or bool(finished)), claimed

    @asynccontextmanager
    async def _own_connection(self) -> AsyncGenerator[Connection]:
        """Visits are what a busy worker does most, so they have a connection that need not be checked each time."""
        if self._visits is None:
            self._visits = await self._database.connect_apart()
        try:
            yield self._visits
        except psycopg.OperationalError as error:
            visits, self._visits = self._visits, None
            await visits.close()
            raise DatabaseUnavailable(str(error).strip().splitlines()[0]) from error

    async def _claim(
        self, connection: Connection, finished: Sequence[tuple[ClaimedJob, JSON]], free: int
    ) -> list[ClaimedJob]:
        mark = self._marks.now(time.monotonic())
        values = {
            "worker": self.id,
            **leases_of([job for job, _ in finished]),
            "outputs": Jsonb([output for _, output in finished]),
            "kinds": self._known,
            "slots": free,
            "idle": not self._slots.running,
            "lease": self._limits.lease_seconds,
            "mark_priority": mark.priority,
            "mark_time": mark.virtual_time,
        }
        async with connection.cursor(row_factory=class_row(ClaimedJob)) as cursor:
            await cursor.execute(QUERIES.exchange, values)
            return await cursor.fetchall()

    async def _find_unknown(self, connection: Connection) -> None:
        """The connection broke: a claim may have been committed although its answer never came."""
        async with connection.cursor(row_factory=class_row(ClaimedJob)) as cursor:
            await cursor.execute(QUERIES.claimed_by, {"worker": self.id, "running": self._slots.known})
            for job in await cursor.fetchall():
                self._start(job)
        self._answer_lost = False

    async def _rest(self) -> None:
        """Until something happens; shortly only when there is something that the database should know."""
        pending = self._answer_lost or self._slots.unsaid
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RETRY_SECONDS if pending else self._limits.poll_seconds):
                await self._wake.wait()

    # Doing it ----------------------------------------------------------------------------------------------------

    def _start(self, job: ClaimedJob) -> None:
        running = Running(job)
        self._slots.running[running.lease] = running
        running.renew_limit(self._kinds[job.kind].time_limit_seconds)
        running.task = asyncio.create_task(self._attempt(running))

    async def _attempt(self, running: Running) -> None:
        job = running.job
        try:
            output = await self._handle(running)
        except LeaseLost:
            log.warning("lease lost", job=str(job.id))
        except OverBudget as paused:
            await self._pause(job, paused)
        except asyncio.CancelledError:
            running.ended = True
            if running.timed_out:
                await self._fail(job, TimedOut("It made no progress within its time limit."))
        except OctavoError as error:
            await self._fail(job, error)
        except Exception as error:
            log.exception("job crashed", job=str(job.id), kind=job.kind)
            await self._fail(job, UnexpectedError(f"{type(error).__name__}: {explain(error)}"))
        else:
            self._slots.finished.append((job, output))
        finally:
            del self._slots.running[running.lease]
            self._wake.set()

    async def _handle(self, running: Running) -> JSON:
        kind = self._kinds[running.job.kind]

        def renew() -> None:
            if kind.limit_renewed_by_stage:
                running.renew_limit(kind.time_limit_seconds)

        return await kind.handler(Run(running.job, self._tools, self._database, self._faults, renew))

    async def _fail(self, job: ClaimedJob, error: OctavoError) -> None:
        rule = RETRY_RULES[error.error_class]
        values: dict[str, Any] = {
            "job": job.id,
            "token": job.lease_token,
            "code": error.code,
            "message": error.line,
            "first_delay": rule.first_delay_seconds if rule else None,
            "factor": rule.factor if rule else 1,
            "charged": rule.charged if rule else True,
            "retry_after": error.retry_after_seconds,
        }
        self._faults.reach("fail.before")
        await retry_until_available(lambda: self._execute(QUERIES.fail, values))
        self._faults.reach("fail.after")

    async def _pause(self, job: ClaimedJob, paused: OverBudget) -> None:
        values = {"job": job.id, "token": job.lease_token, "code": paused.code, "message": paused.line}
        await retry_until_available(lambda: self._execute(QUERIES.pause, values))

    # Keeping it --------------------------------------------------------------------------------------------------

    async def _keep_leases(self) -> None:
        """Once a second: what is lost or over its time is stopped, and leases are renewed when it is time."""
        while True:
            await asyncio.sleep(min(1.0, self._limits.heartbeat_seconds / 2))
            self._slots.stop_overdue()
            try:
                await self._check_leases()
            except (DatabaseUnavailable, psycopg.Error) as error:
                log.warning("leases cannot be renewed", reason=explain(error))
                if time.monotonic() - self._renewed > self._limits.give_up_seconds:
                    self._slots.abandon_all()

    async def _check_leases(self) -> None:
        running = list(self._slots.running.values())
        leases = leases_of([one.job for one in running])
        async with self._database.connection(wait_seconds=self._limits.heartbeat_seconds) as connection:
            cursor = await connection.execute(QUERIES.lost, leases)
            lost = {row[0] async for row in cursor}
            if time.monotonic() - self._renewed >= self._limits.heartbeat_seconds:
                await self._renew(connection, leases, len(running))
        for one in running:
            if one.job.id in lost and self._slots.stop_lost(one):
                log.warning("lease lost", job=str(one.job.id))

    async def _renew(self, connection: Connection, leases: dict[str, Any], running: int) -> None:
        self._faults.reach("heartbeat.before")
        lease = self._limits.lease_seconds
        await connection.execute(QUERIES.renew, {**leases, "worker": self.id, "lease": lease})
        await connection.execute(QUERIES.worker_heartbeat, {"id": self.id, "running": running, "seconds": lease})
        self._renewed = time.monotonic()

    async def _keep_time(self) -> None:
        """What was left behind by others is taken over, and what is due goes back in line."""
        patient_until = 0.0
        while True:
            await asyncio.sleep(TIME_SECONDS)
            asked = time.monotonic()
            with contextlib.suppress(DatabaseUnavailable, psycopg.Error):
                async with self._database.connection() as connection:
                    # Everybody's leases ran out while the database was away; who still lives may renew them first.
                    if time.monotonic() - asked > AWAY_SECONDS:
                        patient_until = time.monotonic() + self._limits.patience_seconds
                    values = {"taking_over": time.monotonic() >= patient_until}
                    row = await (await connection.execute(QUERIES.pass_time, values)).fetchone()
                    if row and row[0]:
                        self._wake.set()

    async def _keep_schedules(self) -> None:
        """Every worker looks; a row lock lets one of them start what is due."""
        while True:
            await asyncio.sleep(SCHEDULE_SECONDS)
            try:
                async with self._database.transaction() as connection:
                    await run_due(connection)
            except (DatabaseUnavailable, psycopg.Error) as error:
                log.warning("schedules cannot be looked at", reason=explain(error))

    async def _keep_doing(self, chore: Chore) -> None:
        """Every worker does it; the chore itself sees to it that only one of them does at a time."""
        while True:
            try:
                pause = await chore(self._database)
            except (DatabaseUnavailable, psycopg.Error) as error:
                log.warning("a chore has to wait", reason=explain(error))
                pause = SCHEDULE_SECONDS
            await asyncio.sleep(pause)

    # Coming and going --------------------------------------------------------------------------------------------

    async def _registered(self, stopping: asyncio.Event) -> bool:
        """Wait for the database to know us; false when we were asked to stop before it did."""
        registering = asyncio.create_task(retry_until_available(self._register))
        asked = asyncio.create_task(stopping.wait())
        await asyncio.wait([registering, asked], return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not registering.done():
            await end([registering])
            return False
        await registering
        return True

    async def _register(self) -> None:
        async with self._database.transaction() as connection:
            await register_worker(connection, self.id, self._kinds, self._limits)
            await sync_schedules(connection, self._schedules)
        self._renewed = time.monotonic()

    async def _listen(self) -> None:
        """Wakes the worker at once; without it, as behind a connection pooler, polling does."""
        while True:
            try:
                async with await self._database.connect_apart() as connection:
                    await connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._wake.set()
                    async for _ in connection.notifies():
                        self._wake.set()
            except (DatabaseUnavailable, psycopg.Error) as error:
                log.info("not listening, polling instead", reason=explain(error))
            await asyncio.sleep(self._limits.poll_seconds)

    async def _wake_when(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        self._wake.set()

    async def _leave(self, helpers: Sequence[asyncio.Task[None]]) -> None:
        left = await self._slots.empty()
        await end(helpers)
        await self._say_goodbye(left)
        if self._visits:
            await self._visits.close()

    async def _say_goodbye(self, left: Sequence[ClaimedJob]) -> None:
        with contextlib.suppress(DatabaseUnavailable, psycopg.Error):
            async with self._database.connection(wait_seconds=self._limits.grace_seconds) as connection:
                await self._claim(connection, self._slots.finished, 0)
                values = {**leases_of([*left, *self._slots.abandoned]), "because": "worker_stopped"}
                await connection.execute(QUERIES.hand_back, values)
                await connection.execute(QUERIES.forget_worker, {"id": self.id})

    async def _execute(self, query: bytes, values: dict[str, Any]) -> None:
        async with self._database.connection() as connection:
            await connection.execute(query, values)


class UnexpectedError(OctavoError):
    """Something unexpected happened while this job ran."""

    error_class = ErrorClass.TRANSIENT
