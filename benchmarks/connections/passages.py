"""Pairs of longer passages, written for this: half contradict each other, half only look as if they did.

A topic has a passage, the frame of a second one, and four sentences of which each completes it: `+` contradicts the
first passage, `-` does not. Topics take turns: rules were tuned with the even ones, the odd ones are what is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILES = sorted(Path(__file__).parent.glob("passages_*.txt"))


@dataclass(frozen=True, slots=True)
class WrittenPair:
    topic: str
    kind: str
    contradicts: bool
    first: str
    second: str
    tuned: bool


def written_pairs() -> Iterator[WrittenPair]:
    blocks = [block for file in FILES for block in file.read_text().split("# ") if block.strip()]
    for number, block in enumerate(blocks):
        topic, *lines = block.strip().splitlines()
        texts = {line[0]: line[2:] for line in lines if line[0] in "ab"}
        opening, _, closing = texts["b"].partition(". ")
        for line in lines:
            if line[0] in "+-":
                kind, _, sentence = line[2:].partition(" ")
                second = f"{opening}. {sentence} {closing}"
                yield WrittenPair(topic, kind, line[0] == "+", texts["a"], second, tuned=number % 2 == 0)
