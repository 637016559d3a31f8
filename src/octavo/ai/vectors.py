"""Prepares texts for embedding models, and combines and packs the resulting vectors.

Long texts are split into windows that are short enough for embedding models. Vectors are packed, so that they take less
space in the database.
"""

from __future__ import annotations

import json
from array import array
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import TypeAdapter

from octavo.ai.calls import Caller
from octavo.ai.models import Model
from octavo.ai.providers.provider import unit_vector
from octavo.core.types import JSON

EMBED = "embed"
EMBED_SECONDS = 30.0
# The maximum number of texts per call.
MAX_TEXTS = 100
# The smallest input limit of the supported models is 2,048 tokens.
WINDOW_CHARACTERS = 6000
CHARACTERS_PER_TOKEN = 3
# The type code of `array` for four-byte floats.
FLOATS = "f"


@dataclass(frozen=True, slots=True)
class Vectors:
    """One unit vector per text. Vectors can be compared only if they have the same `model`."""

    model: str
    vectors: list[list[float]]


def cut_windows(text: str, characters: int = WINDOW_CHARACTERS) -> list[str]:
    """Split a text into windows of at most `characters` characters, at word boundaries where possible.

    The windows cover the whole text.
    """
    windows: list[str] = []
    while len(text) > characters:
        end = text.rfind(" ", characters // 2, characters) + 1 or characters
        windows.append(text[:end])
        text = text[end:]
    return [*windows, text]


def pool(vectors: Sequence[Sequence[float]], weights: Sequence[int]) -> list[float]:
    """Return one vector for a text: the mean of the vectors of its windows, weighted by the lengths of the windows."""
    if len(vectors) == 1:
        return list(vectors[0])
    total = sum(weights)
    rows = zip(*vectors, strict=True)
    return unit_vector([sum(one * part for one, part in zip(row, weights, strict=True)) / total for row in rows])


def estimate_tokens(texts: Sequence[str]) -> int:
    return sum(len(text.encode(errors="replace")) // CHARACTERS_PER_TOKEN + 1 for text in texts)


def embedding_digest(texts: Sequence[str], model: Model, caller: Caller) -> bytes:
    """Return the cache key of an embedding call.

    It includes the model, because vectors from two models are not interchangeable.
    """
    key = [str(caller.owner_id), caller.generation, EMBED, str(model), list(texts)]
    return sha256(json.dumps(key).encode()).digest()


def pack(vectors: Sequence[Sequence[float]]) -> JSON:
    """Encode vectors as base64, which needs a third of the space of decimal numbers."""
    return [b64encode(array(FLOATS, vector).tobytes()).decode() for vector in vectors]


def unpack(stored: JSON) -> list[list[float]]:
    texts = TypeAdapter(list[str]).validate_python(stored)
    return [array(FLOATS, b64decode(text)).tolist() for text in texts]
