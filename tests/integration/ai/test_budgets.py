"""Money is looked at before it is spent, by everybody together; a job that has none left waits for more."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from octavo.ai.calls import Caller
from octavo.ai.gateway import Gateway
from octavo.ai.ledger import SCOPES, Budgets, resume_paused_jobs, set_budgets
from octavo.ai.tasks import CLASSIFY_DOCUMENT
from octavo.core.errors import OverBudget
from octavo.core.types import JSON
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind, Kinds
from octavo.jobs.worker import Worker
from octavo.jobs.worker_state import WorkerLimits
from octavo.language.insights import ChunkText, DocumentSource
from octavo.library.changes import set_document_budget
from tests.support.fake_ai import Trouble
from tests.support.gateway import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")


def part(number: int) -> DocumentSource:
    return DocumentSource([ChunkText(f"Part {number}.")])


async def spend(gateway: Gateway, caller: Caller, count: int) -> tuple[int, int]:
    """Ask so many different things at once; how many were answered, and how many refused for money."""
    asked = [gateway.ask(CLASSIFY_DOCUMENT, part(number), caller) for number in range(count)]
    ends = await asyncio.gather(*asked, return_exceptions=True)
    refused = sum(isinstance(end, OverBudget) for end in ends)
    assert all(isinstance(end, OverBudget) or not isinstance(end, BaseException) for end in ends)
    return count - refused, refused


@pytest.mark.parametrize("scope", ["document", "owner", "month"])
async def test_many_workers_together_never_pass_a_budget(bench: Bench, scope: str) -> None:
    caller, answered, refused = bench.caller(), 0, 0
    limit: dict[str, Any] = {f"{scope}_budget": 0.01}
    gateways = [bench.gateway(**limit) for _ in range(4)]
    for generation in range(3):
        asking_anew = [replace(caller, generation=4 * generation + place) for place in range(4)]
        ends = await asyncio.gather(*(spend(one, who, 8) for one, who in zip(gateways, asking_anew, strict=True)))
        answered, refused = answered + sum(end[0] for end in ends), refused + sum(end[1] for end in ends)
    assert answered
    assert refused
    assert bench.spent() <= Decimal("0.01")
    assert bench.spent() == bench.billed()
    assert len(bench.gemini.asked) == answered


async def test_a_refusal_says_which_budget_and_what_to_do(bench: Bench) -> None:
    with pytest.raises(OverBudget) as refused:
        await bench.gateway(document_budget=0).ask(CLASSIFY_DOCUMENT, part(1), bench.caller())
    assert "0.00 USD used for this document" in refused.value.line
    assert "Raise the document's budget." in refused.value.line
    assert bench.gemini.asked == []


async def test_what_costs_nothing_needs_no_budget(bench: Bench) -> None:
    gateway = bench.gateway("compatible", document_budget=0, month_budget=0)
    assert (await gateway.ask(CLASSIFY_DOCUMENT, part(1), bench.caller())).made_by == "compatible:llama"


async def test_a_budget_is_not_passed_by_asking_the_next_model(bench: Bench) -> None:
    with pytest.raises(OverBudget):
        await bench.gateway("gemini,anthropic,local", month_budget=0).ask(CLASSIFY_DOCUMENT, part(1), bench.caller())
    assert bench.anthropic.asked == []


async def test_every_month_has_its_own_budget(bench: Bench) -> None:
    gateway, caller = bench.gateway(owner_budget=0.01), bench.caller()
    _, refused = await spend(gateway, caller, 20)
    assert refused
    bench.engine.advance(32 * 24 * 3600)
    answered, _ = await spend(gateway, replace(caller, generation=1), 1)
    assert answered == 1


async def test_visitors_get_what_costs_nothing(bench: Bench) -> None:
    visitor = bench.caller(kind="anonymous")
    for gateway in (bench.gateway("gemini"), bench.gateway("gemini,local")):
        assert (await gateway.ask(CLASSIFY_DOCUMENT, part(1), visitor)).made_by == "local"
        assert (await gateway.embed(["some words"], visitor)).made_by == "local"
    assert bench.gemini.requests == []
    allowed = await bench.gateway("gemini", anonymous_models=True).ask(CLASSIFY_DOCUMENT, part(1), visitor)
    assert allowed.made_by == "gemini:gemini-2.5-flash"


# Set while everything runs ------------------------------------------------------------------------------------------


async def set_all(bench: Bench, **most: float | None) -> None:
    async with bench.database.transaction() as connection:
        await set_budgets(connection, uuid4(), {scope: most[scope] for scope in SCOPES if scope in most})


async def test_a_stored_budget_overrides_the_settings(bench: Bench) -> None:
    gateway, caller, other = bench.gateway(document_budget=0), bench.caller(), bench.caller()
    usual, document = Budgets(Decimal(0), Decimal(20), Decimal(20)), caller.document_id
    assert document
    async with bench.database.transaction() as connection:
        await set_document_budget(connection, caller.owner_id, document, 1, usual)
    assert await spend(gateway, caller, 1) == (1, 0)
    assert await spend(gateway, other, 1) == (0, 1)
    await set_all(bench, document=1)
    assert await spend(gateway, other, 1) == (1, 0)
    await set_all(bench, owner=0)
    assert await spend(gateway, replace(caller, generation=1), 1) == (0, 1)
    await set_all(bench, document=None, owner=None)
    assert await spend(gateway, replace(other, generation=1), 1) == (0, 1)
    async with bench.database.transaction() as connection:
        await set_document_budget(connection, caller.owner_id, document, None, usual)
    assert await spend(gateway, replace(caller, generation=2), 1) == (0, 1)


async def test_raising_and_spending_in_parallel_never_exceeds_a_budget(bench: Bench) -> None:
    caller, gateways = bench.caller(), [bench.gateway(document_budget=0) for _ in range(4)]

    async def keep_spending(gateway: Gateway, place: int) -> None:
        for generation in range(6):
            await spend(gateway, replace(caller, generation=10 * generation + place), 4)

    async def keep_raising() -> set[UUID]:
        for most in (0.002, 0.004, 0.006, 0.008):
            await set_all(bench, document=most)
            await bench.until(lambda: bench.spent("document") > 0)
        async with bench.database.transaction() as connection:
            await set_budgets(connection, uuid4(), {"document": 0})
            return paid_for(bench)

    spending = [keep_spending(gateway, place) for place, gateway in enumerate(gateways)]
    before, *_ = await asyncio.gather(keep_raising(), *spending)
    assert before
    assert paid_for(bench) == before
    assert 0 < bench.spent("document") <= Decimal("0.008")
    assert bench.spent() == bench.billed()


def paid_for(bench: Bench) -> set[UUID]:
    return {row["id"] for row in bench.calls() if row["fault"] != "over_budget"}


# Jobs ---------------------------------------------------------------------------------------------------------------


def asking(gateway: Gateway) -> Kinds[None]:
    """A kind of job that asks one thing, about the document that its input names if it is no document's job."""

    async def ask(run: Run[None]) -> JSON:
        job = run.job
        about = UUID(str(job.input["about"])) if "about" in job.input else job.document_id
        caller = Caller(job.owner_id, about, job.id, job.lease_token)
        return (await gateway.ask(CLASSIFY_DOCUMENT, part(1), caller)).made_by

    kinds: Kinds[None] = Kinds()
    kinds.add(JobKind("demo", ask, time_limit_seconds=60))
    return kinds


