"""Model task: decide whether two chunks on different subjects share an idea, and explain that idea.

Each call handles several pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from octavo.ai.calls import InstructionText, Part, QuotedText
from octavo.ai.tasks.task import Task, UnusableAnswer
from octavo.language.insights import Output, Share, Text, TextPair

MAX_PAIRS = 10
# The beginning of a chunk is enough to recognise its subject.
MAX_CHARACTERS = 1200
TOKENS_PER_PAIR = 80


class Bridge(Output):
    """The verdict on one pair of chunks. `pair` is the index of the pair, and `explanation` is one sentence."""

    pair: Annotated[int, Field(ge=0)]
    is_bridge: bool
    strength: Share
    explanation: Text


class Bridges(Output):
    """One verdict for each pair of chunks, in order."""

    pairs: list[Bridge]


def build_pair_parts(pairs: Sequence[TextPair], characters: int) -> list[Part]:
    parts: list[Part] = []
    for place, pair in enumerate(pairs):
        parts += [
            InstructionText(f"Pair {place}."),
            QuotedText("first", pair.first[:characters]),
            QuotedText("second", pair.second[:characters]),
        ]
    return parts


def check_all_answered(pairs: Sequence[TextPair], places: Sequence[int]) -> None:
    if list(places) != list(range(len(pairs))):
        raise UnusableAnswer(f"there must be exactly one entry for each of the {len(pairs)} pairs, in their order")


def check(pairs: Sequence[TextPair], answer: Bridges) -> Bridges:
    check_all_answered(pairs, [one.pair for one in answer.pairs])
    return answer


EXPLAIN_BRIDGES: Task[Sequence[TextPair], Bridges] = Task(
    name="explain_bridges",
    output=Bridges,
    build_parts=lambda pairs: build_pair_parts(pairs, MAX_CHARACTERS),
    estimate_tokens=lambda pairs: TOKENS_PER_PAIR * len(pairs),
    output_tokens=4096,
    check=check,
    offline=lambda _pairs: Bridges(pairs=[]),
)
