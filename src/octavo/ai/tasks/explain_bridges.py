"""Whether passages of two subjects illuminate each other, and how: some pairs in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from octavo.ai.calls import Part, Quoted, Words
from octavo.ai.tasks.task import Task, Unusable
from octavo.language.insights import Output, Share, Text, TwoPassages

MOST_PAIRS = 10
# What a passage is about stands well before its end.
MOST_CHARACTERS = 1200
TOKENS_A_PAIR = 80


class Bridge(Output):
    """`pair` is its place, from 0; `explanation` one sentence."""

    pair: Annotated[int, Field(ge=0)]
    is_bridge: bool
    strength: Share
    explanation: Text


class Bridges(Output):
    """One for each pair, in their order."""

    pairs: list[Bridge]


def show_pairs(pairs: Sequence[TwoPassages], characters: int) -> list[Part]:
    parts: list[Part] = []
    for place, pair in enumerate(pairs):
        parts += [
            Words(f"Pair {place}."),
            Quoted("first", pair.first[:characters]),
            Quoted("second", pair.second[:characters]),
        ]
    return parts


def all_answered(pairs: Sequence[TwoPassages], places: Sequence[int]) -> None:
    if list(places) != list(range(len(pairs))):
        raise Unusable(f"there must be exactly one entry for each of the {len(pairs)} pairs, in their order")


def check(pairs: Sequence[TwoPassages], answer: Bridges) -> Bridges:
    all_answered(pairs, [one.pair for one in answer.pairs])
    return answer


EXPLAIN_BRIDGES: Task[Sequence[TwoPassages], Bridges] = Task(
    name="explain_bridges",
    output=Bridges,
    show=lambda pairs: show_pairs(pairs, MOST_CHARACTERS),
    expect=lambda pairs: TOKENS_A_PAIR * len(pairs),
    output_tokens=4096,
    check=check,
    local=lambda _pairs: Bridges(pairs=[]),
)
