"""Lets configured models judge contradictions and bridges, within a budget per document.

Without a model, or when the budget is used up, contradictions are kept with the status "possible". Bridges and opposite
tones are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeVar
from uuid import UUID

from pydantic import BaseModel

from octavo.ai.calls import LOCAL, Caller, ModelAnswer
from octavo.ai.estimates import MOST_FOR_CONNECTIONS
from octavo.ai.gateway import Gateway
from octavo.ai.tasks import EXPLAIN_BRIDGES, JUDGE_CONTRADICTIONS, Task
from octavo.ai.tasks.judge_pairs import BRIDGES_PER_CALL, CONTRADICTIONS_PER_CALL, Judgement, Verdict
from octavo.connect.bridge import Candidate, best_first, connect
from octavo.connect.evidence import DetectedConnection, SentenceCache
from octavo.language.insights import TextPair
from octavo.records.search import Status

MOST_CALLS = 200
# Only the most promising pairs that share a concept in opposite tones are sent to a model.
MOST_OPPOSITE_TONES = 100
# Only the most promising bridges are sent to a model.
MOST_BRIDGES = 400

Out = TypeVar("Out", bound=BaseModel)
Item = TypeVar("Item")


@dataclass(slots=True)
class JudgeBudget:
    """Limits the number and the cost of model calls for one document.

    No call starts if the remaining budget is less than the cost of the most expensive call so far.
    """

    calls: int = 0
    spent: Decimal = field(default_factory=Decimal)
    highest_cost: Decimal = field(default_factory=Decimal)

    @property
    def is_exhausted(self) -> bool:
        return self.calls >= MOST_CALLS or self.spent + self.highest_cost > MOST_FOR_CONNECTIONS

    def record(self, answered: ModelAnswer[Out]) -> None:
        # Calls to models that failed count too.
        self.calls += (answered.made_by != LOCAL) + len(answered.failed)
        self.spent += answered.cost_usd
        self.highest_cost = max(self.highest_cost, answered.cost_usd)


class ModelJudge:
    def __init__(self, gateway: Gateway, caller: Caller, budget: JudgeBudget, sentences: SentenceCache) -> None:
        self._gateway = gateway
        self._caller = caller
        self._budget = budget
        self._sentences = sentences

    async def judge(self, contradictions: Sequence[DetectedConnection]) -> list[DetectedConnection]:
        """Let a model judge contradictions.

        Pairs that the model finds compatible are dropped, and all others are kept.
        """
        return [
            one for one, verdict in await self._judge_strongest(contradictions) if verdict is not Verdict.COMPATIBLE
        ]

    async def confirm(self, candidates: Sequence[DetectedConnection]) -> list[DetectedConnection]:
        """Return only the contradictions that a model confirms. Without a model, the result is empty.

        Only the strongest candidates are sent to the model.
        """
        strongest = sorted(candidates, key=_strongest_first)[:MOST_OPPOSITE_TONES]
        return [one for one, verdict in await self._judge_strongest(strongest) if verdict is Verdict.CONTRADICTION]

    async def _judge_strongest(
        self, contradictions: Sequence[DetectedConnection]
    ) -> list[tuple[DetectedConnection, Verdict | None]]:
        """Let a model judge contradictions, strongest first.

        The verdict is None for pairs that no model judged, for example because the budget ran out.
        """
        judged: list[tuple[DetectedConnection, Verdict | None]] = []
        for batch in _batches(sorted(contradictions, key=_strongest_first), CONTRADICTIONS_PER_CALL):
            answered = await self._call(JUDGE_CONTRADICTIONS, [TextPair(*one.quotes) for one in batch])
            if answered is None or answered.made_by == LOCAL:
                judged += [(one, None) for one in batch]
                continue
            judged += [
                (_with_verdict(one, judgement, answered.made_by), judgement.verdict)
                for one, judgement in zip(batch, answered.output.pairs, strict=True)
            ]
        return judged

    async def explain(self, candidates: Sequence[Candidate]) -> list[DetectedConnection]:
        """Return the bridges that a model confirms, with its explanations. Without a model, the result is empty.

        The most promising candidates are sent first, because the budget may run out before the last one.
        """
        kept: list[DetectedConnection] = []
        for batch in _batches(best_first(candidates)[:MOST_BRIDGES], BRIDGES_PER_CALL):
            pairs = [TextPair(pair.source.content, pair.target.content) for pair, _ in batch]
            answered = await self._call(EXPLAIN_BRIDGES, pairs)
            if answered is None or answered.made_by == LOCAL:
                continue
            kept += [
                connect(candidate, self._sentences, answer.explanation, answer.strength, answered.made_by)
                for candidate, answer in zip(batch, answered.output.pairs, strict=True)
                if answer.is_bridge and answer.explanation
            ]
        return kept

    async def _call(self, task: Task[Sequence[TextPair], Out], pairs: list[TextPair]) -> ModelAnswer[Out] | None:
        if self._budget.is_exhausted:
            return None
        answered = await self._gateway.ask(task, pairs, self._caller)
        self._budget.record(answered)
        return answered


def _with_verdict(one: DetectedConnection, judgement: Judgement, made_by: str) -> DetectedConnection:
    if judgement.verdict is not Verdict.CONTRADICTION:
        return one
    why = judgement.explanation or one.explanation
    return replace(one, status=Status.CONFIRMED, explanation=why, made_by=made_by)


def _strongest_first(one: DetectedConnection) -> tuple[float, UUID, UUID]:
    return -one.strength, one.pair.source.id, one.pair.target.id


def _batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