async def work_until(bench: Bench, gateway: Gateway, job: UUID, status: str) -> None:
    """A real worker, with the gateway's chore."""
    stopping = asyncio.Event()
    limits = WorkerLimits(lease_seconds=10, poll_seconds=0.05)
    worker = Worker(bench.database, asking(gateway), None, limits, chores=[gateway.maintain])
    task = asyncio.create_task(worker.run(stopping))
    try:
        await bench.until(lambda: bench.engine.status(job) == status)
    finally:
        stopping.set()
        await task


async def test_a_job_without_money_pauses_and_goes_on_when_there_is_some(bench: Bench) -> None:
    (job,) = bench.engine.put(bench.caller().owner_id)
    poor = bench.gateway(owner_budget=0)
    await work_until(bench, poor, job, "paused")
    assert bench.engine.one("SELECT reason FROM job_waiting WHERE job_id = %s", job) == "paused"
    await poor.maintain(bench.database)
    assert bench.engine.status(job) == "paused"
    await work_until(bench, bench.gateway(owner_budget=1), job, "complete")
    assert bench.engine.job(job)["failures"] == 0


@pytest.mark.parametrize("whose", ["one document", "everybody"])
async def test_a_raised_budget_resumes_a_paused_job_immediately(bench: Bench, whose: str) -> None:
    """The worker is the same before and after, and its own look at paused jobs is not due for a long time."""
    caller = bench.caller()
    assert caller.document_id
    (job,) = bench.engine.put(caller.owner_id, document_id=caller.document_id)
    gateway, usual = bench.gateway(document_budget=0, owner_budget=1), Budgets(Decimal(0), Decimal(1), Decimal(100))
    stopping = asyncio.Event()
    limits = WorkerLimits(lease_seconds=10, poll_seconds=0.05)
    task = asyncio.create_task(Worker(bench.database, asking(gateway), None, limits).run(stopping))
    await bench.until(lambda: bench.engine.status(job) == "paused")
    if whose == "everybody":
        await set_all(bench, document=0.5)
    else:
        async with bench.database.transaction() as connection:
            await set_document_budget(connection, caller.owner_id, caller.document_id, 0.5, usual)
    assert bench.engine.status(job) == "paused"
    await resume_paused_jobs(bench.database, usual)
    assert bench.engine.status(job) != "paused"
    await bench.until(lambda: bench.engine.status(job) == "complete")
    stopping.set()
    await task


