"""What an analysis takes beyond the time of its model, five questions at once.

`python -m benchmarks.analyses.overhead [SEGMENTS] [PROMPTS] [SECONDS]`. A model of ours answers each question after a
fixed time, on a socket. The least that is possible is that time for every call, five at once; what is measured goes
from the request to the last answer: planning, cutting the PDF, sending files, asking, and putting answers together. On
a busy machine only the processor seconds of the worker say anything.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from typing import NamedTuple

from benchmarks.analyses.house import SAMPLE_SECONDS, House, open_house
from benchmarks.book import processor_seconds

SEGMENTS, PROMPTS, SECONDS, AT_ONCE = 20, 5, 2.0, 5
GOAL = 0.15
PHASES = """
    SELECT detail ->> 'phase' AS phase, extract(epoch FROM at)::float8 AS at FROM events
    WHERE starts_with(kind, 'analysis.') AND detail ? 'phase' ORDER BY id"""


class Took(NamedTuple):
    """Seconds by the clock, and of processors."""

    clock: float
    processors: float


def measure(house: House, segments: int, prompts: int) -> Took:
    worker = house.workers.start().pid
    house.wait(1)
    house.begin(segments, prompts, AT_ONCE)
    before = processor_seconds(worker)
    while house.is_open():
        time.sleep(SAMPLE_SECONDS)
    clock = house.engine.one("SELECT extract(epoch FROM completed_at - created_at)::float8 FROM analyses")
    return Took(clock, processor_seconds(worker) - before)


def main(segments: int = SEGMENTS, prompts: int = PROMPTS, seconds: float = SECONDS) -> int:
    with open_house(seconds, worker_slots=10) as house:
        took = measure(house, segments, prompts)
        status, calls = house.engine.one("SELECT status FROM analyses"), house.model.calls
        phases = [(row["phase"], row["at"]) for row in house.engine.rows(PHASES)]
    ideal = calls * seconds / AT_ONCE
    print(f"{segments} segments, {prompts} prompts: {status}, {calls} calls of {seconds} s, {AT_ONCE} at once")
    for (phase, begun), (_, ended) in pairwise(phases):
        print(f"  {phase:16} {ended - begun:7.2f} s")
    beyond = took.clock / ideal - 1
    print(f"ideal {ideal:.1f} s, took {took.clock:.1f} s: {beyond:.1%} beyond it")
    print(f"the worker with its children used {took.processors:.1f} s of processors")
    return 0 if status == "completed" and beyond < GOAL else 1


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(*map(int, given[:2]), *map(float, given[2:])))
