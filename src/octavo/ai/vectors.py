"""Vectors of texts: cut into windows where a text is too long for a model, and kept small in the ledger."""

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
from octavo.ai.providers.provider import of_length_one
from octavo.core.types import JSON

EMBED = "embed"
EMBED_SECONDS = 30.0
# Texts in one call.
MOST_TEXTS = 100
# The smallest window among the models is 2,048 tokens.
WINDOW_CHARACTERS = 6000
CHARACTERS_A_TOKEN = 3
# As numbers of four bytes.
FLOATS = "f"


@dataclass(frozen=True, slots=True)
class Vectors:
    """One of length 1 for each text. Only those of the same `model` can be compared; that of `local` has a name too."""

    model: str
    vectors: list[list[float]]


def cut_windows(text: str, characters: int = WINDOW_CHARACTERS) -> list[str]:
    """At the ends of words, where there are any; the last sentence counts like the first."""
    windows: list[str] = []
    while len(text) > characters:
        end = text.rfind(" ", characters // 2, characters) + 1 or characters
        windows.append(text[:end])
        text = text[end:]
    return [*windows, text]


def pool(vectors: Sequence[Sequence[float]], weights: Sequence[int]) -> list[float]:
    """The mean, in which a longer window counts for more."""
    if len(vectors) == 1:
        return list(vectors[0])
    total = sum(weights)
    rows = zip(*vectors, strict=True)
    return of_length_one([sum(one * part for one, part in zip(row, weights, strict=True)) / total for row in rows])


def estimate_tokens(texts: Sequence[str]) -> int:
    return sum(len(text.encode(errors="replace")) // CHARACTERS_A_TOKEN + 1 for text in texts)


def digest_of(texts: Sequence[str], model: Model, caller: Caller) -> bytes:
    """The model is part of the question: another one's vectors would be no answer to it."""
    said = [str(caller.owner_id), caller.generation, EMBED, str(model), list(texts)]
    return sha256(json.dumps(said).encode()).digest()


def pack(vectors: Sequence[Sequence[float]]) -> JSON:
    """A third of what the numbers would take as text."""
    return [b64encode(array(FLOATS, vector).tobytes()).decode() for vector in vectors]


def unpack(stored: JSON) -> list[list[float]]:
    texts = TypeAdapter(list[str]).validate_python(stored)
    return [array(FLOATS, b64decode(text)).tolist() for text in texts]