async def test_jobs_are_resumed_only_if_their_calls_fit_the_budget_together(bench: Bench) -> None:
    """As those of an analysis are: no document's own, but asking about one."""
    owner, about = bench.caller().owner_id, uuid4()
    jobs = bench.engine.put(owner, count=3, input={"about": str(about)})
    poor = bench.gateway(document_budget=0)
    for job in jobs:
        await work_until(bench, poor, job, "paused")
    await poor.maintain(bench.database)
    assert [bench.engine.status(job) for job in jobs] == ["paused"] * 3
    estimate = bench.engine.one("SELECT max(estimate_usd) FROM ai_calls")
    await bench.gateway(document_budget=float(estimate) * 2.5).maintain(bench.database)
    assert sorted(bench.engine.status(job) for job in jobs) == ["paused", "queued", "queued"]
    await work_until(bench, bench.gateway(document_budget=1), jobs[-1], "complete")


async def test_a_job_waits_for_a_provider_without_being_charged(bench: Bench) -> None:
    (job,) = bench.engine.put(bench.caller().owner_id)
    bench.gemini.script.append(Trouble.OVERLOADED)
    gateway = bench.gateway()
    stopping = asyncio.Event()
    worker = Worker(bench.database, asking(gateway), None, WorkerLimits(lease_seconds=10, poll_seconds=0.05))
    task = asyncio.create_task(worker.run(stopping))
    await bench.until(lambda: bench.engine.job(job)["waits"] == 1)
    row = bench.engine.job(job)
    assert (row["status"], row["failures"]) == ("queued", 0)
    waiting = bench.engine.rows("SELECT reason, detail FROM job_waiting WHERE job_id = %s", job)[0]
    assert (waiting["reason"], waiting["detail"]["error"]["code"]) == ("provider", "AI_UNAVAILABLE")
    bench.engine.advance(70)
    await bench.until(lambda: bench.engine.status(job) == "complete")
    stopping.set()
    await task


async def test_a_job_with_a_wrong_key_fails_and_says_so(bench: Bench) -> None:
    (job,) = bench.engine.put(bench.caller().owner_id)
    await work_until(bench, bench.gateway("gemini,local", gemini_key="wrong"), job, "failed")
    assert bench.engine.job(job)["error_code"] == "AI_BAD_KEY"
