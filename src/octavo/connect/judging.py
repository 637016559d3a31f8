"""What models say about contradictions and bridges that rules found, within a limit for each document.

Without a model, and for what the limit leaves out, it stays as the rules have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeVar

from pydantic import BaseModel

from octavo.ai.contract import LOCAL, Answered, Caller
from octavo.ai.gateway import Gateway
from octavo.ai.tasks import EXPLAIN_BRIDGES, JUDGE_CONTRADICTIONS, Task
from octavo.ai.tasks.explain_bridges import MOST_PAIRS as BRIDGES_AT_ONCE
from octavo.ai.tasks.judge_contradictions import MOST_PAIRS as CONTRADICTIONS_AT_ONCE
from octavo.ai.tasks.judge_contradictions import Verdict
from octavo.connect.bridge import connect, explain_offline, explained
from octavo.connect.contract import Found, Pair, Status
from octavo.connect.evidence import Readings
from octavo.language.inputs import TwoPassages

MOST_CALLS = 200
MOST_USD = Decimal("0.20")
# Bridges that a model is asked about; the most promising ones.
MOST_BRIDGES = 400

Out = TypeVar("Out", bound=BaseModel)
Item = TypeVar("Item")


@dataclass(slots=True)
class Purse:
    """What one document may still cost. A call is not begun if one like the dearest so far would be too much."""

    calls: int = 0
    spent: Decimal = field(default_factory=Decimal)
    dearest: Decimal = field(default_factory=Decimal)

    @property
    def is_empty(self) -> bool:
        return self.calls >= MOST_CALLS or self.spent + self.dearest > MOST_USD

    def pay(self, answered: Answered[Out]) -> None:
        # An answer in the wrong form is asked for twice, and models that failed were asked too.
        self.calls += (answered.made_by != LOCAL) + len(answered.failed)
        self.spent += answered.cost_usd
        self.dearest = max(self.dearest, answered.cost_usd)


class Judge:
    def __init__(self, gateway: Gateway, caller: Caller, purse: Purse, readings: Readings) -> None:
        self._gateway = gateway
        self._caller = caller
        self._purse = purse
        self._readings = readings

    async def judge(self, contradictions: Sequence[Found]) -> list[Found]:
        """Confirmed by a model, or possible; what a model holds for compatible is dropped."""
        strongest = sorted(contradictions, key=lambda one: -one.strength)
        kept: list[Found] = []
        for batch in _batches(strongest, CONTRADICTIONS_AT_ONCE):
            answered = await self._ask(JUDGE_CONTRADICTIONS, [TwoPassages(*one.quotes) for one in batch])
            if answered is None or answered.made_by == LOCAL:
                kept += batch
                continue
            for one, said in zip(batch, answered.output.pairs, strict=True):
                if said.verdict is Verdict.CONTRADICTION:
                    why = said.explanation or one.explanation
                    kept.append(replace(one, status=Status.CONFIRMED, explanation=why, made_by=answered.made_by))
                elif said.verdict is Verdict.UNCLEAR:
                    kept.append(one)
        return kept

    async def explain(self, candidates: Sequence[tuple[Pair, float]]) -> list[Found]:
        """Those that a model holds for bridges; of those that none was asked about, the best."""
        kept: list[Found] = []
        unjudged: list[tuple[Pair, float]] = list(candidates[MOST_BRIDGES:])
        for batch in _batches(candidates[:MOST_BRIDGES], BRIDGES_AT_ONCE):
            shown = [TwoPassages(pair.source.content, pair.target.content) for pair, _ in batch]
            answered = await self._ask(EXPLAIN_BRIDGES, shown)
            if answered is None or answered.made_by == LOCAL:
                unjudged += batch
                continue
            kept += [
                explained(connect(pair, overlap, self._readings), said.explanation, said.strength, answered.made_by)
                for (pair, overlap), said in zip(batch, answered.output.pairs, strict=True)
                if said.is_bridge and said.explanation
            ]
        return kept + explain_offline(unjudged, self._readings)

    async def _ask(self, task: Task[Sequence[TwoPassages], Out], pairs: list[TwoPassages]) -> Answered[Out] | None:
        if self._purse.is_empty:
            return None
        answered = await self._gateway.ask(task, pairs, self._caller)
        self._purse.pay(answered)
        return answered


def _batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
