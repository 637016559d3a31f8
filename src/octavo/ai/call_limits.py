"""Limits of one model call for each provider: pages and bytes of a file, and tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
# Self-hosted servers differ: a request that they refuse is split and sent again.
CALL_LIMITS = {
    "gemini": CallLimits(pages=1000, bytes=50 * MEGABYTE, tokens=900_000),
    "openai": CallLimits(pages=1000, bytes=45 * MEGABYTE, tokens=240_000),
    "anthropic": CallLimits(pages=100, bytes=22 * MEGABYTE, tokens=180_000),
    "compatible": CallLimits(pages=100, bytes=20 * MEGABYTE, tokens=100_000),
}


def shared_limits(models: Iterable[Model]) -> CallLimits:
    """The smallest limits of these models, because any of the models may get the call."""
    limits = [CALL_LIMITS[model.provider] for model in models if model.provider != LOCAL]
    if not limits:
        return UNLIMITED
    return CallLimits(*(min(getattr(one, name) for one in limits) for name in ("pages", "bytes", "tokens")))
