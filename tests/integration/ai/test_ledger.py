"""A question is paid for once, whatever dies between asking and writing down, and every cent is in the sums."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo.ai.calls import Caller, CallerGone
from octavo.ai.faults import TokenUsage
from octavo.ai.ledger import Budgets, CallRequest, Ledger, Verdict
from octavo.ai.models import Model
from octavo.ai.tasks import CLASSIFY_DOCUMENT
from octavo.core.errors import OctavoError
from octavo.core.instruments import REGISTRY
from octavo.core.types import new_id
from octavo.language.insights import ChunkText, DocumentSource
from tests.support.fake_ai import Asked, Trouble
from tests.support.fake_ai.server import good_answer
from tests.support.gateway import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENT = DocumentSource([ChunkText("The council met on Tuesday.")])
MODEL = Model("gemini", "gemini-2.5-flash")
PLENTY = Budgets(Decimal(1000), Decimal(1000), Decimal(1000))


def wanted(caller: Caller, question: str = "same", usd: str = "0.01") -> CallRequest:
    digest = question.encode().ljust(32, b".")
    return CallRequest(new_id(), digest, caller, "classify_document", MODEL, Decimal(usd), 100, 90.0)


def ledger_of(bench: Bench, budgets: Budgets = PLENTY) -> Ledger:
    return Ledger(bench.database, budgets, {})


async def test_the_same_question_is_paid_for_once_and_records_the_savings(bench: Bench) -> None:
    gateway, caller = bench.gateway(), bench.working()
    first = await gateway.ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)
    again = await bench.gateway("openai").ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)
    assert (again.output, again.made_by, again.reused, again.cost_usd) == (first.output, first.made_by, True, 0)
    assert len(bench.gemini.asked) + len(bench.openai.asked) == 1
    (reuse,) = bench.engine.rows("SELECT * FROM ai_reuses")
    assert reuse["saved_usd"] == first.cost_usd == bench.billed() > 0


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_calls_costs_failures_and_stored_answers_are_counted(bench: Bench) -> None:
    call = {"provider": "gemini", "purpose": CLASSIFY_DOCUMENT.name}
    series = (
        ("octavo_ai_call_duration_seconds_count", {**call, "result": "ok"}),
        ("octavo_ai_call_duration_seconds_count", {**call, "result": "truncated"}),
        ("octavo_ai_cost_usd_total", call),
        ("octavo_ai_cache_hits_total", {"purpose": CLASSIFY_DOCUMENT.name}),
    )
    before = [counted(name, **labels) for name, labels in series]
    caller = bench.working()
    bench.gemini.script.extend([Trouble.TRUNCATED])
    with pytest.raises(OctavoError):
        await bench.gateway().ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)
    for _ in range(2):
        await bench.gateway().ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)
    new = [counted(name, **labels) - was for (name, labels), was in zip(series, before, strict=True)]
    assert new == [1, 1, pytest.approx(float(bench.billed())), 1]


async def test_another_owner_generation_or_text_makes_a_new_call(bench: Bench) -> None:
    gateway, caller = bench.gateway(), bench.caller()
    for other in (caller, bench.caller(), replace(caller, generation=1)):
        assert not (await gateway.ask(CLASSIFY_DOCUMENT, DOCUMENT, other)).reused
    assert not (await gateway.ask(CLASSIFY_DOCUMENT, DocumentSource([ChunkText("Another.")]), caller)).reused
    assert len(bench.gemini.asked) == 4
    assert bench.spent() == bench.billed()


async def test_identical_parallel_requests_wait_for_one_answer(bench: Bench) -> None:
    caller = bench.caller()
    gateways = [bench.gateway() for _ in range(3)]
    asked = (gateways[number % 3].ask(CLASSIFY_DOCUMENT, DOCUMENT, caller) for number in range(12))
    answers = await asyncio.gather(*asked)
    assert len(bench.gemini.asked) == 1
    assert sorted(answer.reused for answer in answers) == [False] + [True] * 11


async def test_an_answer_of_no_use_is_paid_for_and_never_used_again(bench: Bench) -> None:
    caller = bench.working()
    bench.gemini.script.extend([Trouble.TRUNCATED])
    with pytest.raises(OctavoError):
        await bench.gateway().ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)
    answered = await bench.gateway().ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)
    assert not answered.reused
    assert bench.states() == [("failed", "truncated"), ("settled", None)]
    assert bench.spent() == bench.billed() > answered.cost_usd


async def test_an_answer_in_the_wrong_form_is_asked_for_once_more(bench: Bench) -> None:
    bench.gemini.script.append(Trouble.MALFORMED)
    answered = await bench.gateway().ask(CLASSIFY_DOCUMENT, DOCUMENT, bench.working())
    assert [one.fault for one in answered.failed] == ["malformed"]
    first, second = bench.gemini.asked
    assert second.text.startswith(first.text)
    assert "could not be used: it is not JSON" in second.text
    assert bench.spent() == bench.billed()


async def test_a_call_of_a_dead_worker_is_billed_at_its_estimate_and_repeated(bench: Bench) -> None:
    ledger, caller = ledger_of(bench), bench.working(lease=5)
    assert (await ledger.reserve(wanted(caller))).verdict is Verdict.GRANTED
    # Its worker was killed: the lease runs out, and another attempt takes over.
    bench.engine.advance(6)
    bench.engine.pass_time()
    (job,) = bench.engine.claim()
    again = replace(caller, lease_token=job.lease_token)
    assert (await ledger.reserve(wanted(again))).verdict is Verdict.GRANTED
    assert bench.states() == [("failed", "abandoned"), ("reserved", None)]
    assert bench.spent() == Decimal("0.01")
    assert bench.calls()[0]["is_estimated"]


async def test_a_call_of_a_worker_that_lives_is_waited_for(bench: Bench) -> None:
    ledger, caller = ledger_of(bench), bench.working()
    await ledger.reserve(wanted(caller))
    assert (await ledger.reserve(wanted(caller))).verdict is Verdict.IN_FLIGHT
    assert (await ledger.reserve(wanted(bench.working()))).verdict is Verdict.IN_FLIGHT
    bench.engine.advance(121)  # the time limit of the call, and a grace
    assert (await ledger.reserve(wanted(bench.working()))).verdict is Verdict.GRANTED


async def test_a_worker_that_lost_its_job_spends_nothing(bench: Bench) -> None:
    caller = bench.working()
    assert caller.job_id
    bench.engine.cancel(caller.job_id)
    with pytest.raises(CallerGone):
        await bench.gateway().ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)
    assert bench.gemini.asked == []
    assert bench.calls() == []


async def test_an_answer_that_arrives_late_records_its_real_cost(bench: Bench) -> None:
    ledger, caller = ledger_of(bench), bench.working()
    late = wanted(caller)
    await ledger.reserve(late)
    assert caller.job_id
    bench.engine.cancel(caller.job_id)
    await ledger.maintain()
    assert bench.states() == [("failed", "abandoned")]
    await ledger.settle(late.id, TokenUsage(10, 10), Decimal("0.004"), 1.0, {"late": True})
    (call,) = bench.calls()
    assert (call["state"], call["cost_usd"], call["is_estimated"]) == ("failed", Decimal("0.004"), False)
    assert bench.spent() == Decimal("0.004")


async def test_after_a_kill_at_most_the_call_in_flight_is_repeated(bench: Bench) -> None:
    """The worker dies while a model answers: all that was settled is used again, one call is repeated."""
    passages = [DocumentSource([ChunkText(f"Part {number}.")]) for number in range(4)]
    gateway, caller = bench.gateway(), bench.working(lease=5)
    for one in passages[:2]:
        await gateway.ask(CLASSIFY_DOCUMENT, one, caller)
    bench.gemini.script.append(Trouble.SLOW)
    killed = asyncio.create_task(gateway.ask(CLASSIFY_DOCUMENT, passages[2], caller))
    await bench.until(lambda: len(bench.gemini.asked) == 3)
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)
    bench.engine.advance(6)
    bench.engine.pass_time()
    (job,) = (one for one in bench.engine.claim(slots=100) if one.id == caller.job_id)
    for one in passages:
        await gateway.ask(CLASSIFY_DOCUMENT, one, replace(caller, lease_token=job.lease_token))
    assert len(bench.gemini.asked) == 5
    assert [state for state, _ in bench.states()] == ["settled", "settled", "failed", "settled", "settled"]


async def test_old_answers_are_forgotten_and_their_cost_is_not(bench: Bench) -> None:
    gateway, caller = bench.gateway(), bench.caller()
    cost = (await gateway.ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)).cost_usd
    bench.engine.advance(31 * 24 * 3600)
    await gateway.maintain(bench.database)
    (call,) = bench.calls()
    assert (call["request_hash"], call["response"], call["cost_usd"]) == (None, None, cost)
    assert not (await gateway.ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)).reused


async def test_a_document_that_is_deleted_takes_its_answers_along(bench: Bench) -> None:
    gateway, caller = bench.gateway(), bench.caller()
    cost = (await gateway.ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)).cost_usd
    bench.engine.run("DELETE FROM documents WHERE id = %s", caller.document_id)
    (call,) = bench.calls()
    assert (call["document_id"], call["response"]) == (None, None)
    assert (bench.spent("document"), bench.spent("owner"), bench.spent()) == (0, cost, cost)
    bench.engine.run("DELETE FROM owners WHERE id = %s", caller.owner_id)
    assert bench.calls()[0]["owner_id"] is None
    assert bench.spent() == cost


async def test_spending_of_a_visitor_moves_to_the_account(bench: Bench) -> None:
    visitor, person = bench.caller(kind="anonymous"), bench.caller()
    gateway = bench.gateway(anonymous_models=True)
    cost = (await gateway.ask(CLASSIFY_DOCUMENT, DOCUMENT, visitor)).cost_usd
    bench.engine.one("SELECT merge_owner(%s, %s)", visitor.owner_id, person.owner_id)
    assert bench.spent(f"owner:{person.owner_id}") == cost
    assert bench.spent(f"owner:{visitor.owner_id}") == 0


async def test_characters_that_the_database_rejects_do_not_lose_an_answer(bench: Bench) -> None:
    def odd(asked: Asked) -> str:
        return good_answer(asked).replace('"Words."', '"nul \\u0000 and half \\ud800."')

    bench.gemini.answer = odd
    caller = bench.caller()
    first = await bench.gateway().ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)
    assert (await bench.gateway().ask(CLASSIFY_DOCUMENT, DOCUMENT, caller)).output == first.output
    assert first.output.summary == "nul  and half ?."


# Any order of what can happen -------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "settle", "fail", "lose", "tend", "wait", "delete"]),
        st.integers(0, 3),
        st.decimals(0, 1, places=4),
    ),
    max_size=25,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=STEPS)
async def test_the_sums_are_right_after_any_order_of_calls(bench: Bench, steps: list[tuple[str, int, Decimal]]) -> None:
    """Reserved, settled, failed, lost, given up: the sums are those of the calls, and nothing is live twice."""
    bench.clear()
    ledger = ledger_of(bench)
    callers = [bench.caller() for _ in range(2)]
    opened: list[CallRequest] = []
    for step, number, amount in steps:
        one = opened.pop(number % len(opened)) if opened and step in {"settle", "fail", "lose"} else None
        match step:
            case "reserve":
                call = wanted(callers[number % 2], f"question {number}", str(amount))
                if (await ledger.reserve(call)).verdict is Verdict.GRANTED:
                    opened.append(call)
            case "settle" if one:
                await ledger.settle(one.id, TokenUsage(1, 1), amount, 0.1, {"ok": True})
            case "fail" if one:
                await ledger.fail(one.id, "broken", TokenUsage(), amount or None, 0.1, trips_circuit=True)
            case "tend":
                await ledger.maintain()
            case "wait":
                bench.engine.advance(100)
            case "delete":
                bench.engine.run("DELETE FROM documents WHERE id = %s", callers[number % 2].document_id)
            case _:
                pass
        bench.check_sums()
    live = "SELECT request_hash FROM ai_calls WHERE state <> 'failed' AND request_hash IS NOT NULL"
    assert len(bench.engine.rows(live)) == len({bytes(row["request_hash"]) for row in bench.engine.rows(live)})


async def test_a_question_of_nobody_known_is_refused(bench: Bench) -> None:
    with pytest.raises(Exception, match="owner"):
        await ledger_of(bench).reserve(wanted(Caller(uuid4())))
