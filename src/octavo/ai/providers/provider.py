"""The interface that all model providers implement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable
from uuid import UUID

from pydantic import ValidationError

from octavo.ai.calls import ModelRequest
from octavo.ai.faults import TokenUsage
from octavo.ai.providers.http_client import OnEvent
from octavo.core.http import ServerSentEvent


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A complete answer of a model. If an answer is incomplete, `ProviderFault` is raised instead."""

    text: str
    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class EmbeddingReply:
    """The embeddings of texts: one vector of length 1 per text, in order."""

    vectors: list[list[float]]
    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class VisionLimits:
    """Limits on the pictures and PDFs in one call: the longest side of a picture in pixels, the page count, and whether
    PDFs can be sent.
    """

    pixels: int
    pages: int
    pdfs: bool = True

    def intersect(self, other: VisionLimits) -> VisionLimits:
        """Combine two sets of limits: return the stricter value of each limit."""
        return VisionLimits(min(self.pixels, other.pixels), min(self.pages, other.pages), self.pdfs and other.pdfs)


# Called with the answer so far while a model writes it.
OnText = Callable[[str], None]
ReadText = Callable[[ServerSentEvent], str]


class Provider(Protocol):
    vision_limits: ClassVar[VisionLimits]

    async def generate(
        self, model: str, request: ModelRequest, owner: UUID, seconds: float, on_text: OnText | None = None
    ) -> ModelReply:
        """Call the model once. Raises only `ProviderFault`.

        With `on_text`, the answer is streamed if the provider can do that.
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    async def embed(self, model: str, texts: Sequence[str], seconds: float) -> EmbeddingReply:
        """Embed texts. Raises only `ProviderFault`."""
        ...


def follow_text(on_text: OnText | None, read: ReadText) -> OnEvent | None:
    """Return a function that adds the text of each event, and calls `on_text` with the whole text so far."""
    if on_text is None:
        return None
    parts: list[str] = []

    def add(event: ServerSentEvent) -> None:
        try:
            text = read(event)
        except ValidationError:  # the whole answer is refused later
            return
        if text:
            parts.append(text)
            on_text("".join(parts))

    return add


def unit_vector(vector: Sequence[float]) -> list[float]:
    """Scale a vector to length 1, so that cosine similarity is a dot product.

    Some providers do not return unit vectors.
    """
    length = math.sqrt(math.fsum(one * one for one in vector))
    return [one / length for one in vector] if length else list(vector)
