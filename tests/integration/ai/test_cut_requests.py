"""A server that cuts a prompt or an answer without saying so is noticed, and its context size is a setting."""

from __future__ import annotations

import pytest

from octavo.ai.models import Model, shared_limits
from octavo.ai.tasks import ANSWER_SEGMENT
from octavo.ai.tasks.answer_segment import SegmentToAnswer
from octavo.core.errors import TokenLimit
from tests.support.analyses import answer_well, sentence
from tests.support.fake_ai.server import Bill
from tests.support.gateway import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")
SEGMENT = SegmentToAnswer("What is the fee?", "", [(page, sentence(page) * 20) for page in range(1, 6)])


def count_tokens(bench: Bench, monkeypatch: pytest.MonkeyPatch, read: int, written: int) -> None:
    """The server counts these tokens for every request."""

    def charge(model: str, *_counts: int) -> Bill:
        return Bill(model, read, written)

    monkeypatch.setattr(bench.openai, "charge", charge)


@pytest.mark.parametrize(("read", "written"), [(300, 50), (2000, 4000), (3500, 600)])
async def test_a_cut_prompt_or_answer_is_a_request_that_is_too_long(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, read: int, written: int
) -> None:
    bench.openai.answer = answer_well
    count_tokens(bench, monkeypatch, read, written)
    with pytest.raises(TokenLimit):
        await bench.gateway("compatible", compatible_context=4096).ask(ANSWER_SEGMENT, SEGMENT, bench.working())


async def test_a_complete_answer_is_not_doubted(bench: Bench) -> None:
    bench.openai.answer = answer_well
    answered = await bench.gateway("compatible").ask(ANSWER_SEGMENT, SEGMENT, bench.working())
    assert answered.made_by == "compatible:llama"


async def test_the_context_size_decides_how_much_text_a_request_has() -> None:
    models = [Model("compatible", "llama")]
    assert [shared_limits(models, size).tokens for size in (8192, 32_768, 131_072)] == [2372, 24_491, 112_964]
    assert shared_limits([Model("gemini"), *models], 8192).tokens == 2372
