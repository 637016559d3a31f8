"""An analysis of 20,000 items to its end: memory of the workers, items a second, and what looking at it costs.

`python -m benchmarks.analyses.many [SEGMENTS] [PROMPTS] [WORKERS]`. A model of ours answers at once. Each line is one
twentieth of the way: the memory of all workers without their sandboxes, what one look at the analysis takes, and what
one claim takes, which is rolled back.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

import psutil
import psycopg

from benchmarks.analyses.house import SAMPLE_SECONDS, House, open_house
from octavo.analyse.details import show_analysis
from octavo.database import connect, load_queries
from tests.support.engine import FROM_THE_BEGINNING

SEGMENTS, PROMPTS, WORKERS, AT_ONCE = 200, 100, 2, 10
STEPS, ROUNDS = 20, 5
# The end against the first twentieth, after which caches are warm and pools are full.
GOAL_MEMORY, GOAL_LOOK = 1.25, 3.0
DONE = "SELECT count(*) FROM analysis_items WHERE status = 'done'"
JOBS = load_queries("jobs")


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds since the first answer, MiB, and milliseconds."""

    done: int
    seconds: float
    memory: float
    look: float
    claim: float


def milliseconds(work: Callable[[], object]) -> float:
    took: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


class Watching:
    def __init__(self, house: House, analysis: UUID) -> None:
        self._house = house
        self._analysis = analysis
        self._owner: UUID = house.engine.one("SELECT owner_id FROM analyses")
        self._workers = [psutil.Process(one.pid) for one in house.workers.started]
        self._began = time.monotonic()

    def sample(self, done: int) -> Sample:
        memory = sum(one.memory_info().rss for one in self._workers) / (1 << 20)
        seconds = time.monotonic() - self._began
        with psycopg.connect(self._house.engine.info) as connection:
            self._claim(connection)  # which makes it known what there is
            claim = milliseconds(lambda: self._claim(connection))
        return Sample(done, seconds, memory, asyncio.run(self._look()), claim)

    async def _look(self) -> float:
        """As the API does it."""
        async with await connect(self._house.engine.info) as connection:
            took: list[float] = []
            for _ in range(ROUNDS + 1):  # one to know what there is
                began = time.perf_counter()
                await show_analysis(connection, self._owner, self._analysis)
                took.append(time.perf_counter() - began)
        return statistics.median(took[1:]) * 1000

    def _claim(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        values = {"worker": uuid4(), "kinds": ["answer_segment"], "held": [], "tokens": [], "outputs": "[]"}
        connection.execute(JOBS.exchange, values | {"slots": 1, "lease": 60, **FROM_THE_BEGINNING})
        connection.rollback()


def run(house: House, segments: int, prompts: int, workers: int) -> list[Sample]:
    for _ in range(workers):
        house.workers.start()
    house.wait(workers)
    began = time.monotonic()
    analysis = house.begin(segments, prompts, AT_ONCE)
    while not (done := house.engine.one(DONE)):
        time.sleep(SAMPLE_SECONDS)
    print(f"asked for, planned, cut, and {segments * prompts:,} items in line: {time.monotonic() - began:.0f} s")
    watching, step, samples = Watching(house, analysis), segments * prompts // STEPS, list[Sample]()
    while house.is_open():
        done = house.engine.one(DONE)
        if done >= (len(samples) + 1) * step:
            samples.append(watching.sample(done))
            show(samples)
        time.sleep(SAMPLE_SECONDS)
    print(f"all of it: {time.monotonic() - began:.0f} s")
    return samples


def show(samples: list[Sample]) -> None:
    one, before = samples[-1], samples[-2] if len(samples) > 1 else Sample(0, 0.0, 0.0, 0.0, 0.0)
    rate = (one.done - before.done) / (one.seconds - before.seconds)
    told = f"{one.done:7,} {one.seconds:7.0f} s {rate:7.1f}/s {one.memory:8.1f} MiB"
    print(f"{told} {one.look:8.1f} ms {one.claim:8.1f} ms", flush=True)


def main(segments: int = SEGMENTS, prompts: int = PROMPTS, workers: int = WORKERS) -> int:
    with open_house(0.0, worker_slots=AT_ONCE) as house:
        print(f"{'done':>7} {'seconds':>9} {'items':>9} {'memory':>12} {'look':>11} {'claim':>11}")
        samples = run(house, segments, prompts, workers)
        status = house.engine.one("SELECT status FROM analyses")
        failed = house.engine.one("SELECT count(*) FROM jobs WHERE parent_id IS NOT NULL AND status <> 'complete'")
    first, last = samples[0], samples[-1]
    print(f"{status}, {failed} jobs not complete; memory {first.memory:.0f} MiB, at the end {last.memory:.0f} MiB")
    flat = last.memory <= GOAL_MEMORY * first.memory and last.look <= GOAL_LOOK * first.look
    return 0 if status == "completed" and not failed and flat else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
