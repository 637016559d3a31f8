"""The ways in which a model call can fail, and how each failure is handled.

There are two tables. The first maps a provider's response to a fault. The second defines three things for each fault:
the error that the job fails with, whether the next model is tried, and whether the provider's circuit breaker counts
the fault. The class of the error determines whether the job is retried.

After an unknown response or an invalid API key, no other model is tried. If another model answered instead, nobody
would notice the problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from octavo.core import errors
from octavo.core.errors import RETRY_RULES, OctavoError


class Fault(StrEnum):
    RATE_LIMITED = "rate_limited"
    OUT_OF_QUOTA = "out_of_quota"
    OVERLOADED = "overloaded"
    BROKEN = "broken"
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    CUT_OFF = "cut_off"
    CIRCUIT_OPEN = "circuit_open"
    TOO_LONG = "too_long"
    TRUNCATED = "truncated"
    BLOCKED = "blocked"
    MALFORMED = "malformed"
    FILE_GONE = "file_gone"
    NO_PRICE = "no_price"
    BAD_KEY = "bad_key"
    REFUSED = "refused"


class FaultPattern(NamedTuple):
    """A pattern that recognises a type of failure in a provider's response.

    `body` is a regular expression to search for in the response body. An empty `provider` matches every provider.
    """

    provider: str
    statuses: range
    body: str
    fault: Fault


def _pattern(provider: str, status: int, body: str, fault: Fault) -> FaultPattern:
    return FaultPattern(provider, range(status, status + 1), body, fault)


# The first match wins.
FAULT_PATTERNS = (
    _pattern("gemini", 400, r"API_KEY_INVALID|API key (not valid|expired)", Fault.BAD_KEY),
    _pattern("gemini", 400, r"exceeds the maximum number of tokens", Fault.TOO_LONG),
    # The file has expired or was uploaded with another key.
    _pattern("gemini", 403, r"\bFile\b", Fault.FILE_GONE),
    _pattern("gemini", 404, r"\bFile\b", Fault.FILE_GONE),
    # A daily quota looks like a rate limit, but resets only tomorrow.
    _pattern("gemini", 429, r"PerDay", Fault.OUT_OF_QUOTA),
    _pattern("openai", 400, r"context_length_exceeded|maximum context length", Fault.TOO_LONG),
    _pattern("openai", 400, r"content_policy_violation|content_filter|invalid_prompt", Fault.BLOCKED),
    _pattern("openai", 429, r"insufficient_quota", Fault.OUT_OF_QUOTA),
    _pattern("anthropic", 400, r"prompt is too long|exceed context limit", Fault.TOO_LONG),
    _pattern("anthropic", 400, r"credit balance is too low", Fault.OUT_OF_QUOTA),
    _pattern("anthropic", 400, r"content filtering policy", Fault.BLOCKED),
    _pattern("anthropic", 402, r"", Fault.OUT_OF_QUOTA),
    _pattern("anthropic", 529, r"", Fault.OVERLOADED),
    _pattern("bedrock", 400, r"[Ii]nput is too long|too many input tokens|context limit", Fault.TOO_LONG),
    _pattern("bedrock", 400, r"ServiceQuotaExceeded", Fault.OUT_OF_QUOTA),
    # The token endpoint of Google refuses a key that was deleted with 400.
    _pattern("vertex", 400, r"invalid_grant|invalid_client", Fault.BAD_KEY),
    _pattern("", 401, r"", Fault.BAD_KEY),
    _pattern("", 403, r"", Fault.BAD_KEY),
    _pattern("", 408, r"", Fault.TIMED_OUT),
    _pattern("", 413, r"", Fault.TOO_LONG),
    _pattern("", 429, r"", Fault.RATE_LIMITED),
    _pattern("", 503, r"", Fault.OVERLOADED),
    _pattern("", 504, r"", Fault.TIMED_OUT),
    FaultPattern("", range(500, 600), r"", Fault.BROKEN),
)

# Finish reasons that mean the answer is incomplete.
FINISH_REASONS: dict[str, dict[str, Fault]] = {
    "gemini": {
        "MAX_TOKENS": Fault.TRUNCATED,
        "SAFETY": Fault.BLOCKED,
        "RECITATION": Fault.BLOCKED,
        "BLOCKLIST": Fault.BLOCKED,
        "PROHIBITED_CONTENT": Fault.BLOCKED,
        "SPII": Fault.BLOCKED,
        "IMAGE_SAFETY": Fault.BLOCKED,
        "LANGUAGE": Fault.BLOCKED,
    },
    "openai": {"length": Fault.TRUNCATED, "content_filter": Fault.BLOCKED},
    "anthropic": {
        "max_tokens": Fault.TRUNCATED,
        "refusal": Fault.BLOCKED,
        "model_context_window_exceeded": Fault.TOO_LONG,
    },
    "bedrock": {
        "max_tokens": Fault.TRUNCATED,
        "guardrail_intervened": Fault.BLOCKED,
        "content_filtered": Fault.BLOCKED,
        "model_context_window_exceeded": Fault.TOO_LONG,
        "malformed_model_output": Fault.MALFORMED,
        "malformed_tool_use": Fault.MALFORMED,
        # Errors that end a stream.
        "throttlingException": Fault.RATE_LIMITED,
        "serviceUnavailableException": Fault.OVERLOADED,
        "internalServerException": Fault.BROKEN,
        "modelStreamErrorException": Fault.BROKEN,
        "validationException": Fault.REFUSED,
    },
}


class FaultRule(NamedTuple):
    """How a fault is handled.

    `error` is the error that the job fails with. `falls_back` is true if the next model is tried. `trips_circuit` is
    true if the provider's circuit breaker counts the fault. Five such faults in a row open the circuit breaker.
    """

    error: type[OctavoError]
    falls_back: bool
    trips_circuit: bool = False


FAULT_RULES: dict[Fault, FaultRule] = {
    Fault.RATE_LIMITED: FaultRule(errors.RateLimited, falls_back=True),
    Fault.OUT_OF_QUOTA: FaultRule(errors.QuotaExhausted, falls_back=True),
    Fault.OVERLOADED: FaultRule(errors.ModelUnavailable, falls_back=True, trips_circuit=True),
    Fault.BROKEN: FaultRule(errors.ModelFailed, falls_back=True, trips_circuit=True),
    Fault.TIMED_OUT: FaultRule(errors.TimedOut, falls_back=True, trips_circuit=True),
    Fault.UNREACHABLE: FaultRule(errors.NetworkFailed, falls_back=True, trips_circuit=True),
    Fault.CUT_OFF: FaultRule(errors.NetworkFailed, falls_back=True, trips_circuit=True),
    Fault.CIRCUIT_OPEN: FaultRule(errors.ModelUnavailable, falls_back=True),
    Fault.TOO_LONG: FaultRule(errors.TokenLimit, falls_back=True),
    Fault.TRUNCATED: FaultRule(errors.TokenLimit, falls_back=True),
    Fault.BLOCKED: FaultRule(errors.ContentBlocked, falls_back=True),
    Fault.MALFORMED: FaultRule(errors.AnswerUnusable, falls_back=True),
    Fault.FILE_GONE: FaultRule(errors.ModelFailed, falls_back=True),
    Fault.NO_PRICE: FaultRule(errors.PriceUnknown, falls_back=True),
    Fault.BAD_KEY: FaultRule(errors.BadModelKey, falls_back=False),
    Fault.REFUSED: FaultRule(errors.ModelRefused, falls_back=False),
}


# The model is not available for now. The same call may succeed later, when the provider is back or its price is known.
AWAY = frozenset(
    {
        Fault.RATE_LIMITED,
        Fault.OUT_OF_QUOTA,
        Fault.OVERLOADED,
        Fault.BROKEN,
        Fault.TIMED_OUT,
        Fault.UNREACHABLE,
        Fault.CUT_OFF,
        Fault.CIRCUIT_OPEN,
        Fault.NO_PRICE,
    }
)
AWAY_ERRORS = tuple({FAULT_RULES[fault].error for fault in AWAY})


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The numbers of tokens that a call used, as reported by the provider.

    `cached` is the part of `input` that the provider read from its cache.
    """

    input: int = 0
    output: int = 0
    cached: int = 0


