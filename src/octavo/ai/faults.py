"""How a call of a model can go wrong: what a provider says, what it means, and what is done about it.

Two tables. The first turns a provider's answer into a fault, the second says what follows from each fault: the error
that a job fails with (whose class decides about retries), whether the next model is asked instead, and whether the
provider itself is not well. What the tables do not list is refused and asked of nobody else, and so are bad keys:
a fallback would hide for months that nobody can use what is paid for.
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
    BAD_KEY = "bad_key"
    REFUSED = "refused"


class Sign(NamedTuple):
    """`says` is looked for in the answer's body; without a provider it holds for all of them."""

    provider: str
    statuses: range
    says: str
    fault: Fault


def _sign(provider: str, status: int, says: str, fault: Fault) -> Sign:
    return Sign(provider, range(status, status + 1), says, fault)


# The first that fits is meant.
SIGNS = (
    _sign("gemini", 400, r"API_KEY_INVALID|API key (not valid|expired)", Fault.BAD_KEY),
    _sign("gemini", 400, r"exceeds the maximum number of tokens", Fault.TOO_LONG),
    # A file that has expired, or that another key sent.
    _sign("gemini", 403, r"\bFile\b", Fault.FILE_GONE),
    _sign("gemini", 404, r"\bFile\b", Fault.FILE_GONE),
    # The quota of a day looks like a rate limit, but is back only tomorrow.
    _sign("gemini", 429, r"PerDay", Fault.OUT_OF_QUOTA),
    _sign("openai", 400, r"context_length_exceeded|maximum context length", Fault.TOO_LONG),
    _sign("openai", 400, r"content_policy_violation|content_filter|invalid_prompt", Fault.BLOCKED),
    _sign("openai", 429, r"insufficient_quota", Fault.OUT_OF_QUOTA),
    _sign("anthropic", 400, r"prompt is too long|exceed context limit", Fault.TOO_LONG),
    _sign("anthropic", 400, r"credit balance is too low", Fault.OUT_OF_QUOTA),
    _sign("anthropic", 400, r"content filtering policy", Fault.BLOCKED),
    _sign("anthropic", 402, r"", Fault.OUT_OF_QUOTA),
    _sign("anthropic", 529, r"", Fault.OVERLOADED),
    _sign("", 401, r"", Fault.BAD_KEY),
    _sign("", 403, r"", Fault.BAD_KEY),
    _sign("", 408, r"", Fault.TIMED_OUT),
    _sign("", 413, r"", Fault.TOO_LONG),
    _sign("", 429, r"", Fault.RATE_LIMITED),
    _sign("", 503, r"", Fault.OVERLOADED),
    _sign("", 504, r"", Fault.TIMED_OUT),
    Sign("", range(500, 600), r"", Fault.BROKEN),
)

# Why a model stopped writing, where that is not because it was done.
ENDINGS: dict[str, dict[str, Fault]] = {
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
}


class Rule(NamedTuple):
    """`hurts`: five of these in a row open the provider's circuit."""

    error: type[OctavoError]
    falls_back: bool
    hurts: bool = False


RULES: dict[Fault, Rule] = {
    Fault.RATE_LIMITED: Rule(errors.RateLimited, falls_back=True),
    Fault.OUT_OF_QUOTA: Rule(errors.QuotaExhausted, falls_back=True),
    Fault.OVERLOADED: Rule(errors.ModelUnavailable, falls_back=True, hurts=True),
    Fault.BROKEN: Rule(errors.ModelFailed, falls_back=True, hurts=True),
    Fault.TIMED_OUT: Rule(errors.TimedOut, falls_back=True, hurts=True),
    Fault.UNREACHABLE: Rule(errors.NetworkFailed, falls_back=True, hurts=True),
    Fault.CUT_OFF: Rule(errors.NetworkFailed, falls_back=True, hurts=True),
    Fault.CIRCUIT_OPEN: Rule(errors.ModelUnavailable, falls_back=True),
    Fault.TOO_LONG: Rule(errors.TokenLimit, falls_back=True),
    Fault.TRUNCATED: Rule(errors.TokenLimit, falls_back=True),
    Fault.BLOCKED: Rule(errors.ContentBlocked, falls_back=True),
    Fault.MALFORMED: Rule(errors.AnswerUnusable, falls_back=True),
    Fault.FILE_GONE: Rule(errors.ModelFailed, falls_back=True),
    Fault.BAD_KEY: Rule(errors.BadModelKey, falls_back=False),
    Fault.REFUSED: Rule(errors.ModelRefused, falls_back=False),
}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; `cached` are those of `read` that it had read before."""

    read: int = 0
    written: int = 0
    cached: int = 0


@dataclass(eq=False)
class ProviderFault(Exception):
    """A call went wrong. `usage` is what was paid for all the same; None means that nobody knows."""

    fault: Fault
    usage: Usage | None = field(default_factory=Usage)
    retry_after: float | None = None
    status: int | None = None

    @property
    def rule(self) -> Rule:
        return RULES[self.fault]

    def as_error(self, model: str) -> OctavoError:
        answered = f", which answered {self.status}" if self.status else ""
        error = self.rule.error(f"It was {model}{answered}.")
        if self.retry_after is not None:
            error.retry_after_seconds = self.retry_after
        return error


def read_fault(provider: str, status: int, body: str) -> Fault:
    """What a provider's refusal means."""
    for sign in SIGNS:
        if sign.provider in {"", provider} and status in sign.statuses and re.search(sign.says, body):
            return sign.fault
    return Fault.REFUSED


def read_ending(provider: str, ending: str) -> Fault | None:
    return ENDINGS[provider].get(ending)


def worth_most(faults: Iterable[ProviderFault]) -> ProviderFault:
    """Of the faults of all models, the one that a job does best to fail with: to wait is better than to give up."""

    def hopelessness(fault: ProviderFault) -> tuple[int, float]:
        rule = RETRY_RULES[fault.rule.error.error_class]
        rank = 2 if rule is None else 1 if rule.charged else 0
        return rank, fault.retry_after or (rule.first_delay_seconds if rule else 0.0)

    return min(faults, key=hopelessness)
