"""Billing of one model call: reserve budget, call the model, record the cost.

A call over budget is refused with a reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

import structlog

from octavo.ai.calls import Caller, CallerGone, FailedModel, ModelAnswer
from octavo.ai.faults import Fault, ProviderFault, TokenUsage
from octavo.ai.ledger import MAX_WAIT_SECONDS, CallRequest, Ledger, Reservation, Verdict
from octavo.ai.models import Model, Prices
from octavo.core.errors import OctavoError, OverBudget
from octavo.core.instruments import AI_CACHE_HITS, AI_CALLS, AI_COST, AI_TOKENS, BUDGET_REFUSALS, span
from octavo.core.types import JSON, new_id

log = structlog.get_logger()
# The interval between checks for the answer of an identical call that another worker has in flight.
POLL_SECONDS = 0.2
# A call is not started if less than this share of its time limit is left.
MIN_SHARE = 0.1
# How long a model with an exhausted quota is skipped if the provider does not report when to retry.
QUOTA_SECONDS = 60.0
ABANDONED = "abandoned"
SCOPES = {
    "document": ("for this document", "Raise the document's budget."),
    "owner": ("for this owner this month", "An administrator can raise the owner's budget."),
    "month": ("for all owners this month", "An administrator can raise the monthly budget."),
}

OutputT = TypeVar("OutputT")


class LocalOnly(Exception):
    """The caller may use only the `local` provider."""


@dataclass(frozen=True, slots=True)
class CallResult(Generic[OutputT]):
    """The result of a model call: the typed output, and the JSON that is stored so that the answer can be reused."""

    output: OutputT
    response: JSON
    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class BilledCall(Generic[OutputT]):
    """A model call that is to be billed, with its time limits.

    `seconds` limits one attempt. `deadline`, a `time.monotonic()` value, limits all attempts together. `files_seconds`
    is extra time for uploading files. `restore` converts a stored response back into the output.
    """

    purpose: str
    digest: bytes
    caller: Caller
    expected: TokenUsage
    seconds: float
    deadline: float
    restore: Callable[[JSON], OutputT]
    files_seconds: float = 0.0

    @property
    def seconds_left(self) -> float:
        return min(self.seconds, self.deadline - time.monotonic())

    @property
    def wait_left(self) -> float:
        """How long the call can wait for the rate limit, in seconds, without shortening its timeout."""
        return min(MAX_WAIT_SECONDS, max(0.0, self.deadline - time.monotonic() - self.seconds - self.files_seconds))


Send = Callable[[float], Awaitable[CallResult[OutputT]]]


class Billing:
    """Sends all model calls of this process: reserves budget before each call, and records its cost afterwards.

    The budgets and limits that all processes share are in the database.
    """

    def __init__(self, ledger: Ledger, prices: Prices) -> None:
        self._ledger = ledger
        self._prices = prices

    async def maintain(self) -> None:
        await self._ledger.maintain()

    async def reuse(self, call: BilledCall[OutputT]) -> ModelAnswer[OutputT] | None:
        """Return the stored answer to an identical request. Returns None if there is none. A reused answer is free."""
        stored = await self._ledger.reuse(call.digest, call.caller)
        if stored is None:
            return None
        log.info("cache used", purpose=call.purpose, job=str(call.caller.job_id))
        AI_CACHE_HITS.labels(call.purpose).inc()
        return ModelAnswer(call.restore(stored.response), str(Model(stored.provider, stored.model)), reused=True)

    async def call(
        self, call: BilledCall[OutputT], model: Model, send: Send[OutputT], failed: Sequence[FailedModel] = ()
    ) -> ModelAnswer[OutputT]:
        """Reserve budget, call a model once, and record the cost.

        `send` makes the call. It receives the remaining time in seconds and raises `ProviderFault` on failure.
        """
        price = self._prices.find(model)
        if price is None:
            raise ProviderFault(Fault.NO_PRICE)
        request = CallRequest(
            id=new_id(),
            digest=call.digest,
            caller=call.caller,
            purpose=call.purpose,
            model=model,
            estimate_usd=price.cost(call.expected),
            tokens=call.expected.input + call.expected.output,
            seconds=call.seconds + call.files_seconds,
            max_wait=call.wait_left,
            failed=failed,
        )
        while (reservation := await self._reserve(call, request)).verdict is not Verdict.GRANTED:
            if reservation.verdict is Verdict.ANSWERED and (reused := await self.reuse(call)):
                return reused
            await asyncio.sleep(POLL_SECONDS)
        started, is_sent = time.monotonic(), False
        try:
            await asyncio.sleep(reservation.seconds or 0)
            started, is_sent = time.monotonic(), True
            with span(f"model {model.provider}", {"octavo.purpose": call.purpose, "octavo.model": str(model)}):
                result = await send(call.seconds_left)
        except asyncio.CancelledError:
            if request.caller.job_id is None:  # a job's call is abandoned when its lease ends
                await asyncio.shield(self._abandon(request, time.monotonic() - started, is_sent=is_sent))
            raise
        except ProviderFault as fault:
            cost = None if fault.usage is None else price.cost(fault.usage)
            await self._record_fault(request, fault, cost, time.monotonic() - started)
            _count(request, fault.usage or TokenUsage(), cost, time.monotonic() - started, str(fault.fault))
            raise
        except OctavoError as error:  # before anything was sent, e.g. while reading a file
            await self._ledger.fail(request.id, error.code, TokenUsage(), Decimal(0), 0.0, trips_circuit=None)
            raise
        seconds, cost = time.monotonic() - started, price.cost(result.usage)
        await self._ledger.settle(request.id, result.usage, cost, seconds, result.response)
        _count(request, result.usage, cost, seconds, "ok")
        log.info("model answered", purpose=call.purpose, model=str(model), seconds=round(seconds, 2), cost=str(cost))
        return ModelAnswer(result.output, str(model), cost, failed=tuple(failed))

    async def _reserve(self, call: BilledCall[OutputT], request: CallRequest) -> Reservation:
        """Reserve budget for a call.

        The verdict of the returned reservation is GRANTED, ANSWERED (an identical request has been answered) or
        IN_FLIGHT (an identical request is running). All other verdicts raise an error.
        """
        if call.seconds_left < MIN_SHARE * call.seconds:
            raise ProviderFault(Fault.TIMED_OUT)
        reservation = await self._ledger.reserve(request)
        match reservation.verdict:
            case Verdict.GONE:
                raise CallerGone
            case Verdict.LOCAL_ONLY:
                raise LocalOnly
            case Verdict.OVER_BUDGET:
                BUDGET_REFUSALS.labels(reservation.scope or "month").inc()
                raise OverBudget(_explain(reservation, request.estimate_usd))
            case Verdict.CIRCUIT_OPEN:
                raise ProviderFault(Fault.CIRCUIT_OPEN, retry_after=reservation.seconds)
            case Verdict.HELD:
                raise ProviderFault(Fault.RATE_LIMITED, retry_after=reservation.seconds)
            case _:
                return reservation

    async def _abandon(self, request: CallRequest, seconds: float, *, is_sent: bool) -> None:
        """Close a cancelled call so that an identical request can start.

        If the call was sent, its estimated cost is billed.
        """
        cost = None if is_sent else Decimal(0)
        await self._ledger.fail(request.id, ABANDONED, TokenUsage(), cost, seconds, trips_circuit=None)

    async def _record_fault(
        self, request: CallRequest, fault: ProviderFault, cost: Decimal | None, seconds: float
    ) -> None:
        log.warning(
            "model failed", purpose=request.purpose, model=str(request.model), fault=fault.fault, status=fault.status
        )
        held = QUOTA_SECONDS if fault.fault is Fault.OUT_OF_QUOTA else 0.0
        await self._ledger.fail(
            request.id,
            fault.fault,
            fault.usage or TokenUsage(),
            cost,
            seconds,
            trips_circuit=fault.rule.trips_circuit,
            hold_seconds=held if fault.retry_after is None else fault.retry_after,
        )


def _count(request: CallRequest, usage: TokenUsage, cost: Decimal | None, seconds: float, result: str) -> None:
    """Update the metrics after a call. If the cost of the call is unknown, the estimated cost is counted."""
    provider = request.model.provider
    AI_CALLS.labels(provider, request.purpose, result).observe(seconds)
    AI_COST.labels(provider, request.purpose).inc(float(request.estimate_usd if cost is None else cost))
    AI_TOKENS.labels(provider, "read").inc(usage.input)
    AI_TOKENS.labels(provider, "written").inc(usage.output)


def _explain(reservation: Reservation, estimate: Decimal) -> str:
    scope, advice = SCOPES[reservation.scope or "month"]
    taken, limit = reservation.taken_usd or Decimal(0), reservation.limit_usd or Decimal(0)
    return f"{taken:.4f} of {limit:.2f} USD used {scope}; this call needs up to {estimate:.4f}. {advice}"
