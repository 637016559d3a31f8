"""A large document asked by workers that are killed, of a model of which one answer in five is none: all is answered.

Real worker processes, a real socket; only waiting is skipped, by the engine's clock.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.analyses import answer_well, begin, check_answers
from tests.support.deliveries import SKIP_WAITS
from tests.support.engine import Engine, Workers, engine_on, most_at_once, workers_in
from tests.support.fake_ai import Asked, FakeGemini, Trouble
from tests.support.fake_ai.server import SECRET, cost_of
from tests.support.processes import wait_until

AT_ONCE = 5
FAULTY = 0.2
TROUBLES = (Trouble.BROKEN, Trouble.OVERLOADED, Trouble.RATE_LIMIT, Trouble.CUT, Trouble.MALFORMED)
STATUS = "SELECT status FROM analyses"
BUSY = "SELECT count(*) FROM jobs WHERE status = 'processing' OR status = 'queued' AND admitted"
# What somebody was told that it cost; the rest was in flight when its worker died.
HEARD = "SELECT model, tokens_in, tokens_out FROM ai_calls WHERE NOT is_estimated AND cost_usd > 0"


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    chance = random.Random(11)

    def answer(asked: Asked) -> str:
        time.sleep(0.1)  # a model takes its time, so that kills meet calls that are under way
        return answer_well(asked)

    with FakeGemini() as server:
        server.answer, server.retry_after = answer, "1"
        server.script.extend(chance.choice(TROUBLES) if chance.random() < FAULTY else None for _ in range(2000))
        yield server


def work_off(engine: Engine, workers: Workers, kills: int, answers: int) -> None:
    """Two workers; one is killed whenever some more was answered, and another takes its place."""
    chance = random.Random(kills)
    alive = [workers.start() for _ in range(2)]
    done = "SELECT count(*) FROM analysis_items WHERE status = 'done'"
    killed, deadline = 0, time.monotonic() + 120 + 90 * kills  # only limits a test that fails
    while engine.one(STATUS) not in ("completed", "error"):
        assert time.monotonic() < deadline
        if killed < kills and engine.one(done) >= killed * answers // (kills + 1):
            place = chance.randrange(2)
            alive[place].kill()
            alive[place] = workers.start()
            killed += 1
        if not engine.one(BUSY):
            engine.run(SKIP_WAITS)
        time.sleep(0.05)
    assert killed == kills
    wait_until(lambda: not engine.one(BUSY), "the jobs beside the analysis have ended, too")


@pytest.mark.parametrize(
    ("pages", "prompts", "kills"),
    [(220, 2, 2), pytest.param(1000, 5, 10, marks=[pytest.mark.long, pytest.mark.timeout(1200)])],
)
def test_everything_is_answered_once_and_paid_for_as_billed(
    folder: Path, database_info: str, gemini: FakeGemini, pages: int, prompts: int, kills: int
) -> None:
    settings = {"providers": "gemini", "gemini_key": SECRET, "gemini_url": gemini.url, "embedding_model": "local"}
    # Calls that nobody hears the end of count as estimated, which is far more than they cost.
    settings |= dict.fromkeys(("document_budget", "owner_budget", "month_budget"), "1000")
    with (
        workers_in(folder, database_info, lease_seconds=2, worker_slots=AT_ONCE, **settings) as workers,
        engine_on(database_info) as engine,
    ):
        analysis = asyncio.run(begin(database_info, workers.data, pages, prompts, AT_ONCE))
        segments = -(-pages // 100)
        work_off(engine, workers, kills, segments * prompts)
        workers.end()
        assert engine.one(STATUS) == "completed"
        check_answers(engine, pages, prompts)
        assert most_at_once(engine)[f"analysis:{analysis}"] <= AT_ONCE
        engine.check_invariants()
        check_bill(engine, gemini, kills * AT_ONCE)


def check_bill(engine: Engine, gemini: FakeGemini, in_flight: int) -> None:
    """What was heard is equal to what was billed, and what nobody heard of is there at no less."""
    heard = Counter((row["model"], row["tokens_in"], row["tokens_out"]) for row in engine.rows(HEARD))
    billed = Counter((bill.model, bill.read, bill.written) for bill in gemini.bills)
    assert not heard - billed
    assert (billed - heard).total() <= in_flight
    cost = sum(map(cost_of, gemini.bills), start=Decimal(0))
    assert engine.one("SELECT sum(cost_usd) FROM ai_calls") >= cost
