"""Model task: decide whether two statements can both be true. Each call handles several pairs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from octavo.ai.tasks.explain_bridges import build_pair_parts, check_all_answered
from octavo.ai.tasks.task import Task
from octavo.language.insights import Output, Text, TextPair

MAX_PAIRS = 20
MAX_CHARACTERS = 700
TOKENS_PER_PAIR = 60


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


def check(pairs: Sequence[TextPair], answer: Judgements) -> Judgements:
    check_all_answered(pairs, [one.pair for one in answer.pairs])
    return answer


JUDGE_CONTRADICTIONS: Task[Sequence[TextPair], Judgements] = Task(
    name="judge_contradictions",
    output=Judgements,
    build_parts=lambda pairs: build_pair_parts(pairs, MAX_CHARACTERS),
    estimate_tokens=lambda pairs: TOKENS_PER_PAIR * len(pairs),
    output_tokens=4096,
    check=check,
    offline=lambda _pairs: Judgements(pairs=[]),
)
