"""How much the models of each provider take in one call: pages and bytes of a file, and tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from octavo.ai.calls import LOCAL
from octavo.ai.models import Model

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class CallRoom:
    """`outside`: whether anything leaves this machine. What is done here has no limits."""

    pages: int
    bytes: int
    tokens: int
    outside: bool = True


HERE = CallRoom(pages=100_000, bytes=1 << 40, tokens=1 << 40, outside=False)
# As the providers document it for the models in the settings, with a tenth left for the answer and for estimates.
# Servers of one's own differ: whatever they refuse is cut and asked again.
ROOMS = {
    "gemini": CallRoom(pages=1000, bytes=50 * MEGABYTE, tokens=900_000),
    "openai": CallRoom(pages=1000, bytes=45 * MEGABYTE, tokens=240_000),
    "anthropic": CallRoom(pages=100, bytes=22 * MEGABYTE, tokens=180_000),
    "compatible": CallRoom(pages=100, bytes=20 * MEGABYTE, tokens=100_000),
}


def room_of(models: Iterable[Model]) -> CallRoom:
    """What all of them take: any of them may have to answer."""
    rooms = [ROOMS[model.provider] for model in models if model.provider != LOCAL]
    if not rooms:
        return HERE
    return CallRoom(*(min(getattr(one, name) for one in rooms) for name in ("pages", "bytes", "tokens")))
