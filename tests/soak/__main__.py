"""`python -m tests.soak --minutes 10 --seed 1`: prints one line of figures, and what went wrong, if anything did.

The seed decides what is added and in which order processes are killed; the moments depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from octavo.database.embedded import DataFolder, EmbeddedPostgres
from tests.soak.kills import Killer
from tests.soak.load import PEOPLE, Caller, Person, Receipts
from tests.soak.verdict import OPEN, RESERVED, check, check_books
from tests.support.analyses import answer_well, read_pages
from tests.support.engine import Engine, engine_on
from tests.support.fake_ai import Asked, FakeGemini
from tests.support.fake_ai.server import SECRET, good_answer
from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder
from tests.support.processes import wait_until

WORKERS = 2
LEASE_SECONDS = 10
# All must have ended this long after the last kill.
MOST_SETTLING_SECONDS = 300
KEPT_LOGS = Path(".soak")


@dataclass(frozen=True, slots=True)
class Result:
    line: str
    problems: list[str]


def answer(asked: Asked) -> str:
    return answer_well(asked) if read_pages(asked) or "<part-" in asked.text else good_answer(asked)


def soak(folder: Path, minutes: float, seed: int) -> Result:
    with FakeGemini() as gemini:
        gemini.answer = answer
        model = {"providers": "gemini", "gemini_key": SECRET, "gemini_url": gemini.url, "embedding_model": "local"}
        rich = dict.fromkeys(("document_budget", "owner_budget", "month_budget"), 100_000)
        unlimited = {"requests_per_minute": 1_000_000, "workers": WORKERS, "lease_seconds": LEASE_SECONDS}
        with instance_in(folder, **model, **rich, **unlimited) as instance:
            instance.start()
            return run(instance, gemini, minutes, seed)


def run(instance: Instance, gemini: FakeGemini, minutes: float, seed: int) -> Result:
    key = json.loads(instance.octavo("keys", "add", "soak", "--scope", "write", "--json").stdout)["key"]
    caller, receipts = Caller(int(instance.environment["OCTAVO_PORT"]), key), Receipts()
    killer = Killer(instance, random.Random(f"{seed} kills"))
    people = [Person(seed, place, caller, receipts) for place in range(PEOPLE)]
    for person in people:
        person.unfinished = killer.unfinished
        person.start()
    killer.run(minutes * 60)
    for person in people:
        person.stopping.set()
    for person in people:
        person.join()
    # The last kill may have been that of the database.
    wait_until(instance.is_ready, "it is ready after the last kill")
    with engine_on(EmbeddedPostgres(DataFolder(instance.data)).connection_info()) as engine:
        settled = settle(engine, killer.last_kill)
        problems = [] if settled is not None else [f"not all ended: {unfinished(engine)}"]
        problems += check(engine, caller, receipts)
        wrong, spent, estimates = check_books(engine, gemini)
        problems += wrong
    doctor = instance.octavo("doctor")
    if doctor.returncode:
        problems.append(f"doctor: {doctor.stdout} {doctor.stderr}")
    kills = ", ".join(f"{kind} {count}" for kind, count in sorted(killer.counts.items()))
    line = (
        f"soak seed {seed}, {minutes:g} min: "
        f"{len(receipts.contents)} documents, {len(receipts.conversions)} conversions, "
        f"{len(receipts.analyses)} analyses, {len(receipts.tags)} tags; {killer.counts.total()} kills ({kills}), "
        f"{receipts.retries} requests repeated; "
        f"all ended {settled if settled is not None else 'more than 300'} s after the last kill; "
        f"{len(gemini.bills)} model calls, ledger {spent:.4f} USD with {estimates} estimates; "
        f"{len(problems) or 'no'} problem{'' if len(problems) == 1 else 's'}"
    )
    return Result(line, problems)


def settle(engine: Engine, last_kill: float) -> int | None:
    """Wait until nothing is left to do. Returns the seconds since the last kill, or None if it takes too long."""
    while engine.one(OPEN) or engine.one(RESERVED):
        if time.monotonic() - last_kill > MOST_SETTLING_SECONDS:
            return None
        time.sleep(0.5)
    return round(time.monotonic() - last_kill)


def unfinished(engine: Engine) -> list[dict[str, object]]:
    return engine.rows(
        "SELECT kind, status, stage, attempt, failures, cardinality(taken_from) AS taken, run_after, note::text"
        " FROM jobs WHERE status IN ('queued', 'processing', 'paused') LIMIT 20"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    seed = given.seed or random.SystemRandom().randrange(1, 1_000_000)
    with open_folder() as folder:
        result = soak(folder, given.minutes, seed)
        if result.problems:
            KEPT_LOGS.mkdir(exist_ok=True)
            shutil.copy(folder / "up.log", KEPT_LOGS / f"{seed}.log")
    print(result.line)  # noqa: T201 - the figures
    for problem in result.problems:
        print(f"  {problem}", file=sys.stderr)  # noqa: T201
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main())
