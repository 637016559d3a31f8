"""What providers say is read by a table, and every fault in it has a rule."""

from __future__ import annotations

import pytest

from octavo.ai.faults import FAULT_PATTERNS, FAULT_RULES, Fault, ProviderFault, classify_error, most_recoverable
from octavo.core.errors import ContentBlocked, ModelUnavailable, RateLimited


def test_every_fault_has_a_rule() -> None:
    assert set(FAULT_RULES) == set(Fault)


def test_only_bad_keys_and_refusals_are_asked_of_nobody_else() -> None:
    assert {fault for fault, rule in FAULT_RULES.items() if not rule.falls_back} == {Fault.BAD_KEY, Fault.REFUSED}


@pytest.mark.parametrize(
    ("provider", "status", "said", "fault"),
    [
        ("gemini", 429, '"quotaId": "GenerateRequestsPerDayPerProjectPerModel"', Fault.OUT_OF_QUOTA),
        ("gemini", 429, '"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"', Fault.RATE_LIMITED),
        ("gemini", 400, '"reason": "API_KEY_INVALID"', Fault.BAD_KEY),
        ("gemini", 403, "You do not have permission to access the File abc", Fault.FILE_GONE),
        ("gemini", 403, "Generative Language API has not been used in project", Fault.BAD_KEY),
        ("gemini", 404, "models/gemini-9 is not found", Fault.REFUSED),
        ("gemini", 504, "DEADLINE_EXCEEDED", Fault.TIMED_OUT),
        ("openai", 429, '"code": "insufficient_quota"', Fault.OUT_OF_QUOTA),
        ("openai", 400, '"code": "content_policy_violation"', Fault.BLOCKED),
        # vLLM says it in words.
        ("openai", 400, "This model's maximum context length is 4096 tokens.", Fault.TOO_LONG),
        ("openai", 400, "Unsupported parameter", Fault.REFUSED),
        ("anthropic", 529, "overloaded_error", Fault.OVERLOADED),
        ("anthropic", 402, "billing_error", Fault.OUT_OF_QUOTA),
        ("anthropic", 413, "request_too_large", Fault.TOO_LONG),
        # What one says means nothing where another says it.
        ("anthropic", 429, "PerDay insufficient_quota", Fault.RATE_LIMITED),
        ("openai", 529, "", Fault.BROKEN),
        ("openai", 418, "", Fault.REFUSED),
    ],
)
def test_provider_responses_are_parsed(provider: str, status: int, said: str, fault: Fault) -> None:
    assert classify_error(provider, status, said) is fault


def test_the_table_holds_no_line_that_another_hides() -> None:
    for place, sign in enumerate(FAULT_PATTERNS):
        hidden = [
            earlier
            for earlier in FAULT_PATTERNS[:place]
            if earlier.provider in {"", sign.provider}
            and earlier.body == ""
            and set(sign.statuses) <= set(earlier.statuses)
        ]
        assert hidden == []


def test_of_many_faults_the_most_recoverable_is_reported() -> None:
    blocked, slow = ProviderFault(Fault.BLOCKED), ProviderFault(Fault.TIMED_OUT)
    limited, closed = (
        ProviderFault(Fault.RATE_LIMITED, retry_after=40),
        ProviderFault(Fault.CIRCUIT_OPEN, retry_after=9),
    )
    assert isinstance(most_recoverable([blocked]).as_error("m"), ContentBlocked)
    assert most_recoverable([blocked, slow]) is slow
    assert isinstance(most_recoverable([slow, blocked, limited]).as_error("m"), RateLimited)
    error = most_recoverable([limited, closed]).as_error("gemini:m")
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after_seconds == 9
