"""What the gateway expects of a provider."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable
from uuid import UUID

from octavo.ai.calls import Request
from octavo.ai.faults import Usage


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer; any other is a `ProviderFault`."""

    text: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Embedded:
    """One vector of length 1 for each text, in their order."""

    vectors: list[list[float]]
    usage: Usage


@dataclass(frozen=True, slots=True)
class Sight:
    """What a model can be shown at once: pictures with no side longer than `pixels`, so many pages, PDFs or not."""

    pixels: int
    pages: int
    pdfs: bool = True

    def and_of(self, other: Sight) -> Sight:
        """What both can be shown."""
        return Sight(min(self.pixels, other.pixels), min(self.pages, other.pages), self.pdfs and other.pdfs)


class Provider(Protocol):
    sight: ClassVar[Sight]

    async def generate(self, model: str, request: Request, owner: UUID, seconds: float) -> Reply:
        """Ask once. Raises `ProviderFault` for whatever goes wrong, and nothing else."""
        ...


@runtime_checkable
class Embedder(Protocol):
    async def embed(self, model: str, texts: Sequence[str], seconds: float) -> Embedded:
        """Vectors for texts. Raises `ProviderFault` for whatever goes wrong."""
        ...


def of_length_one(vector: Sequence[float]) -> list[float]:
    """Some providers' vectors are shortened and no longer of that length; cosines are then products alone."""
    length = math.sqrt(math.fsum(one * one for one in vector))
    return [one / length for one in vector] if length else list(vector)
