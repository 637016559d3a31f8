"""Rates and circuits hold for all workers together: one refusal costs nobody else a call, and one at a time tries."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from octavo.ai.calls import Caller
from octavo.ai.gateway import Gateway
from octavo.ai.ledger import Budgets, CallRequest, Ledger, RateLimit, Reservation, Verdict
from octavo.ai.models import Model
from octavo.ai.tasks import CLASSIFY_DOCUMENT
from octavo.core.errors import ModelUnavailable, OctavoError, RateLimited
from octavo.core.types import new_id
from octavo.language.insights import ChunkText, DocumentSource
from tests.support.fake_ai import Trouble
from tests.support.gateway import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECONDS = 30.0
STARTS = "SELECT extract(epoch FROM expires_at)::float8 - %s AS at FROM ai_calls WHERE state = 'reserved'"
PLENTY = Budgets(Decimal(1000), Decimal(1000), Decimal(1000))


def part(number: int) -> DocumentSource:
    return DocumentSource([ChunkText(f"Part {number}.")])


async def ask(gateway: Gateway, caller: Caller, number: int) -> str:
    """Who answered, or why nobody did."""
    try:
        return (await gateway.ask(CLASSIFY_DOCUMENT, part(number), caller)).made_by
    except OctavoError as error:
        return error.code


class Line:
    """Calls that are reserved one after another, each by another worker."""

    def __init__(self, bench: Bench, rate: RateLimit) -> None:
        self.ledgers = [Ledger(bench.database, PLENTY, {"gemini": rate}) for _ in range(3)]
        self.caller = bench.caller()
        self.asked = 0

    async def reserve(self, tokens: int = 10) -> Reservation:
        self.asked += 1
        digest = str(self.asked).encode().rjust(32, b".")
        call = CallRequest(new_id(), digest, self.caller, "embed", Model("gemini", "m"), Decimal(0), tokens, SECONDS)
        return await self.ledgers[self.asked % 3].reserve(call)


async def test_requests_are_spread_over_the_minute(bench: Bench) -> None:
    line = Line(bench, RateLimit(requests=60, tokens=1e9))
    asked: list[datetime] = []
    starts: list[datetime] = []
    for _ in range(20):
        asked.append(bench.engine.one("SELECT engine_now()"))
        starts.append(asked[-1] + timedelta(seconds=(await line.reserve()).seconds or 0))
    assert starts == sorted(starts)
    # A burst of six seconds, and then one a second: a tenth less than allowed.
    assert starts[5] == asked[5]
    assert (starts[19] - starts[0]).total_seconds() == pytest.approx(20 / 0.9 - 6, abs=2)


async def test_no_minute_has_more_requests_than_allowed(bench: Bench) -> None:
    line = Line(bench, RateLimit(requests=30, tokens=1e9))
    for _ in range(0, 130, 5):
        while (await line.reserve()).verdict is Verdict.GRANTED:
            pass
        bench.engine.advance(5)
    # A call expires when its time limit has passed after its start.
    sent = [row["at"] for row in bench.engine.rows(STARTS, SECONDS)]
    assert max(sum(begin <= one < begin + 60 for one in sent) for begin in sent) <= 30
    assert len(sent) > 50


async def test_tokens_are_limited_too(bench: Bench) -> None:
    line = Line(bench, RateLimit(requests=1e6, tokens=6000))
    assert (await line.reserve(tokens=3000)).verdict is Verdict.GRANTED
    held = await line.reserve(tokens=3000)
    assert held.verdict is Verdict.HELD
    assert held.seconds == pytest.approx(30 / 0.9 - 6, abs=2)
    bench.engine.advance(30)
    assert (await line.reserve(tokens=3000)).verdict is Verdict.GRANTED


async def test_a_call_that_would_wait_too_long_takes_no_slot(bench: Bench) -> None:
    line = Line(bench, RateLimit(requests=6, tokens=1e9))
    verdicts = [(await line.reserve()).verdict for _ in range(50)]
    assert verdicts.count(Verdict.GRANTED) < 5
    bench.engine.advance(60)
    assert (await line.reserve()).verdict is Verdict.GRANTED


async def test_a_limit_of_ours_is_a_rate_limit_with_its_time(bench: Bench) -> None:
    gateway, caller = bench.gateway(provider_limits="gemini=1/1000000"), bench.caller()
    assert await ask(gateway, caller, 1) == "gemini:gemini-2.5-flash"
    with pytest.raises(RateLimited) as refused:
        await gateway.ask(CLASSIFY_DOCUMENT, part(2), caller)
    assert refused.value.retry_after_seconds == pytest.approx(60, abs=10)


async def test_waiting_for_a_turn_takes_nothing_from_the_time_of_a_call(bench: Bench) -> None:
    bench.engine.run("INSERT INTO ai_gates (name, held_until) VALUES ('gemini', engine_now() + interval '1.5 seconds')")
    short = replace(CLASSIFY_DOCUMENT, seconds=1.2)
    answered = await bench.gateway().ask(short, part(1), bench.working())
    assert (answered.made_by, answered.failed) == ("gemini:gemini-2.5-flash", ())


async def test_one_refusal_keeps_all_workers_from_the_model_for_as_long_as_it_asked(bench: Bench) -> None:
    caller = bench.caller()
    bench.openai.retry_after = "90"
    bench.openai.script.append(Trouble.RATE_LIMIT)
    gateways = [bench.gateway("openai,gemini") for _ in range(3)]
    answers = [await ask(gateways[number % 3], caller, number) for number in range(6)]
    assert set(answers) == {"gemini:gemini-2.5-flash"}
    assert len(bench.openai.asked) == 1
    bench.engine.advance(91)
    assert await ask(gateways[0], caller, 7) == "openai:gpt-5-mini"


@pytest.mark.parametrize("said", ["Wed, 21 Oct 2099 07:28:00 GMT", "soon", "-3"])
async def test_whatever_a_provider_says_of_the_time_is_survived(bench: Bench, said: str) -> None:
    bench.openai.retry_after = said
    bench.openai.script.append(Trouble.RATE_LIMIT)
    with pytest.raises(RateLimited) as refused:
        await bench.gateway("openai").ask(CLASSIFY_DOCUMENT, part(1), bench.caller())
    assert refused.value.retry_after_seconds in {None, 3600.0}


async def test_five_failures_open_the_circuit_for_all_and_one_tries_again(bench: Bench) -> None:
    caller = bench.caller()
    gateways = [bench.gateway() for _ in range(3)]
    bench.gemini.script.extend([Trouble.BROKEN, Trouble.OVERLOADED, Trouble.BROKEN, Trouble.BROKEN, Trouble.OVERLOADED])
    for number in range(5):
        await ask(gateways[number % 3], caller, number)
    assert len(bench.gemini.asked) == 5
    with pytest.raises(ModelUnavailable) as refused:
        await gateways[0].ask(CLASSIFY_DOCUMENT, part(6), caller)
    assert refused.value.retry_after_seconds == pytest.approx(30, abs=5)
    assert len(bench.gemini.asked) == 5
    # Half open: many come, one is let through, and while it tries the others wait.
    bench.engine.advance(31)
    bench.gemini.script.append(Trouble.SLOW)
    probe = asyncio.create_task(gateways[0].ask(CLASSIFY_DOCUMENT, part(7), caller))
    await bench.until(lambda: len(bench.gemini.asked) == 6)
    assert await asyncio.gather(*(ask(one, caller, 8) for one in gateways)) == ["AI_UNAVAILABLE"] * 3
    assert len(bench.gemini.asked) == 6
    # Whoever tried was killed; after its time another one tries, and all is well.
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    bench.engine.advance(130)
    assert await ask(gateways[1], caller, 9) == "gemini:gemini-2.5-flash"
    assert await ask(gateways[2], caller, 10) == "gemini:gemini-2.5-flash"


async def test_a_circuit_that_opens_again_stays_open_for_longer(bench: Bench) -> None:
    caller, gateway = bench.caller(), bench.gateway()
    bench.gemini.script.extend([Trouble.BROKEN] * 8)
    for number in range(5):
        await ask(gateway, caller, number)
    for wait, number in ((30, 6), (60, 7), (120, 8)):
        bench.engine.advance(wait + 1)
        assert await ask(gateway, caller, number) == "AI_FAILED"
        with pytest.raises(ModelUnavailable) as refused:
            await gateway.ask(CLASSIFY_DOCUMENT, part(100 + number), caller)
        assert refused.value.retry_after_seconds == pytest.approx(2 * wait, abs=5)


async def test_refusals_of_single_questions_leave_the_circuit_closed(bench: Bench) -> None:
    caller, gateway = bench.caller(), bench.gateway()
    bench.gemini.script.extend([Trouble.BLOCKED, Trouble.TOO_LONG, Trouble.TRUNCATED] * 3)
    for number in range(9):
        await ask(gateway, caller, number)
    assert await ask(gateway, caller, 10) == "gemini:gemini-2.5-flash"


async def test_an_open_circuit_has_the_next_provider_asked(bench: Bench) -> None:
    caller, gateway = bench.caller(), bench.gateway("gemini,anthropic")
    bench.gemini.script.extend([Trouble.BROKEN] * 5)
    answers = [await ask(gateway, caller, number) for number in range(8)]
    assert set(answers) == {"anthropic:claude-haiku-4-5"}
    assert len(bench.gemini.asked) == 5


async def test_no_lock_is_held_while_a_model_answers(bench: Bench) -> None:
    caller, gateway = bench.caller(), bench.gateway("gemini")
    bench.gemini.script.append(Trouble.SLOW)
    slow = asyncio.create_task(gateway.ask(CLASSIFY_DOCUMENT, part(1), caller))
    await bench.until(lambda: len(bench.gemini.asked) == 1)
    assert await ask(gateway, caller, 2) == "gemini:gemini-2.5-flash"
    assert bench.engine.one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)
