"""Pays for one call: money aside, ask, settle. Or says why nothing is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

import structlog

from octavo.ai.calls import Answered, Caller, CallerGone, FailedModel
from octavo.ai.faults import Fault, ProviderFault, Usage
from octavo.ai.ledger import PATIENCE_SECONDS, Ledger, Reservation, Verdict, Wanted
from octavo.ai.models import Model
from octavo.ai.prices import Prices
from octavo.core.errors import OctavoError, OverBudget
from octavo.core.ids import new_id
from octavo.core.types import JSON

log = structlog.get_logger()
# Somebody else asks the same; how often to look whether there is an answer.
LOOK_SECONDS = 0.2
# The share of a call's time for which it is not worth beginning it.
LEAST_SHARE = 0.1
# How long a model whose quota is used up is left alone, where its provider does not say it.
QUOTA_SECONDS = 60.0
ABANDONED = "abandoned"
SCOPES = {
    "document": ("for this document", "Raise its budget."),
    "owner": ("for this owner this month", "An administrator can raise the budget of owners."),
    "month": ("for all owners this month", "An administrator can raise the budget of a month."),
}

Thing = TypeVar("Thing")


class LocalOnly(Exception):
    """Whoever asks may use nothing that leaves this machine."""


@dataclass(frozen=True, slots=True)
class Made(Generic[Thing]):
    """What a call gave, and the same in the form in which it is kept."""

    output: Thing
    response: JSON
    usage: Usage


@dataclass(frozen=True, slots=True)
class Question(Generic[Thing]):
    """What is asked, whoever is asked. `seconds` are for one call, `deadline` is for all of them (`time.monotonic`).

    `files_seconds`: what preparing files may take besides.
    """

    purpose: str
    digest: bytes
    caller: Caller
    expected: Usage
    seconds: float
    deadline: float
    restore: Callable[[JSON], Thing]
    files_seconds: float = 0.0

    @property
    def seconds_left(self) -> float:
        return min(self.seconds, self.deadline - time.monotonic())

    @property
    def patience_left(self) -> float:
        """What may pass before a call is sent, so that it still has all of its time."""
        return min(PATIENCE_SECONDS, max(0.0, self.deadline - time.monotonic() - self.seconds - self.files_seconds))


Send = Callable[[float], Awaitable[Made[Thing]]]


class Till:
    """One for all calls of a process; what must hold for all processes is in the database."""

    def __init__(self, ledger: Ledger, prices: Prices) -> None:
        self._ledger = ledger
        self._prices = prices

    async def tend(self) -> None:
        await self._ledger.tend()

    async def reuse(self, question: Question[Thing]) -> Answered[Thing] | None:
        """An answer that was paid for before."""
        stored = await self._ledger.reuse(question.digest, question.caller)
        if stored is None:
            return None
        log.info("cache used", purpose=question.purpose, job=str(question.caller.job_id))
        return Answered(question.restore(stored.response), str(Model(stored.provider, stored.model)), reused=True)

    async def buy(
        self, question: Question[Thing], model: Model, send: Send[Thing], failed: Sequence[FailedModel] = ()
    ) -> Answered[Thing]:
        """Ask one model once. `send` gets the seconds that it has; what comes to nothing is a `ProviderFault`."""
        price = self._prices.find(model.provider, model.name)
        wanted = Wanted(
            id=new_id(),
            digest=question.digest,
            caller=question.caller,
            purpose=question.purpose,
            model=model,
            estimate_usd=price.cost(question.expected),
            tokens=question.expected.read + question.expected.written,
            seconds=question.seconds + question.files_seconds,
            patience=question.patience_left,
            failed=failed,
        )
        while (reservation := await self._reserve(question, wanted)).verdict is not Verdict.GRANTED:
            if reservation.verdict is Verdict.ANSWERED and (reused := await self.reuse(question)):
                return reused
            await asyncio.sleep(LOOK_SECONDS)
        started, is_sent = time.monotonic(), False
        try:
            await asyncio.sleep(reservation.seconds or 0)
            started, is_sent = time.monotonic(), True
            made = await send(question.seconds_left)
        except asyncio.CancelledError:
            if wanted.caller.job_id is None:  # a job's lease tells that nobody waits any more
                await asyncio.shield(self._abandon(wanted, time.monotonic() - started, is_sent=is_sent))
            raise
        except ProviderFault as fault:
            cost = None if fault.usage is None else price.cost(fault.usage)
            await self._note_fault(wanted, fault, cost, time.monotonic() - started)
            raise
        except OctavoError as error:  # before anything was sent: of reading a file, for instance
            await self._ledger.fail(wanted.id, error.code, Usage(), Decimal(0), 0.0, hurts=None)
            raise
        seconds, cost = time.monotonic() - started, price.cost(made.usage)
        await self._ledger.settle(wanted.id, made.usage, cost, seconds, made.response)
        log.info(
            "model answered", purpose=question.purpose, model=str(model), seconds=round(seconds, 2), cost=str(cost)
        )
        return Answered(made.output, str(model), cost, failed=tuple(failed))

    async def _reserve(self, question: Question[Thing], wanted: Wanted) -> Reservation:
        """Granted, or one of the two that are worth another look."""
        if question.seconds_left < LEAST_SHARE * question.seconds:
            raise ProviderFault(Fault.TIMED_OUT)
        reservation = await self._ledger.reserve(wanted)
        match reservation.verdict:
            case Verdict.GONE:
                raise CallerGone
            case Verdict.LOCAL_ONLY:
                raise LocalOnly
            case Verdict.OVER_BUDGET:
                raise OverBudget(_explain(reservation, wanted.estimate_usd))
            case Verdict.CIRCUIT_OPEN:
                raise ProviderFault(Fault.CIRCUIT_OPEN, retry_after=reservation.seconds)
            case Verdict.HELD:
                raise ProviderFault(Fault.RATE_LIMITED, retry_after=reservation.seconds)
            case _:
                return reservation

    async def _abandon(self, wanted: Wanted, seconds: float, *, is_sent: bool) -> None:
        """Who asked has left: what was sent counts at its estimate, and the same may be asked anew at once."""
        cost = None if is_sent else Decimal(0)
        await self._ledger.fail(wanted.id, ABANDONED, Usage(), cost, seconds, hurts=None)

    async def _note_fault(self, wanted: Wanted, fault: ProviderFault, cost: Decimal | None, seconds: float) -> None:
        log.warning(
            "model failed", purpose=wanted.purpose, model=str(wanted.model), fault=fault.fault, status=fault.status
        )
        held = QUOTA_SECONDS if fault.fault is Fault.OUT_OF_QUOTA else 0.0
        await self._ledger.fail(
            wanted.id,
            fault.fault,
            fault.usage or Usage(),
            cost,
            seconds,
            hurts=fault.rule.hurts,
            hold_seconds=held if fault.retry_after is None else fault.retry_after,
        )


def _explain(reservation: Reservation, estimate: Decimal) -> str:
    what, advice = SCOPES[reservation.scope or "month"]
    taken, limit = reservation.taken_usd or Decimal(0), reservation.limit_usd or Decimal(0)
    return f"{taken:.4f} of {limit:.2f} USD are spent {what}, and this may take {estimate:.4f}. {advice}"
