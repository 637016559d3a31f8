"""Three answers of ten are refusals, errors, silence, half of an answer or nonsense: everything is finished even so.

Real workers, real sockets, a real database; only the waiting is skipped, by the engine's clock.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from decimal import Decimal

import pytest

from octavo.ai import billing
from octavo.ai.calls import Caller
from octavo.ai.gateway import Gateway
from octavo.ai.tasks import CLASSIFY_DOCUMENT
from octavo.core.types import JSON
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind, Kinds
from octavo.jobs.worker import Worker
from octavo.jobs.worker_state import WorkerLimits
from octavo.language.insights import ChunkText, DocumentSource
from tests.support.deliveries import SKIP_WAITS
from tests.support.fake_ai import Trouble
from tests.support.gateway import Bench, open_bench
from tests.support.postgres import Server

TROUBLES = (
    Trouble.RATE_LIMIT,
    Trouble.BROKEN,
    Trouble.OVERLOADED,
    Trouble.SLOW,
    Trouble.CUT,
    Trouble.MALFORMED,
)
SHARE = 0.3
SLOTS = 5
BUSY = "SELECT count(*) FROM jobs WHERE status = 'processing' OR status = 'queued' AND admitted"
LEFT = "SELECT count(*) FROM jobs WHERE status NOT IN ('complete', 'paused')"
# A slow answer is given up after this; all others come at once.
SHORT = replace(CLASSIFY_DOCUMENT, seconds=1)


def make_unreliable(bench: Bench, calls: int) -> None:
    chance = random.Random(7)
    for server in bench.servers.values():
        server.script.extend(chance.choice(TROUBLES) if chance.random() < SHARE else None for _ in range(3 * calls))


def asking(gateway: Gateway) -> Kinds[None]:
    async def ask(run: Run[None]) -> JSON:
        job = run.job
        caller = Caller(job.owner_id, job.document_id, job.id, job.lease_token)
        document = DocumentSource([ChunkText(f"Document {job.id}.")])

        async def work() -> JSON:
            return (await gateway.ask(SHORT, document, caller)).made_by

        return await run.stage("classified", work)

    kinds: Kinds[None] = Kinds()
    kinds.add(JobKind("demo", ask, time_limit_seconds=60))
    return kinds


async def work_off(bench: Bench, gateway: Gateway) -> None:
    """Two workers, until all is done or has no money left. Whenever they only wait, the time passes at once."""
    stopping = asyncio.Event()
    limits = WorkerLimits(slots=SLOTS, lease_seconds=30, poll_seconds=0.05)
    workers = [Worker(bench.database, asking(gateway), None, limits) for _ in range(2)]
    tasks = [asyncio.create_task(worker.run(stopping)) for worker in workers]
    async with asyncio.timeout(600):
        while bench.engine.one(LEFT):
            if not bench.engine.one(BUSY):
                bench.engine.run(SKIP_WAITS)
            await asyncio.sleep(0.02)
    stopping.set()
    await asyncio.gather(*tasks)


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who would have to wait for a turn is put off instead: that is time of the engine's, which can be skipped."""
    monkeypatch.setattr(billing, "MAX_WAIT_SECONDS", 0.0)


@pytest.mark.parametrize("calls", [60, pytest.param(500, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
async def test_everything_is_finished_or_waits_for_money(newest_server: Server, calls: int) -> None:
    async with open_bench(newest_server) as bench:
        owner = bench.caller().owner_id
        bench.engine.put(owner, count=calls)
        make_unreliable(bench, calls)
        # Enough for a part of it: what is left over waits, visibly, and the budget is not passed.
        budget = Decimal("0.001") * calls / 3
        await work_off(bench, bench.gateway("gemini,openai", month_budget=budget))
        statuses = bench.engine.statuses()
        assert set(statuses) == {"complete", "paused"}
        dearest = max(call["estimate_usd"] for call in bench.calls())
        assert bench.spent() <= budget + 2 * SLOTS * dearest
        assert bench.engine.one("SELECT count(*) FROM job_waiting WHERE reason = 'paused'") == statuses["paused"]
        # More money: all of it is finished.
        plenty = bench.gateway("gemini,openai")
        await plenty.maintain(bench.database)
        await work_off(bench, plenty)
        assert bench.engine.statuses() == {"complete": calls}
        asked = sum(len(server.asked) for server in bench.servers.values())
        assert asked / calls <= 1.6
        # What nobody heard the price of is counted rather too high; all the rest to the cent.
        assert bench.spent() >= bench.billed() > 0
        bench.check_sums()
        bench.engine.check_invariants()
