"""Vectors: in calls of a hundred, each paid for once; long texts whole; and never of two models in one."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from octavo.core.errors import ModelFailed, NoModel
from tests.support.fake_ai import Trouble
from tests.support.gateway import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("providers", "model", "size"),
    [
        ("gemini", "gemini:gemini-embedding-001", 768),
        ("openai", "openai:text-embedding-3-small", 6),
        ("anthropic,openai", "openai:text-embedding-3-small", 6),
    ],
)
async def test_the_first_provider_that_has_vectors_makes_them(
    bench: Bench, providers: str, model: str, size: int
) -> None:
    answered = await bench.gateway(providers).embed(["one", "two", "one"], bench.working())
    one, two, three = answered.output.vectors
    assert (answered.made_by, answered.output.model, len(one)) == (model, model, size)
    assert one == three != two
    assert math.isclose(sum(number * number for number in one), 1, abs_tol=1e-9)
    assert answered.cost_usd == bench.billed() == bench.spent() > 0


async def test_many_texts_go_in_calls_of_a_hundred_and_are_paid_for_once(bench: Bench) -> None:
    gateway, caller = bench.gateway(), bench.working()
    texts = [f"text {number}" for number in range(250)]
    bench.gemini.script.extend([None, None, Trouble.BROKEN])
    with pytest.raises(ModelFailed):
        await gateway.embed(texts, caller)
    answered = await gateway.embed(texts, caller)
    assert len(bench.gemini.requests) == 4
    assert len(answered.output.vectors) == 250
    again = await gateway.embed(texts, replace(caller, generation=0))
    assert again.reused
    kept, made = again.output.vectors[17], answered.output.vectors[17]
    assert kept == pytest.approx(made, abs=1e-6)


async def test_the_last_sentence_of_a_long_text_changes_its_vector(bench: Bench) -> None:
    gateway, caller = bench.gateway(), bench.caller()
    long = "All of this is about bees. " * 1000
    one = (await gateway.embed([f"{long}The end is about honey."], caller)).output.vectors[0]
    other = (await gateway.embed([f"{long}The end is about taxes."], caller)).output.vectors[0]
    assert one != other
    assert math.isclose(sum(number * number for number in one), 1, abs_tol=1e-9)


async def test_no_other_model_is_used_instead(bench: Bench) -> None:
    bench.gemini.script.append(Trouble.BROKEN)
    with pytest.raises(ModelFailed):
        await bench.gateway("gemini,openai,local").embed(["text"], bench.working())
    assert bench.openai.requests == []


async def test_a_model_can_be_named(bench: Bench) -> None:
    gateway, caller = bench.gateway("gemini,compatible,anthropic"), bench.working()
    assert (await gateway.embed(["text"], caller, "compatible:nomic")).output.model == "compatible:nomic"
    local = await gateway.embed(["text"], caller, "local")
    assert (local.made_by, len(local.output.vectors[0])) == ("local", 384)
    with pytest.raises(NoModel):
        await gateway.embed(["text"], caller, "anthropic:claude-haiku-4-5")
    with pytest.raises(NoModel):
        await gateway.embed(["text"], caller, "openai:text-embedding-3-small")
