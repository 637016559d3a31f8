"""An answer is shown while a model writes it, and is checked and billed as any other answer."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from octavo.ai.tasks.answer_question import ANSWER_QUESTION, QuestionToAnswer, read_draft
from octavo.core.errors import NetworkFailed
from octavo.language.insights import ChunkText
from tests.support.fake_ai import Trouble
from tests.support.gateway import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROVIDERS = ("gemini", "openai", "anthropic", "bedrock", "compatible")
QUESTION = QuestionToAnswer("Is the bridge safe?", [ChunkText("The cables of the bridge were replaced in 2019.")])
SENTENCES = ["The cables were \u201creplaced\u201d in 2019.", "Nothing is said about the deck, or about the pillars."]
ANSWER = json.dumps(
    {"statements": [{"text": one, "citations": [{"passage": 0, "quote": "replaced in 2019"}]} for one in SENTENCES]}
)


def prepare(bench: Bench, provider: str) -> None:
    server = bench.servers["openai" if provider == "compatible" else provider]
    server.answer = lambda _asked: ANSWER


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_text_grows_until_it_is_the_answer(bench: Bench, provider: str) -> None:
    prepare(bench, provider)
    texts: list[str] = []
    caller = bench.working()
    answered = await bench.gateway(provider).ask(ANSWER_QUESTION, QUESTION, caller, on_text=texts.append)
    assert [one.text for one in answered.output.statements] == SENTENCES
    assert len(texts) > 5
    assert texts[-1] == ANSWER
    assert all(after.startswith(before) for before, after in pairwise(texts))
    assert bench.states() == [("settled", None)]
    assert bench.spent() == bench.billed()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_server_that_does_not_stream_answers_as_usual(bench: Bench, provider: str) -> None:
    prepare(bench, provider)
    bench.servers["openai" if provider == "compatible" else provider].streams = False
    texts: list[str] = []
    answered = await bench.gateway(provider).ask(ANSWER_QUESTION, QUESTION, bench.working(), on_text=texts.append)
    assert [one.text for one in answered.output.statements] == SENTENCES
    assert texts == []


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_unusable_answer_is_asked_for_again_and_the_text_begins_again(bench: Bench, provider: str) -> None:
    prepare(bench, provider)
    bench.servers["openai" if provider == "compatible" else provider].script.append(Trouble.MALFORMED)
    texts: list[str] = []
    answered = await bench.gateway(provider).ask(ANSWER_QUESTION, QUESTION, bench.working(), on_text=texts.append)
    assert [one.text for one in answered.output.statements] == SENTENCES
    assert [one.startswith('{"surprise') for one in texts[:2]] == [True, False]
    assert bench.states() == [("failed", "malformed"), ("settled", None)]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_stream_that_ends_early_is_not_an_answer(
    bench: Bench, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(bench, provider)
    server = bench.servers["openai" if provider == "compatible" else provider]
    whole = server.stream

    def end_early(said: dict[str, Any]) -> list[dict[str, Any] | str]:
        return whole(said)[:3]

    monkeypatch.setattr(server, "stream", end_early)
    gateway = bench.gateway(provider, prices="llama=1/1")
    with pytest.raises(NetworkFailed):
        await gateway.ask(ANSWER_QUESTION, QUESTION, bench.working(), on_text=lambda _text: None)
    assert bench.states() == [("failed", "cut_off")]
    assert bench.spent() > 0  # the tokens of an unknown answer are counted as expected


async def test_usage_that_a_server_does_not_report_is_estimated(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(bench, "compatible")
    whole = bench.openai.stream

    def leave_out_usage(said: dict[str, Any]) -> list[dict[str, Any] | str]:
        return [one for one in whole(said) if "usage" not in one]

    monkeypatch.setattr(bench.openai, "stream", leave_out_usage)
    gateway = bench.gateway("compatible", prices="llama=1000/1000")
    answered = await gateway.ask(ANSWER_QUESTION, QUESTION, bench.working(), on_text=lambda _text: None)
    assert answered.cost_usd * 1000 > len(ANSWER) // 4


async def test_the_same_question_is_not_paid_for_again(bench: Bench) -> None:
    prepare(bench, "gemini")
    gateway, caller, texts = bench.gateway("gemini"), bench.working(), list[str]()
    await gateway.ask(ANSWER_QUESTION, QUESTION, caller, on_text=texts.append)
    count = len(texts)
    again = await gateway.ask(ANSWER_QUESTION, QUESTION, replace(caller), on_text=texts.append)
    assert again.reused
    assert len(texts) == count


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("", ""),
        ('{"statements": [{"te', ""),
        ('{"statements": [{"text": "The cab', "The cab"),
        ('{"statements": [{"text": "Say \\"hi\\" \\u00e4\\', 'Say "hi" ä'),
        ('{"statements": [{"text": "Half \\u00', "Half "),
        ('{"statements": [{"text": "One.", "citations": [{"passage": 0, "quote": "x"}]}, {"text": "Two', "One.\nTwo"),
        (ANSWER, "\n".join(SENTENCES)),
    ],
)
async def test_a_draft_is_readable_at_every_moment(written: str, shown: str) -> None:
    assert read_draft(written) == shown
