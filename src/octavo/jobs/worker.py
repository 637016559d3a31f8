"""The worker: claims and runs jobs, renews their leases, and stops jobs whose lease is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Generic, TypeVar
from uuid import UUID

import psycopg
import structlog
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.core.errors import RETRY_RULES, DatabaseUnavailable, ErrorClass, OctavoError, OverBudget, TimedOut
from octavo.core.instruments import JOB_WAITS
from octavo.core.types import JSON, new_id
from octavo.database import (
    Connection,
    Database,
    ThreadConnection,
    explain,
    load_queries,
    newest_known,
    retry_until_available,
)
from octavo.jobs.job_run import ClaimedJob, FaultPlan, LeaseLost, Run, recorded_attempt
from octavo.jobs.kinds import Kinds, Schedule, run_due, sync_kinds, sync_schedules
from octavo.jobs.worker_state import (
    DueIn,
    Heartbeat,
    LaneClaims,
    RunningJob,
    Slots,
    WorkerLimits,
    as_array,
    cancel_tasks,
    leases_of,
)

log = structlog.get_logger()
QUERIES = load_queries("jobs")
CHANNEL = "octavo_jobs"
CHORE_SECONDS = 1.0
# The shortest and the longest time until the clock is checked. In between, it is checked when a job or schedule is due.
TIME_SECONDS, QUIET_TIME_SECONDS = 0.25, 7.5
# The longest time for workers that are not the time-keeper. They also act when something is due, so nothing is late
# if the time-keeper ends.
SPARE_TIME_SECONDS = 30.0
# A chore without work pauses twice as long each time, up to this, while nothing happens in this worker. Without
# notifications, a worker does not know what happens elsewhere, so its chores pause no longer than it polls.
QUIET_CHORE_SECONDS = 30.0
RETRY_SECONDS = 0.2
# If a connection takes longer than this, the database was unavailable.
AWAY_SECONDS = 0.5

Tools = TypeVar("Tools")
# Work that a worker repeats in addition to its jobs. Returns the seconds until it is due again. While nothing happens,
# it is repeated less often, unless it returns `DueIn`.
Chore = Callable[[Database], Awaitable[float]]


class Worker(Generic[Tools]):
    """Claims and runs jobs in one process. Any number of workers can run on any number of machines."""

    def __init__(
        self,
        database: Database,
        kinds: Kinds[Tools],
        tools: Tools,
        limits: WorkerLimits,
        faults: FaultPlan | None = None,
        schedules: Sequence[Schedule] = (),
        chores: Sequence[Chore] = (),
        *,
        worker_id: UUID | None = None,
    ) -> None:
        self.id = worker_id or new_id()
        self._database = database
        self._kinds = kinds
        self._tools = tools
        self._limits = limits
        self._faults = faults or FaultPlan("")
        self._schedules = schedules
        self._chores = chores
        self._claims = LaneClaims()
        self._slots = Slots(limits)
        self._newest_known = newest_known()
        self._known = as_array(f'"{name}"' for name in kinds.names)
        self._wake = asyncio.Event()
        # Set when this worker stops because the schema of the database has become too new for it.
        self._outdated = asyncio.Event()
        # Set when the clock must be checked earlier, because a job may have been delayed.
        self._delayed = asyncio.Event()
        # Set for a moment when something happens, and counted for chores that are running then.
        self._stirred, self._stirs = asyncio.Event(), 0
        # Whether notifications arrive. Behind some connection poolers they do not, so the worker polls more often.
        self._is_notified = False
        self._heartbeat = Heartbeat(database.connect_in_thread, self._renew, limits.heartbeat_seconds, self._slots)
        self._response_lost = False
        self._exchange_connection: Connection | None = None

    async def run(self, stopping: asyncio.Event) -> None:
        """Run until `stopping` is set, or until the schema of the database becomes too new for this version.

        Jobs then get a few seconds to finish, and unfinished jobs return to the queue.
        """
        if not await self._registered(stopping):
            return
        self._heartbeat.start()
        helpers = [
            asyncio.create_task(work)
            for work in (
                self._listen(),
                self._keep_leases(),
                self._keep_time(),
                self._wake_when(stopping),
                *map(self._keep_doing, self._chores),
            )
        ]
        try:
            while not stopping.is_set() and not self._outdated.is_set():
                if not await self._exchange():
                    await self._rest()
        finally:
            await self._leave(helpers)

    # Claiming -------------------------------------------------------------------------------------------------

    async def _exchange(self) -> bool:
        """Report finished jobs and claim new ones. Returns whether more jobs may be waiting."""
        self._wake.clear()
        if not self._slots.free and not self._slots.has_unreported:
            return False
        try:
            more, claimed = await self._exchange_jobs()
        except DatabaseUnavailable as error:
            log.warning("waiting for the database", reason=error.line)
            self._response_lost = True
            return False
        for job in claimed:
            self._start(job)
        if claimed:
            self._delayed.set()  # jobs above the start rate of their kind are delayed
        return more

    async def _exchange_jobs(self) -> tuple[bool, list[ClaimedJob]]:
        async with self._claiming_connection() as connection:
            if self._response_lost:
                await self._start_unknown(connection)
            if abandoned := self._slots.abandoned[:]:
                await connection.execute(QUERIES.hand_back, {**leases_of(abandoned), "because": "database_away"})
                del self._slots.abandoned[: len(abandoned)]
            # Read both without an await in between: a finished job occupies its slot until it is reported.
            free, for_bulk, finished = self._slots.free, self._slots.free_for_bulk, self._slots.finished[:]
            if finished:
                self._faults.reach("complete.before")
            claimed = await self._claim(connection, finished, free, for_bulk)
        del self._slots.finished[: len(finished)]
        if finished:
            self._faults.reach("complete.after")
        if claimed:
            self._faults.reach("claim.after")
            self._claims.add(claimed, time.monotonic())
            for job in claimed:
                JOB_WAITS.labels(job.kind, job.lane).observe(max(0.0, job.waited or 0.0))
        # Cap slots of finished jobs pass to other jobs after the claim, so the next exchange may claim those.
        return free > 0 and (len(claimed) == free or bool(finished)), claimed

    @asynccontextmanager
    async def _claiming_connection(self) -> AsyncGenerator[Connection]:
        """Provide a database connection for claiming jobs and reporting finished ones.

        A worker that runs jobs needs it often, so it keeps a separate connection, which is not checked before each use.
        A worker without jobs borrows a connection from the pool, so that it holds as few connections as possible.
        """
        try:
            if self._exchange_connection is None and self._slots.is_empty:
                async with self._database.connection() as connection:
                    yield connection
                return
            if self._exchange_connection is None:
                self._exchange_connection = await self._database.connect_unpooled()
            yield self._exchange_connection
        except psycopg.OperationalError as error:
            await self._disconnect()
            raise DatabaseUnavailable(str(error).strip().splitlines()[0]) from error

    async def _disconnect(self) -> None:
        unused, self._exchange_connection = self._exchange_connection, None
        if unused:
            await unused.close()

    async def _claim(
        self, connection: Connection, finished: Sequence[tuple[ClaimedJob, JSON]], free: int, for_bulk: int
    ) -> list[ClaimedJob]:
        values = {
            "worker": self.id,
            **leases_of([job for job, _ in finished]),
            "outputs": Jsonb([output for _, output in finished]),
            "kinds": self._known,
            "slots": free,
            "bulk_most": for_bulk,
            "lease": self._limits.lease_seconds,
            **self._claims.values(time.monotonic()),
        }
        async with connection.cursor(row_factory=class_row(ClaimedJob)) as cursor:
            await cursor.execute(QUERIES.exchange, values)
            return await cursor.fetchall()

    async def _start_unknown(self, connection: Connection) -> None:
        """Start jobs that this worker has claimed but does not know about, because the database's response was lost."""
        async with connection.cursor(row_factory=class_row(ClaimedJob)) as cursor:
            await cursor.execute(QUERIES.claimed_by, {"worker": self.id, "running": self._slots.job_ids})
            for job in await cursor.fetchall():
                self._start(job)
        self._response_lost = False

    async def _rest(self) -> None:
        """Wait until the worker is woken up or a timeout expires.

        The timeout is short if finished jobs have not been reported yet, and long if the worker receives notifications
        about new jobs.
        """
        pending = self._response_lost or self._slots.has_unreported
        poll = self._limits.quiet_seconds if self._is_notified else self._limits.poll_seconds
        if not await _wait(self._wake, RETRY_SECONDS if pending else poll) and self._slots.is_empty:
            await self._disconnect()

    def _stir(self) -> None:
        """Wake the worker after an event, so that it looks for jobs, checks the clock and runs its background tasks."""
        self._wake.set()
        self._delayed.set()
        self._stirs += 1
        self._stirred.set()
        self._stirred.clear()  # tasks that are waiting now have been woken

    # Running ----------------------------------------------------------------------------------------------------

    def _start(self, job: ClaimedJob) -> None:
        running = RunningJob(job)
        self._slots.running[running.lease] = running
        running.renew_limit(self._kinds[job.kind].time_limit_seconds)
        running.task = asyncio.create_task(self._attempt(running))

    async def _attempt(self, running: RunningJob) -> None:
        job = running.job
        try:
            output = await self._handle(running)
        except LeaseLost:
            log.warning("lease lost", job=str(job.id))
        except OverBudget as paused:
            running.ended = True
            await self._pause(job, paused)
        except asyncio.CancelledError:
            running.ended = True
            if running.timed_out:
                await self._fail(job, TimedOut("No progress within the time limit."))
        except OctavoError as error:
            running.ended = True
            await self._fail(job, error)
        except Exception as error:
            running.ended = True
            log.exception("job crashed", job=str(job.id), kind=job.kind)
            await self._fail(job, UnexpectedError(f"{type(error).__name__}: {explain(error)}"))
        else:
            self._slots.finished.append((job, output))
        finally:
            del self._slots.running[running.lease]
            self._stir()

    async def _handle(self, running: RunningJob) -> JSON:
        kind = self._kinds[running.job.kind]

        def renew() -> None:
            if kind.limit_renewed_by_stage:
                running.renew_limit(kind.time_limit_seconds)

        aside = partial(running.step_aside, self._wake.set)
        async with recorded_attempt(running.job, self._database):
            return await kind.handler(Run(running.job, self._tools, self._database, self._faults, renew, aside))

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
        self._delayed.set()
        self._faults.reach("fail.after")
        await self._after_failure(job)

    async def _after_failure(self, job: ClaimedJob) -> None:
        """Call the `after_failure` hook of the job's kind.

        The hook must check whether the job will be retried.
        """
        if hook := self._kinds[job.kind].after_failure:
            try:
                await hook(self._tools, job)
            except (DatabaseUnavailable, OctavoError, psycopg.Error) as error:
                log.warning("after_failure hook failed", job=str(job.id), reason=explain(error))

    async def _pause(self, job: ClaimedJob, paused: OverBudget) -> None:
        values = {"job": job.id, "token": job.lease_token, "code": paused.code, "message": paused.line}
        await retry_until_available(lambda: self._execute(QUERIES.pause, values))

    # Leases and the clock ----------------------------------------------------------------------------------------

    async def _keep_leases(self) -> None:
        """Every second, stop jobs that lost their lease or exceeded their time limit."""
        while True:
            await asyncio.sleep(min(1.0, self._limits.heartbeat_seconds / 2))
            self._heartbeat.loop_runs()
            self._slots.stop_overdue()
            if not self._slots.running:
                continue
            try:
                await self._check_leases()
            except (DatabaseUnavailable, psycopg.Error) as error:
                log.warning("leases not checked", reason=explain(error))
                if self._heartbeat.silent_seconds > self._limits.abandon_seconds:
                    self._slots.abandon_all()

    async def _check_leases(self) -> None:
        running = list(self._slots.running.values())
        async with self._database.connection(wait_seconds=self._limits.heartbeat_seconds) as connection:
            cursor = await connection.execute(QUERIES.lost, leases_of([one.job for one in running]))
            lost = {row[0] async for row in cursor}
        for one in running:
            if one.job.id in lost and self._slots.stop_lost(one):
                log.warning("lease lost", job=str(one.job.id))

    def _renew(self, connection: ThreadConnection) -> bool:
        """Renew the leases of the jobs and the registration of the worker. Runs in the heartbeat thread."""
        self._faults.reach("heartbeat.before")
        held, lease = self._slots.held(), self._limits.lease_seconds
        values = {**leases_of(held), "worker": self.id, "lease": lease}
        renewed = connection.execute(QUERIES.renew, values).rowcount if held else 0
        connection.execute(QUERIES.worker_heartbeat, {"id": self.id, "running": len(held), "seconds": lease})
        return renewed == len(held)

    async def _keep_time(self) -> None:
        """Return the jobs of dead workers to the queue, release delayed jobs, and start schedules that are due.

        Every worker runs this loop, so no dedicated worker is needed. While nothing is due, only one worker, the
        time-keeper, checks often. Row locks ensure that each schedule is started by only one worker.
        """
        takeover_from, pause = 0.0, TIME_SECONDS
        while True:
            began = time.monotonic()
            await asyncio.sleep(TIME_SECONDS)
            await _wait(self._delayed, pause - TIME_SECONDS)
            self._delayed.clear()
            requested, planned, pause = time.monotonic(), pause, TIME_SECONDS
            with contextlib.suppress(DatabaseUnavailable, psycopg.Error):
                async with self._database.connection() as connection:
                    # Leases expired during an outage, or while this machine was suspended. Give live workers, including
                    # this one, time to renew theirs first.
                    away = time.monotonic() - requested > AWAY_SECONDS
                    if away or requested - began > planned + self._limits.heartbeat_seconds:
                        takeover_from = time.monotonic() + self._limits.takeover_delay_seconds
                    pause = await self._pass_time(connection, taking_over=time.monotonic() >= takeover_from)

    async def _pass_time(self, connection: Connection, *, taking_over: bool) -> float:
        """Release delayed jobs, and start schedules that are due. Returns the number of seconds until the next check.

        If `taking_over` is true, also return the jobs of dead workers to the queue. A worker with jobs checks the clock
        often, so that it notices if its machine was suspended.
        """
        values = {"taking_over": taking_over, "newest_known": self._newest_known, "worker": self.id}
        row = await (await connection.execute(QUERIES.pass_time, values)).fetchone()
        changed, due_in, has_due_schedule, is_outdated, is_keeper = row or (0, None, False, False, True)
        if is_outdated:
            log.error("stopping, because a newer version of Octavo changed the schema of the database")
            self._outdated.set()
            self._wake.set()
        if changed:
            self._wake.set()
            await connection.execute(QUERIES.notify)
        if has_due_schedule:
            async with connection.transaction():
                await run_due(connection)
        if self._slots.running:
            return TIME_SECONDS
        is_spare = self._is_notified and not is_keeper
        most = SPARE_TIME_SECONDS if is_spare else min(QUIET_TIME_SECONDS, self._limits.heartbeat_seconds)
        return most if due_in is None else min(most, max(TIME_SECONDS, float(due_in)))

    async def _keep_doing(self, chore: Chore) -> None:
        """Run a background task repeatedly.

        Every worker does this, and the task itself ensures that only one worker runs it at a time. The pause between
        two runs becomes longer while the worker is idle.
        """
        before, pause = 0.0, 0.0
        while True:
            stirs = self._stirs
            try:
                usual = await chore(self._database)
            except (DatabaseUnavailable, psycopg.Error) as error:
                log.warning("chore postponed", reason=explain(error))
                usual = CHORE_SECONDS
            is_due = isinstance(usual, DueIn)
            is_quiet = usual == before and not is_due and not self._slots.running
            most = QUIET_CHORE_SECONDS if self._is_notified else self._limits.poll_seconds
            pause = max(usual, min(2 * pause, most)) if is_quiet else min(usual, most) if is_due else usual
            before = usual
            least = min(usual, CHORE_SECONDS) if is_due else usual
            await asyncio.sleep(least)
            if self._stirs != stirs or await _wait(self._stirred, pause - least):
                pause = usual

    # Starting and stopping --------------------------------------------------------------------------------------------

    async def _registered(self, stopping: asyncio.Event) -> bool:
        """Register the worker once the database is available. Returns False if the worker is stopped before that."""
        registering = asyncio.create_task(retry_until_available(self._register))
        stop = asyncio.create_task(stopping.wait())
        await asyncio.wait([registering, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not registering.done():
            await cancel_tasks([registering])
            return False
        await registering
        return True

    async def _register(self) -> None:
        async with self._database.transaction() as connection:
            await sync_kinds(connection, self._kinds)
            await register_worker(connection, self.id, self._kinds, self._limits)
            await sync_schedules(connection, self._schedules)

    async def _listen(self) -> None:
        """Wake the worker when a job is enqueued.

        If notifications do not arrive, for example behind a connection pooler, the worker polls.
        """
        while True:
            try:
                connection, keeps_session = await self._database.connect_directly()
                async with connection:
                    if not keeps_session:
                        log.info("polling for jobs, because a connection pooler does not pass on notifications")
                        return
                    await connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._stir()
                    await self._execute(QUERIES.notify, {})  # shows whether notifications arrive
                    async for _ in connection.notifies():
                        self._is_notified = True
                        self._stir()
            except (DatabaseUnavailable, psycopg.Error) as error:
                log.info("not listening, polling instead", reason=explain(error))
            self._is_notified = False
            await asyncio.sleep(self._limits.poll_seconds)

    async def _wake_when(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        self._wake.set()

    async def _leave(self, helpers: Sequence[asyncio.Task[None]]) -> None:
        left = await self._slots.empty()
        await cancel_tasks(helpers)
        await self._heartbeat.stop()
        await self._unregister(left)
        await self._disconnect()

    async def _unregister(self, left: Sequence[ClaimedJob]) -> None:
        with contextlib.suppress(DatabaseUnavailable, psycopg.Error):
            async with self._database.connection(wait_seconds=self._limits.grace_seconds) as connection:
                await self._claim(connection, self._slots.finished, 0, 0)
                values = {**leases_of([*left, *self._slots.abandoned]), "because": "worker_stopped"}
                await connection.execute(QUERIES.hand_back, values)
                await connection.execute(QUERIES.forget_worker, {"id": self.id})

    async def _execute(self, query: bytes, values: dict[str, Any]) -> None:
        async with self._database.connection() as connection:
            await connection.execute(query, values)


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    """Wait up to `seconds` until the event is set. Returns whether it was set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, seconds)):
            return await event.wait()
    return False


async def register_worker(connection: Connection, worker: UUID, kinds: Kinds[Any], limits: WorkerLimits) -> None:
    await connection.execute(QUERIES.forget_dead_workers)
    values = {
        "id": worker,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "kinds": kinds.names,
        "slots": limits.slots,
        "seconds": limits.lease_seconds,
    }
    await connection.execute(QUERIES.register_worker, values)


class UnexpectedError(OctavoError):
    """An unexpected error occurred. The log has the details."""

    error_class = ErrorClass.TRANSIENT
