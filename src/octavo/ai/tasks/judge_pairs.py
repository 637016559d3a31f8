"""Model tasks for pairs of texts. Each call handles several pairs.

The first task decides whether two chunks on different subjects share an idea, and explains that idea. The second
decides whether two statements can both be true.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from octavo.ai.calls import InstructionText, Part, QuotedText
from octavo.ai.tasks.task import Task, UnusableAnswer
from octavo.language.insights import Output, Share, Text, TextPair

BRIDGES_PER_CALL, CONTRADICTIONS_PER_CALL = 10, 20
# The beginning of a chunk is enough to recognise its subject.
BRIDGE_CHARACTERS, STATEMENT_CHARACTERS = 1200, 700
TOKENS_PER_BRIDGE, TOKENS_PER_CONTRADICTION = 80, 60


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


# Shared ideas -------------------------------------------------------------------------------------------------------


class Bridge(Output):
    """The verdict on one pair of chunks. `pair` is the index of the pair, and `explanation` is one sentence."""

    pair: Annotated[int, Field(ge=0)]
    is_bridge: bool
    strength: Share
    explanation: Text


class Bridges(Output):
    """One verdict for each pair of chunks, in order."""

    pairs: list[Bridge]


def check_bridges(pairs: Sequence[TextPair], answer: Bridges) -> Bridges:
    check_all_answered(pairs, [one.pair for one in answer.pairs])
    return answer


EXPLAIN_BRIDGES: Task[Sequence[TextPair], Bridges] = Task(
    name="explain_bridges",
    output=Bridges,
    build_parts=lambda pairs: build_pair_parts(pairs, BRIDGE_CHARACTERS),
    estimate_tokens=lambda pairs: TOKENS_PER_BRIDGE * len(pairs),
    output_tokens=4096,
    check=check_bridges,
    offline=lambda _pairs: Bridges(pairs=[]),
)


# Contradictions -----------------------------------------------------------------------------------------------------


class Verdict(StrEnum):
    CONTRADICTION = "contradiction"
    COMPATIBLE = "compatible"
    UNCLEAR = "unclear"


class Judgement(Output):
    """The verdict on one pair of statements. `pair` is the index of the pair, and `explanation` is one sentence."""

    pair: Annotated[int, Field(ge=0)]
    verdict: Verdict
    explanation: Text


class Judgements(Output):
    """One verdict for each pair of statements, in order."""

    pairs: list[Judgement]


def check_judgements(pairs: Sequence[TextPair], answer: Judgements) -> Judgements:
    check_all_answered(pairs, [one.pair for one in answer.pairs])
    return answer


JUDGE_CONTRADICTIONS: Task[Sequence[TextPair], Judgements] = Task(
    name="judge_contradictions",
    output=Judgements,
    build_parts=lambda pairs: build_pair_parts(pairs, STATEMENT_CHARACTERS),
    estimate_tokens=lambda pairs: TOKENS_PER_CONTRADICTION * len(pairs),
    output_tokens=4096,
    check=check_judgements,
    offline=lambda _pairs: Judgements(pairs=[]),
)
