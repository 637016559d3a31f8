"""Limits of one model call for each provider: pages and bytes of a file, and tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from octavo.ai.calls import LOCAL
from octavo.ai.models import Model

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How much one call can contain. `outside` says whether the data leaves this machine."""

    pages: int
    bytes: int
    tokens: int
    outside: bool = True


UNLIMITED = CallLimits(pages=100_000, bytes=1 << 40, tokens=1 << 40, outside=False)
# As documented by the providers for the default models, with a tenth reserved for the answer and for estimates.
# The limit of self-hosted servers is a setting. A request that a server refuses or cuts off is split and sent again.
CALL_LIMITS = {
    "gemini": CallLimits(pages=1000, bytes=50 * MEGABYTE, tokens=900_000),
    "openai": CallLimits(pages=1000, bytes=45 * MEGABYTE, tokens=240_000),
    "anthropic": CallLimits(pages=100, bytes=22 * MEGABYTE, tokens=180_000),
    "compatible": CallLimits(pages=100, bytes=20 * MEGABYTE, tokens=85_000),
}
# Tokens for the instructions and the answer. At least a quarter of the context is left for the text.
RESERVED_TOKENS = 5000


def shared_limits(models: Iterable[Model], compatible_context: int | None = None) -> CallLimits:
    """The smallest limits of all these models, because any of them may get the call."""
    known = dict(CALL_LIMITS)
    if compatible_context:
        usable = max(compatible_context * 9 // 10 - RESERVED_TOKENS, compatible_context // 4)
        known["compatible"] = replace(known["compatible"], tokens=usable)
    limits = [known[model.provider] for model in models if model.provider != LOCAL]
    if not limits:
        return UNLIMITED
    return CallLimits(*(min(getattr(one, name) for one in limits) for name in ("pages", "bytes", "tokens")))
