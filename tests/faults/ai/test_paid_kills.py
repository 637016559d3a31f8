"""A worker killed again and again while models are asked: each kill repeats one call at most, and the books balance.

The provider itself does the killing: at the moment at which it has worked for a call, so that nobody hears of it, or a
moment after its answer, while that is being written down.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.extract.detect import detect
from octavo.intake import Intake, NewUpload
from octavo.ops.instance import bucket_of
from tests.support.engine import Engine, engine_on
from tests.support.fake_ai import Asked, FakeGemini
from tests.support.fake_ai.server import SECRET, Bill, cost_of, good_answer
from tests.support.library import LIMITS, open_desk
from tests.support.site import Site, site_in

QUOTED = re.compile(r"<markdown-\w+>\n(.*)\n</markdown-\w+>", re.DOTALL)
CALLS = """
    SELECT state, is_estimated, estimate_usd, cost_usd, tokens_in, tokens_out, model, fault FROM ai_calls
    WHERE state <> 'failed' OR cost_usd > 0 OR is_estimated"""


class Killer(FakeGemini):
    """Kills the worker that asks, at every `every`th call until it has done so `kills` times."""

    def clear(self) -> None:
        super().clear()
        self.answer = write
        self.every, self.kills, self.killed, self.worker = 1, 0, 0, 0
        self._chance = random.Random(5)

    def charge(self, model: str, read: int, written: int = 0) -> Bill:
        bill = super().charge(model, read, written)
        if self.killed < self.kills and len(self.bills) % self.every == 0:
            self.killed += 1
            if self.killed % 2:
                kill(self.worker)
            else:
                threading.Timer(self._chance.uniform(0.0, 0.05), kill, [self.worker]).start()
        return bill


def kill(worker: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)


def write(asked: Asked) -> str:
    quoted = QUOTED.search(asked.text)
    return quoted[1] if quoted else good_answer(asked)


def make_text(paragraphs: int) -> str:
    """Each is another one, so that no two questions are the same."""
    return "\n\n".join(
        f"## Bog {number}\n\n" + f"The water table of bog number {number} fell by {number} centimetres in summer. " * 40
        for number in range(paragraphs)
    )


def add(site: Site, engine: Engine, text: str) -> UUID:
    owner = engine.add_owner()

    async def take() -> UUID:
        async with aclosing(bucket_of(site.settings)) as bucket, open_desk(engine.info, bucket) as desk:
            upload = NewUpload("bogs.md", given={"extraction": "clean"})
            return (await Intake(desk.database, bucket, detect).take(owner, upload, text.encode(), LIMITS)).document_id

    return asyncio.run(take())


@pytest.fixture
def gemini() -> Iterator[Killer]:
    with Killer() as server:
        yield server


def work_and_die(site: Site, engine: Engine, gemini: Killer, document: UUID) -> int:
    """Until it is done; answers how many workers that took."""
    workers = 0
    unfinished = "SELECT count(*) FROM jobs WHERE status NOT IN ('complete', 'cancelled')"
    while engine.one(unfinished):
        worker = site.start_worker()
        workers += 1
        gemini.worker = worker.pid
        while worker.poll() is None and engine.one(unfinished):
            threading.Event().wait(0.02)
        worker.kill()
        engine.bury(worker)
    assert (
        engine.one("SELECT status || needs_classification FROM documents WHERE id = %s", document) == "completedfalse"
    )
    return workers


@pytest.mark.parametrize(
    ("paragraphs", "every", "kills"),
    [(11, 3, 2), pytest.param(100, 2, 20, marks=[pytest.mark.long, pytest.mark.timeout(1200)])],
)
def test_a_kill_repeats_at_most_one_call_and_the_ledger_matches_the_bill(
    folder: Path, database_info: str, gemini: Killer, paragraphs: int, every: int, kills: int
) -> None:
    settings = {
        "providers": "gemini",
        "gemini_key": SECRET,
        "gemini_url": gemini.url,
        "lease_seconds": 10,
        "worker_slots": 1,
    }
    with site_in(folder, database_info, **settings) as site, engine_on(database_info) as engine:
        document = add(site, engine, make_text(paragraphs))
        gemini.every, gemini.kills = every, kills
        assert work_and_die(site, engine, gemini, document) > gemini.killed == kills
        check_books(engine, gemini, kills)
        stages = {row["stage"] for row in engine.rows("SELECT DISTINCT stage FROM job_stages")}
        assert {"rewriting", "rewritten", "classified", "enriched", "embedded"} <= stages
        engine.check_invariants()


def check_books(engine: Engine, gemini: Killer, kills: int) -> None:
    asked = Counter((request.path, request.body) for request in gemini.requests)
    assert sum(asked.values()) - len(asked) <= kills, "more was asked again than there were kills"
    calls: list[dict[str, Any]] = engine.rows(CALLS)
    assert all(call["state"] != "reserved" for call in calls)
    heard = Counter(
        (call["model"], call["tokens_in"], call["tokens_out"]) for call in calls if not call["is_estimated"]
    )
    billed = Counter((bill.model, bill.read, bill.written) for bill in gemini.bills)
    assert not heard - billed, "something is in the ledger that nobody billed"
    # What nobody heard of was in flight when its worker died, and stands there at no less than what was billed.
    unheard = [Bill(*bill) for bill in (billed - heard).elements()]
    estimated = [call["cost_usd"] for call in calls if call["is_estimated"]]
    assert len(unheard) <= len(estimated) <= kills
    assert sum(estimated) >= sum(map(cost_of, unheard), start=Decimal(0))
    # All the rest is equal, to the last digit.
    known = sum((call["cost_usd"] for call in calls if not call["is_estimated"]), start=Decimal(0))
    assert known == sum(map(cost_of, gemini.bills), start=Decimal(0)) - sum(map(cost_of, unheard), start=Decimal(0))
    spent = engine.one("SELECT sum(spent_usd) FROM ai_spending WHERE starts_with(key, 'month')")
    assert spent == known + sum(estimated)
