"""Every way in which a provider can fail, over a real socket: error, retry, fallback, delay, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from octavo.ai.faults import FAULT_RULES, Fault
from octavo.ai.tasks import CLASSIFY_DOCUMENT, Task
from octavo.core.errors import RETRY_RULES, OctavoError
from octavo.language.insights import ChunkText, DocumentInsight, DocumentSource
from tests.support.fake_ai import Trouble
from tests.support.gateway import Bench
from tests.support.instance import free_port

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENT = DocumentSource([ChunkText("The council met on Tuesday.")])
# A slow answer is given up after this; all others come at once, or nearly so on a busy machine.
SHORT = replace(CLASSIFY_DOCUMENT, seconds=1)
MODELS = {
    "gemini": "gemini-2.5-flash",
    "openai": "gpt-5-mini",
    "anthropic": "claude-haiku-4-5",
    "mistral": "mistral-small-latest",
    "azure": "gpt-5-mini",
    "vertex": "google/gemini-2.5-flash",
    "bedrock": "global.anthropic.claude-haiku-4-5-20251001-v1:0",
}


class Row(NamedTuple):
    """What a trouble means. `again`: after how many seconds, `waits`: without counting as an attempt."""

    fault: Fault
    code: str
    falls_back: bool
    again: float | None
    waits: bool = False
    paid: str = "nothing"


TABLE: dict[Trouble, Row] = {
    # Waits, which are not charged. The provider said 17 seconds, which is what a job waits for at least.
    Trouble.RATE_LIMIT: Row(Fault.RATE_LIMITED, "RATE_LIMIT", True, 30, waits=True),
    Trouble.QUOTA: Row(Fault.OUT_OF_QUOTA, "AI_QUOTA", True, 60, waits=True),
    Trouble.OVERLOADED: Row(Fault.OVERLOADED, "AI_UNAVAILABLE", True, 60, waits=True),
    Trouble.CUT: Row(Fault.CUT_OFF, "NETWORK", True, 5, waits=True, paid="estimate"),
    # Attempts, which are charged.
    Trouble.BROKEN: Row(Fault.BROKEN, "AI_FAILED", True, 5),
    Trouble.SLOW: Row(Fault.TIMED_OUT, "TIMEOUT", True, 5, paid="estimate"),
    Trouble.MALFORMED: Row(Fault.MALFORMED, "AI_ANSWER_UNUSABLE", True, 5, paid="bill"),
    Trouble.NOT_JSON: Row(Fault.MALFORMED, "AI_ANSWER_UNUSABLE", True, 5, paid="estimate"),
    # What another attempt would not change, but another model might.
    Trouble.BLOCKED: Row(Fault.BLOCKED, "AI_CONTENT_BLOCKED", True, None, paid="bill"),
    Trouble.TRUNCATED: Row(Fault.TRUNCATED, "AI_TOKEN_LIMIT", True, None, paid="bill"),
    Trouble.TOO_LONG: Row(Fault.TOO_LONG, "AI_TOKEN_LIMIT", True, None),
    # What no other model may hide.
    Trouble.BAD_KEY: Row(Fault.BAD_KEY, "AI_BAD_KEY", False, None),
    Trouble.REFUSED: Row(Fault.REFUSED, "AI_REFUSED", False, None),
}


def task_for(trouble: Trouble) -> Task[DocumentSource, DocumentInsight]:
    return SHORT if trouble is Trouble.SLOW else CLASSIFY_DOCUMENT


def next_of(provider: str) -> str:
    return "openai" if provider == "anthropic" else "anthropic"


@pytest.mark.parametrize("trouble", TABLE, ids=str)
@pytest.mark.parametrize("provider", MODELS)
async def test_a_fault_means_what_the_table_says(bench: Bench, provider: str, trouble: Trouble) -> None:
    row, server = TABLE[trouble], bench.servers[provider]
    # The one that is in the wrong form gets a second chance; it is in the wrong form again.
    server.script.extend([trouble] * 2 if trouble is Trouble.MALFORMED else [trouble])
    with pytest.raises(OctavoError) as failed:
        await bench.gateway(provider).ask(task_for(trouble), DOCUMENT, bench.working())
    error = failed.value
    assert error.code == row.code
    rule = RETRY_RULES[error.error_class]
    assert (rule.first_delay_seconds if rule else None) == row.again
    assert (rule is not None and not rule.charged) == row.waits
    if trouble is Trouble.RATE_LIMIT:
        assert error.retry_after_seconds == 17
    assert f"{provider}:{MODELS[provider]}" in error.line
    assert all(call["fault"] == row.fault for call in bench.calls())
    assert FAULT_RULES[row.fault].falls_back == row.falls_back
    assert (
        bench.spent() == {"nothing": 0, "bill": bench.billed(), "estimate": bench.calls()[0]["estimate_usd"]}[row.paid]
    )
    assert bench.spent() > 0 or row.paid == "nothing"
    assert bench.calls()[0]["is_estimated"] == (row.paid == "estimate")


@pytest.mark.parametrize("trouble", TABLE, ids=str)
@pytest.mark.parametrize("provider", MODELS)
async def test_the_next_model_is_asked_or_the_error_is_shown(bench: Bench, provider: str, trouble: Trouble) -> None:
    row, other = TABLE[trouble], next_of(provider)
    bench.servers[provider].script.extend([trouble] * 2 if trouble is Trouble.MALFORMED else [trouble])
    gateway, caller = bench.gateway(f"{provider},{other},local"), bench.working()
    if not row.falls_back:
        with pytest.raises(OctavoError) as failed:
            await gateway.ask(task_for(trouble), DOCUMENT, caller)
        assert failed.value.code == row.code
        assert bench.servers[other].asked == []
        return
    answered = await gateway.ask(task_for(trouble), DOCUMENT, caller)
    assert answered.made_by == f"{other}:{MODELS[other]}"
    assert {(one.model, one.fault) for one in answered.failed} == {(f"{provider}:{MODELS[provider]}", row.fault)}
    settled = bench.calls()[-1]
    assert settled["state"] == "settled"
    assert settled["failed_models"][0] == {"model": f"{provider}:{MODELS[provider]}", "fault": row.fault}


@pytest.mark.parametrize("provider", MODELS)
async def test_nobody_at_the_address_is_a_wait_that_costs_nothing(bench: Bench, provider: str) -> None:
    with pytest.raises(OctavoError) as failed:
        address = {f"{provider}_url": f"http://127.0.0.1:{free_port()}"}
        await bench.gateway(provider, **address).ask(CLASSIFY_DOCUMENT, DOCUMENT, bench.working())
    assert failed.value.code == "NETWORK"
    assert bench.states() == [("failed", "unreachable")]
    assert bench.spent() == 0


async def test_a_server_of_ones_own_fails_as_openai_does(bench: Bench) -> None:
    bench.openai.script.append(Trouble.TOO_LONG)
    with pytest.raises(OctavoError) as failed:
        await bench.gateway("compatible").ask(CLASSIFY_DOCUMENT, DOCUMENT, bench.working())
    assert failed.value.code == "AI_TOKEN_LIMIT"


async def test_a_wrong_key_is_reported_immediately_and_never_printed(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    """The key is what the settings hold and the provider does not know; no fallback hides that."""
    gateway = bench.gateway("openai,gemini,local", openai_key="sk-wrong-7711")
    with pytest.raises(OctavoError) as failed:
        await gateway.ask(CLASSIFY_DOCUMENT, DOCUMENT, bench.working())
    assert failed.value.code == "AI_BAD_KEY"
    assert bench.gemini.asked == []
    assert "7711" not in failed.value.line + str(bench.calls()) + "".join(capfd.readouterr())