@dataclass(eq=False)
class ProviderFault(Exception):
    """Raised when a model call fails.

    `usage` contains the tokens that were billed despite the failure. It is None if they are unknown.
    """

    fault: Fault
    usage: TokenUsage | None = field(default_factory=TokenUsage)
    retry_after: float | None = None
    status: int | None = None

    @property
    def rule(self) -> FaultRule:
        return FAULT_RULES[self.fault]

    def as_error(self, model: str) -> OctavoError:
        detail = f"{model} returned status {self.status}." if self.status else f"Model: {model}."
        error = self.rule.error(detail)
        if self.retry_after is not None:
            error.retry_after_seconds = self.retry_after
        return error


def classify_error(provider: str, status: int, body: str) -> Fault:
    """Map a provider's error response to a fault."""
    for pattern in FAULT_PATTERNS:
        if pattern.provider in {"", provider} and status in pattern.statuses and re.search(pattern.body, body):
            return pattern.fault
    return Fault.REFUSED


def classify_finish(provider: str, reason: str) -> Fault | None:
    return FINISH_REASONS[provider].get(reason)


def most_recoverable(faults: Iterable[ProviderFault]) -> ProviderFault:
    """Choose the fault to report if every model failed: the fault that a retry is most likely to fix."""

    def severity(fault: ProviderFault) -> tuple[int, float]:
        rule = RETRY_RULES[fault.rule.error.error_class]
        rank = 2 if rule is None else 1 if rule.charged else 0
        return rank, fault.retry_after or (rule.first_delay_seconds if rule else 0.0)

    return min(faults, key=severity)
