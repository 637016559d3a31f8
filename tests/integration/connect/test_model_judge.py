"""Models confirm contradictions and explain bridges, within what a document may cost; offline there are no bridges."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from octavo.ai.calls import Caller
from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import open_gateway, open_local_gateway
from octavo.connect import model_judge
from octavo.connect.contradiction import find_candidates, judge_candidates
from octavo.connect.detection import find_opposite_tones
from octavo.connect.evidence import ChunkPair, ComparableChunk, DetectedConnection, SentenceCache
from octavo.connect.model_judge import JudgeBudget, ModelJudge
from octavo.core.settings import Settings
from octavo.records.search import Status
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import SECRET, Asked
from tests.support.library import Desk

CLAIMS = ("The gate of the {} is open.", "The gate of the {} is not open.")
PLACES = ("castle", "harbour", "garden")
VERDICTS = ("contradiction", "compatible", "unclear")


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with FakeGemini() as server:
        server.answer = answer
        yield server


@pytest.fixture
async def gateway(desk: Desk, gemini: FakeGemini) -> AsyncIterator[Gateway]:
    given = {"providers": "gemini", "gemini_key": SECRET, "gemini_url": gemini.url, "embedding_model": "local"}
    async with aclosing(open_gateway(Settings.model_validate(given), desk.database)) as opened:
        yield opened


def answer(asked: Asked) -> str:
    """A verdict of each kind in turn; every second pair is a bridge."""
    numbers = [int(number) for number in re.findall(r"Pair (\d+)\.", asked.text)]
    if "statements" in asked.instructions:
        said = [{"pair": n, "verdict": VERDICTS[n % 3], "explanation": "The gate."} for n in numbers]
    else:
        said = [{"pair": n, "is_bridge": n % 2 == 0, "strength": 0.7, "explanation": "Slowness."} for n in numbers]
    return json.dumps({"pairs": said})


def pair_of(first: str, second: str, **more: object) -> ChunkPair:
    one, other = (ComparableChunk(uuid4(), uuid4(), text, **more) for text in (first, second))  # pyright: ignore[reportArgumentType]
    return ChunkPair(one, other, 0.3)


def candidates(count: int) -> list[tuple[ChunkPair, float]]:
    concepts = {"buffer": 0.5, "release": 0.5}
    return [(pair_of(f"Bog {n}.", f"Bank {n}.", concepts=concepts, importance=0.8), 0.4) for n in range(count)]


async def test_a_model_confirms_drops_or_leaves_open(gateway: Gateway, gemini: FakeGemini, owner: UUID) -> None:
    pairs = [pair_of(CLAIMS[0].format(place), CLAIMS[1].format(place)) for place in PLACES]
    possible = judge_candidates(find_candidates(pairs, SentenceCache()))
    budget = JudgeBudget()
    judged = await ModelJudge(gateway, Caller(owner), budget, SentenceCache()).judge(possible)
    assert [(one.status, one.made_by) for one in judged] == [
        (Status.CONFIRMED, "gemini:gemini-2.5-flash"),
        (Status.POSSIBLE, "local"),
    ]
    assert (len(gemini.asked), budget.calls) == (1, 1)
    assert budget.spent > 0


def tones(count: int) -> list[DetectedConnection]:
    """Candidates by shared concept and opposite tone, each stronger than the one before."""
    pairs: list[ChunkPair] = []
    for n in range(count):
        strength = (n + 1) / (count + 1)
        texts = (f"Die Brücke {n} ist ein Segen.", f"Die Brücke {n} ist eine Gefahr.")
        one, other = (
            ComparableChunk(uuid4(), uuid4(), text, {"Brücke": strength}, polarity=polarity, language="de")
            for text, polarity in zip(texts, (0.9, -0.9), strict=True)
        )
        pairs.append(ChunkPair(one, other, 0.1))
    return find_opposite_tones(pairs, SentenceCache())


async def test_opposite_tones_are_kept_only_if_a_model_confirms_them(
    gateway: Gateway, gemini: FakeGemini, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_judge, "MOST_OPPOSITE_TONES", 6)
    judged = await ModelJudge(gateway, Caller(owner), JudgeBudget(), SentenceCache()).confirm(tones(9))
    # Of the six most promising every third is confirmed; what is unclear is not shown.
    assert [(one.quotes[0], one.status) for one in judged] == [
        ("Die Brücke 8 ist ein Segen.", Status.CONFIRMED),
        ("Die Brücke 5 ist ein Segen.", Status.CONFIRMED),
    ]
    assert len(gemini.asked) == 1
    assert "Die Brücke 3 " in gemini.asked[0].text
    assert "Die Brücke 2 " not in gemini.asked[0].text


async def test_the_cost_limit_of_a_document_holds_and_the_rest_is_dropped(
    gateway: Gateway, gemini: FakeGemini, owner: UUID, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_judge, "MOST_CALLS", 3)
    found = await ModelJudge(gateway, Caller(owner), JudgeBudget(), SentenceCache()).explain(candidates(60))
    assert len(gemini.asked) == 3
    assert len(found) == 15
    assert all((one.made_by, one.explanation) == ("gemini:gemini-2.5-flash", "Slowness.") for one in found)
    monkeypatch.setattr(model_judge, "MOST_CALLS", 200)
    monkeypatch.setattr(model_judge, "MOST_FOR_CONNECTIONS", (await spent(desk)) / 2)
    budget = JudgeBudget()
    await ModelJudge(gateway, Caller(owner, generation=1), budget, SentenceCache()).explain(candidates(200))
    assert budget.spent <= model_judge.MOST_FOR_CONNECTIONS
    assert budget.calls < 3


async def test_the_most_promising_bridges_are_judged_not_the_first_pages(
    gateway: Gateway, gemini: FakeGemini, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_judge, "MOST_BRIDGES", 10)
    in_page_order = [
        (pair_of(f"Bog {n}.", f"Bank {n}.", concepts={"buffer": 0.5}, importance=0.61 + n / 100), 0.4)
        for n in range(30)
    ]
    await ModelJudge(gateway, Caller(owner), JudgeBudget(), SentenceCache()).explain(in_page_order)
    assert len(gemini.asked) == 1
    assert [int(n) for n in re.findall(r"Bog (\d+)\.", gemini.asked[0].text)] == list(range(29, 19, -1))


async def spent(desk: Desk) -> Decimal:
    return await desk.one("SELECT sum(cost_usd) FROM ai_calls WHERE purpose = 'explain_bridges'")


async def test_offline_nothing_is_asked_contradictions_stay_possible_and_there_are_no_bridges(owner: UUID) -> None:
    budget = JudgeBudget()
    judge = ModelJudge(open_local_gateway(), Caller(owner), budget, SentenceCache())
    pair = pair_of(CLAIMS[0].format("castle"), CLAIMS[1].format("castle"))
    possible = judge_candidates(find_candidates([pair], SentenceCache()))
    assert possible
    assert await judge.judge(possible) == possible
    assert await judge.confirm(tones(4)) == []
    assert await judge.explain(candidates(4)) == []
    assert (budget.calls, budget.spent) == (0, 0)
