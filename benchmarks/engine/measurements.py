"""What is measured: how fast a full queue is drained, and how soon an idle worker starts a job."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.engine.contest import PATIENCE_SECONDS, WORKERS, Entry, Process, processes
from benchmarks.engine.contestants.protocol import PLAIN, STAGED
from tests.support.postgres import Server, as_url

PILOT_JOBS, DRAIN_SECONDS = 400, 7
COUNT_POLL_SECONDS = 0.05
WARM_UP_OFFERS, OFFERS = 20, 200
# A random pause, so that a worker that polls is met at every point of its interval.
PAUSE_SECONDS = (0.03, 0.08)
Result = dict[str, float]


@dataclass(frozen=True)
class Arena:
    """The one server that all contestants use, and where what they print is kept."""

    server: Server
    log: Path

    @contextmanager
    def keeper(self, entry: Entry, batch: int) -> Generator[tuple[Process, str]]:
        """A new database with the contestant's schema, and the process that keeps the queue in it."""
        with (
            self.server.database(migrated=False) as connection_info,
            processes(entry.name, as_url(connection_info), self.log, 1) as (keeper,),
        ):
            keeper.ask("prepare", batch)
            yield keeper, connection_info

    @contextmanager
    def workers(self, entry: Entry, connection_info: str, batch: int) -> Generator[list[Process]]:
        """Workers that were all connected before the first of them began."""
        with processes(entry.name, as_url(connection_info), self.log, WORKERS) as started:
            for worker in started:
                worker.tell("work", batch)
            for worker in started:
                worker.hear()
            for worker in started:
                worker.tell("go")
            yield started


@dataclass(frozen=True)
class Drain:
    """Jobs per second, from the first line of the first job until the database holds no unfinished job."""

    title: str
    kind: str
    batch: int
    figures = ("jobs/s",)
    more_is_better = True

    def can(self, entry: Entry) -> bool:
        return self.kind == PLAIN or entry.can_checkpoint

    def pilot(self, arena: Arena, entry: Entry) -> int:
        """How many jobs keep this contestant busy for some seconds."""
        rate = self._run(arena, entry, PILOT_JOBS)
        rate = self._run(arena, entry, max(PILOT_JOBS, round(rate)))
        return max(PILOT_JOBS, round(rate * DRAIN_SECONDS / 100) * 100)

    def measure(self, arena: Arena, entry: Entry, size: int) -> Result:
        return {"jobs/s": self._run(arena, entry, size)}

    def _run(self, arena: Arena, entry: Entry, jobs: int) -> float:
        with arena.keeper(entry, self.batch) as (keeper, connection_info):
            keeper.ask("enqueue", self.kind, jobs)
            _tidy(connection_info)
            with arena.workers(entry, connection_info, self.batch) as workers:
                _wait_until_started(workers, jobs)
                settled = keeper.ask("settle")["settled"]
                return jobs / (settled - _starts(workers, jobs)[0])


@dataclass(frozen=True)
class IdleStart:
    """Milliseconds from the enqueueing of one job until the first line of its code, while the workers are idle."""

    title: str
    batch: int = 1
    figures = ("p50 ms from commit", "p95 ms from commit", "p50 ms from call", "p95 ms from call")
    more_is_better = False

    def can(self, entry: Entry) -> bool:  # noqa: ARG002
        return True

    def pilot(self, arena: Arena, entry: Entry) -> int:  # noqa: ARG002
        return OFFERS

    def measure(self, arena: Arena, entry: Entry, size: int) -> Result:
        with (
            arena.keeper(entry, self.batch) as (keeper, connection_info),
            arena.workers(entry, connection_info, self.batch) as workers,
        ):
            _warm_up(keeper, workers)
            offers = [_offer(keeper) for _ in range(size)]
            starts = _starts(workers, WARM_UP_OFFERS + size)[WARM_UP_OFFERS:]
        pairs = list(zip(offers, starts, strict=True))
        return {
            **_percentiles("commit", [start - offer["committed"] for offer, start in pairs]),
            **_percentiles("call", [start - offer["called"] for offer, start in pairs]),
        }


MEASUREMENTS = (
    Drain("drain one at a time", PLAIN, 1),
    Drain("drain in tens", PLAIN, 10),
    Drain("five-stage jobs", STAGED, 10),
    IdleStart("idle start"),
)


def _tidy(connection_info: str) -> None:
    """Without this, the moment of the next autovacuum or checkpoint decides who wins."""
    with psycopg.connect(connection_info, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _warm_up(keeper: Process, workers: list[Process]) -> None:
    for number in range(WARM_UP_OFFERS):
        keeper.ask("offer")
        _wait_until_started(workers, number + 1)
    keeper.ask("settle")


def _offer(keeper: Process) -> Result:
    """One job, with a pause that is long enough for the workers to be idle again."""
    offer = keeper.ask("offer")
    time.sleep(random.uniform(*PAUSE_SECONDS))
    keeper.ask("settle")
    return offer


def _wait_until_started(workers: list[Process], jobs: int) -> None:
    patience = time.monotonic() + PATIENCE_SECONDS
    while (started := sum(worker.ask("count")["count"] for worker in workers)) < jobs:
        if time.monotonic() > patience:
            raise TimeoutError(f"{started} of {jobs} jobs were started in {PATIENCE_SECONDS} s")
        time.sleep(COUNT_POLL_SECONDS)


def _starts(workers: list[Process], jobs: int) -> list[float]:
    """The starts of all jobs in order; a job that ran twice would make the figures worthless."""
    starts = sorted(start for worker in workers for start in worker.ask("starts")["starts"])
    if len(starts) != jobs:
        raise AssertionError(f"{jobs} jobs were started {len(starts)} times")
    return starts


def _percentiles(since: str, seconds: list[float]) -> Result:
    cuts = statistics.quantiles(seconds, n=20)
    return {f"p50 ms from {since}": cuts[9] * 1000, f"p95 ms from {since}": cuts[18] * 1000}
