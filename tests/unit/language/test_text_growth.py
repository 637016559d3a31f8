"""Four times the text takes about four times as long, however odd the text is and however it is divided."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from octavo.language import answer, describe
from octavo.language.insights import ChunkText, DocumentSource
from tests.support.growth import grows_at_most

# They compare processor times, which a busy machine distorts, so they are long forms.
pytestmark = pytest.mark.long

SIZE = 4_000
# Linear is 4, quadratic 16; the machine may be busy, so the best of several runs counts.
MOST = 9

ODD = {
    "prose": "The old bridge over the river was closed by the council. ",
    "other words": "Zorble {n} quixed the flarn{n} of Nib{n}. ",
    "one sentence": "the good bridge and the bad river but ",
    "closing marks": 'a." ',
    "joined marks": 'a."',
    "exclamations": "?!",
    "empty lines": "\n\n",
    "headings": "# a\n",
    "items": "- a\n",
    "cells": "|a|b|\n",
    "fences": "```\n",
    "brackets": "[",
    "links": "](",
    "tags": "<a ",
    "addresses": "a@b.",
    "dollars": "$a ",
    "stars": "*",
    "spaces": " ",
    "a word": "a",
    "capitals": "By Anna Bert Carl ",
    "dates": "1 May 2020 ",
    "digits": "1",
    "dots": "1.1.",
    "ideographs": "東京。",
    "no words": "=-",
}


def is_linear(small: Sequence[ChunkText], large: Sequence[ChunkText]) -> bool:
    return grows_at_most(MOST, lambda: work(small), lambda: work(large), least=0.004)


def work(passages: Sequence[ChunkText]) -> None:
    describe(DocumentSource(passages, kind="pdf"))
    answer("When was the old bridge of 東京 closed?", passages)


def text_of(part: str, size: int) -> str:
    return "".join(part.replace("{n}", str(n)) for n in range(size // len(part)))


@pytest.mark.parametrize("part", ODD.values(), ids=ODD.keys())
def test_one_passage(part: str) -> None:
    small, large = ([ChunkText(text_of(part, size))] for size in (SIZE, 4 * SIZE))
    assert is_linear(small, large)


@pytest.mark.parametrize("part", [ODD["prose"], ODD["other words"]], ids=["prose", "other words"])
def test_many_passages(part: str) -> None:
    text = text_of(part, 32 * SIZE)
    passages = [ChunkText(text[start : start + 1000], ("A", "B")) for start in range(0, len(text), 1000)]
    assert is_linear(passages[: len(passages) // 4], passages)
