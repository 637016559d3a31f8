"""The one way to models: asks those that the settings name, in their order, and keeps the cost within its limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial, reduce

from octavo.ai.billing import LocalOnly, Made, Question, Till
from octavo.ai.call_limits import CallRoom, room_of
from octavo.ai.calls import LOCAL, Answered, Caller, FailedModel, Request
from octavo.ai.faults import Fault, ProviderFault, Usage, worth_most
from octavo.ai.ledger import PATIENCE_SECONDS
from octavo.ai.models import Line, Model, read_model
from octavo.ai.providers import Embedder, Provider, Sight
from octavo.ai.providers.gemini_files import ACTIVE_SECONDS, FILE_SECONDS
from octavo.ai.tasks.task import In, Out, Task, Unusable
from octavo.ai.vectors import (
    EMBED,
    EMBED_SECONDS,
    MOST_TEXTS,
    Vectors,
    cut_windows,
    digest_of,
    estimate_tokens,
    pack,
    pool,
    unpack,
)
from octavo.core.errors import NoModel
from octavo.database import Database

# A question has twice the time of a call, for one that fails and one that answers, and what it may wait for its turn.
PARENT = 2
TEND_SECONDS = 10.0


class BadAnswer(ProviderFault):
    """An answer in the wrong form, and what is wrong with it."""

    def __init__(self, usage: Usage, answer: str, wrong: str) -> None:
        super().__init__(Fault.MALFORMED, usage)
        self.answer = answer
        self.wrong = wrong


@dataclass(frozen=True, slots=True)
class Outside:
    """Those who are asked over the network, what pays them, and what to close at the end."""

    providers: Mapping[str, Provider]
    till: Till
    close: Callable[[], Awaitable[None]]


class Gateway:
    """Everything that is asked of models goes through here. Without an outside, all of it is done by `local`."""

    def __init__(self, line: Line, outside: Outside | None = None) -> None:
        self._line = line
        self._outside = outside

    def room(self, task: str) -> CallRoom:
        """How much of a document one call for this task may hold."""
        return room_of(self._line.of(task))

    async def aclose(self) -> None:
        if self._outside:
            await self._outside.close()

    def sight(self, task: str) -> Sight | None:
        """What can be shown to whichever model of a task's line is asked; None where nobody outside is."""
        if self._outside is None:
            return None
        providers = self._outside.providers
        sights = [providers[model.provider].sight for model in self._line.of(task) if model.provider != LOCAL]
        return reduce(Sight.and_of, sights) if sights else None

    async def ask(self, task: Task[In, Out], given: In, caller: Caller) -> Answered[Out]:
        """Have a task of `octavo.ai.tasks` done, by the first model in line that can.

        The same question of the same owner is paid for once, also over kills and retries: ask again and again. What
        comes back has the form of the task's output, and says who made it: `local` where nothing left this machine.

        Raises an `OctavoError` of the class that a job should fail with: let it pass. Waits (`RateLimited`,
        `QuotaExhausted`, `ModelUnavailable`, `NetworkFailed`) carry `retry_after_seconds`; `OverBudget` pauses the job
        until there is money again; `TokenLimit` means that less has to be asked at once; `BadModelKey` is never
        hidden behind another model; `NoModel` means that nobody is set up who could do it.
        """
        request = task.request(given)
        question = Question(
            purpose=task.name,
            digest=request.digest(caller.owner_id, caller.generation),
            caller=caller,
            expected=Usage(request.input_tokens, request.expected_tokens),
            seconds=task.seconds,
            deadline=time.monotonic() + PATIENCE_SECONDS + PARENT * task.seconds + _files_seconds(request),
            restore=task.output.model_validate,
            files_seconds=_files_seconds(request),
        )
        if self._outside and (reused := await self._outside.till.reuse(question)):
            return reused
        faults: dict[Model, ProviderFault] = {}
        for model in self._line.of(task.name):
            try:
                if model.provider != LOCAL:
                    return await self._ask_outside(task, given, request, question, model, _names(faults))
            except LocalOnly:
                return await _ask_here(task, given, ())
            except ProviderFault as fault:
                faults[model] = fault
                if not fault.rule.falls_back:
                    raise fault.as_error(str(model)) from None
                continue
            if task.local:
                return await _ask_here(task, given, _names(faults))
        raise _give_up(faults)

    async def _ask_outside(
        self,
        task: Task[In, Out],
        given: In,
        request: Request,
        question: Question[Out],
        model: Model,
        failed: tuple[FailedModel, ...],
    ) -> Answered[Out]:
        """One model; an answer in the wrong form is asked for once more, with what was wrong."""
        outside = self._who_is_outside()
        provider = outside.providers[model.provider]
        question = replace(question, expected=replace(question.expected, read=request.tokens_for(model.provider)))

        async def send(asked: Request, seconds: float) -> Made[Out]:
            reply = await provider.generate(model.name, asked, question.caller.owner_id, seconds)
            try:
                output = task.read(reply.text, given)
            except Unusable as wrong:
                raise BadAnswer(reply.usage, reply.text, str(wrong)) from None
            return Made(output, output.model_dump(mode="json"), reply.usage)

        try:
            return await outside.till.buy(question, model, partial(send, request), failed)
        except BadAnswer as bad:
            repaired = request.repaired(bad.answer, bad.wrong)
            failed = (*failed, FailedModel(str(model), bad.fault))
        return await outside.till.buy(question, model, partial(send, repaired), failed)

    async def embed(self, texts: Sequence[str], caller: Caller, model: str | None = None) -> Answered[Vectors]:
        """A vector for each text, of the model of the settings or of the one named (`provider:model`, `local`).

        No other model stands in: vectors of two models cannot be compared. Texts of any length and number; each call
        has up to 100 windows and is paid for once, so those that come in the same groups again cost nothing.
        """
        chosen = read_model(model) if model else self._line.embedding
        if chosen.provider == LOCAL:
            return await _embed_here(texts)
        windows = [cut_windows(text) for text in texts]
        flat = [window for one in windows for window in one]
        parts: list[Answered[list[list[float]]]] = []
        for start in range(0, len(flat), MOST_TEXTS):
            try:
                parts.append(await self._embed_outside(flat[start : start + MOST_TEXTS], caller, chosen))
            except LocalOnly:
                return await _embed_here(texts)
            except ProviderFault as fault:
                raise fault.as_error(str(chosen)) from None
        rows = iter([vector for part in parts for vector in part.output])
        vectors = [pool([next(rows) for _ in one], [len(window) for window in one]) for one in windows]
        cost, reused = sum((part.cost_usd for part in parts), start=Decimal(0)), all(part.reused for part in parts)
        return Answered(Vectors(str(chosen), vectors), str(chosen), cost, reused=reused)

    async def _embed_outside(self, texts: Sequence[str], caller: Caller, model: Model) -> Answered[list[list[float]]]:
        outside = self._who_is_outside()
        provider = outside.providers.get(model.provider)
        if not isinstance(provider, Embedder):
            raise NoModel(f"{model.provider} makes no vectors.")

        async def send(seconds: float) -> Made[list[list[float]]]:
            embedded = await provider.embed(model.name, texts, seconds)
            if len(embedded.vectors) != len(texts):
                raise ProviderFault(Fault.MALFORMED, embedded.usage)
            return Made(embedded.vectors, pack(embedded.vectors), embedded.usage)

        question = Question(
            purpose=EMBED,
            digest=digest_of(texts, model, caller),
            caller=caller,
            expected=Usage(read=estimate_tokens(texts)),
            seconds=EMBED_SECONDS,
            deadline=time.monotonic() + PATIENCE_SECONDS + PARENT * EMBED_SECONDS,
            restore=unpack,
        )
        return await outside.till.reuse(question) or await outside.till.buy(question, model, send)

    async def tend(self, database: Database) -> float:
        """A chore of workers: see to calls that nobody waits for, and to jobs that wait for money."""
        del database
        if self._outside:
            await self._outside.till.tend()
        return TEND_SECONDS

    def _who_is_outside(self) -> Outside:
        if self._outside is None:
            raise NoModel
        return self._outside


async def _ask_here(task: Task[In, Out], given: In, failed: tuple[FailedModel, ...]) -> Answered[Out]:
    if task.local is None:
        raise NoModel(f"{task.name} cannot be done here.")
    return Answered(await asyncio.to_thread(task.local, given), LOCAL, failed=failed)


async def _embed_here(texts: Sequence[str]) -> Answered[Vectors]:
    from octavo.language import NAME, offline_embedder

    vectors = await asyncio.to_thread(lambda: offline_embedder().embed(texts).tolist())
    return Answered(Vectors(NAME, vectors), LOCAL)


def _names(faults: Mapping[Model, ProviderFault]) -> tuple[FailedModel, ...]:
    return tuple(FailedModel(str(model), fault.fault) for model, fault in faults.items())


def _give_up(faults: Mapping[Model, ProviderFault]) -> Exception:
    if not faults:
        return NoModel()
    worst = worth_most(faults.values())
    return worst.as_error(next(str(model) for model, fault in faults.items() if fault is worst))


def _files_seconds(request: Request) -> float:
    return FILE_SECONDS + ACTIVE_SECONDS if request.has_files else 0.0
