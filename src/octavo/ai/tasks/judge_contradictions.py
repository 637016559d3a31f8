"""Whether two statements can both be true: some pairs in one call."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from octavo.ai.tasks.explain_bridges import all_answered, show_pairs
from octavo.ai.tasks.task import Task
from octavo.language.insights import Output, Text, TwoPassages

MOST_PAIRS = 20
MOST_CHARACTERS = 700
TOKENS_A_PAIR = 60


class Verdict(StrEnum):
    CONTRADICTION = "contradiction"
    COMPATIBLE = "compatible"
    UNCLEAR = "unclear"


class Judgement(Output):
    """`pair` is its place, from 0; `explanation` one sentence."""

    pair: Annotated[int, Field(ge=0)]
    verdict: Verdict
    explanation: Text


class Judgements(Output):
    """One for each pair, in their order."""

    pairs: list[Judgement]


def check(pairs: Sequence[TwoPassages], answer: Judgements) -> Judgements:
    all_answered(pairs, [one.pair for one in answer.pairs])
    return answer


JUDGE_CONTRADICTIONS: Task[Sequence[TwoPassages], Judgements] = Task(
    name="judge_contradictions",
    output=Judgements,
    show=lambda pairs: show_pairs(pairs, MOST_CHARACTERS),
    expect=lambda pairs: TOKENS_A_PAIR * len(pairs),
    output_tokens=4096,
    check=check,
    local=lambda _pairs: Judgements(pairs=[]),
)
