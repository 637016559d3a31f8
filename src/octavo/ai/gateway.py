"""The gateway for all model calls. It tries the configured models in order and enforces the budgets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial, reduce
from typing import Any

from octavo.ai.billing import BilledCall, Billing, CallResult, LocalOnly
from octavo.ai.calls import AS_CONFIGURED, LOCAL, Caller, FailedModel, ModelAnswer, ModelRequest, OfflineUse
from octavo.ai.faults import AWAY, Fault, ProviderFault, TokenUsage, most_recoverable
from octavo.ai.ledger import MAX_WAIT_SECONDS
from octavo.ai.models import CallLimits, Model, ModelChain, parse_model, shared_limits
from octavo.ai.providers import Embedder, OnText, Provider, VisionLimits
from octavo.ai.providers.gemini import ACTIVE_SECONDS, FILE_SECONDS
from octavo.ai.tasks.task import In, Out, Task, UnusableAnswer
from octavo.ai.vectors import (
    EMBED,
    EMBED_SECONDS,
    MAX_TEXTS,
    Vectors,
    cut_windows,
    embedding_digest,
    estimate_tokens,
    pack,
    pool,
    unpack,
)
from octavo.core.errors import NoModel, OctavoError, TokenLimit
from octavo.database import Database

# A task has time for two calls, one that fails and one that succeeds, plus the wait for a rate limit.
CALLS_PER_DEADLINE = 2
MAINTENANCE_SECONDS = 10.0


class MalformedAnswer(ProviderFault):
    """Raised when a model's answer fails validation. Contains the reason."""

    def __init__(self, usage: TokenUsage, answer: str, reason: str) -> None:
        super().__init__(Fault.MALFORMED, usage)
        self.answer = answer
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RemoteModels:
    """The providers that are called over the network, the billing of their calls, and a function that closes all
    network connections.
    """

    providers: Mapping[str, Provider]
    billing: Billing
    close: Callable[[], Awaitable[None]]


class Gateway:
    """Runs tasks with models. If `remote` is None, the `local` provider runs all tasks."""

    def __init__(
        self, chain: ModelChain, remote: RemoteModels | None = None, *, compatible_context: int | None = None
    ) -> None:
        self._chain = chain
        self._remote = remote
        self._compatible_context = compatible_context

    def call_limits(self, task: str) -> CallLimits:
        """Return the maximum amount of content in one call for this task."""
        return shared_limits(self._chain.of(task), self._compatible_context)

    async def aclose(self) -> None:
        if self._remote:
            await self._remote.close()

    @property
    def has_offline_models(self) -> bool:
        """Whether `local` is one of the default models."""
        return any(model.provider == LOCAL for model in self._chain.default)

    @property
    def is_offline(self) -> bool:
        """Whether no provider is set up, so that every answer is made on this machine."""
        return self._remote is None

    def vision_limits(self, task: str) -> VisionLimits | None:
        """Return the limits on pictures and PDFs that every remote model of a task accepts.

        Returns None if the task has no remote model.
        """
        if self._remote is None:
            return None
        providers = self._remote.providers
        limits = [providers[model.provider].vision_limits for model in self._chain.of(task) if model.provider != LOCAL]
        return reduce(VisionLimits.intersect, limits) if limits else None

    async def ask(
        self,
        task: Task[In, Out],
        given: In,
        caller: Caller,
        offline: OfflineUse = AS_CONFIGURED,
        on_text: OnText | None = None,
    ) -> ModelAnswer[Out]:
        """Run a task with the first configured model that can do it.

        While a model writes, `on_text` is called with its unchecked answer so far. If another call is needed, for
        example because the answer is invalid, the text starts again from the beginning.

        Calling again is safe: an account pays for identical requests only once, even if the process is killed in
        between. `made_by` in the answer is the model that answered, or `local` if no data left this machine.

        Raises the `OctavoError` that a job should fail with. Do not catch it. Temporary errors (`RateLimited`,
        `QuotaExhausted`, `ModelUnavailable`, `NetworkFailed`) have `retry_after_seconds`. `OverBudget` pauses the job
        until the budget allows the call. `TokenLimit` means that the request must be smaller. `BadModelKey` never falls
        back to another model. `NoModel` means that no configured model can do the task.
        """
        request = task.request(given)
        call = BilledCall(
            purpose=task.name,
            digest=request.digest(caller.owner_id, caller.generation),
            caller=caller,
            expected=TokenUsage(request.input_tokens, request.expected_tokens),
            seconds=task.seconds,
            deadline=time.monotonic() + MAX_WAIT_SECONDS + CALLS_PER_DEADLINE * task.seconds + _files_seconds(request),
            restore=task.output.model_validate,
            files_seconds=_files_seconds(request),
        )
        if self._remote and (reused := await self._remote.billing.reuse(call)):
            return reused
        faults: dict[Model, ProviderFault] = {}
        for model in self._models(task, offline):
            try:
                if model.provider != LOCAL:
                    return await self._ask_remote(task, given, request, call, model, _failed_models(faults), on_text)
            except LocalOnly:
                return await _ask_offline(task, given, ())
            except ProviderFault as fault:
                faults[model] = fault
                if not fault.rule.falls_back:
                    raise fault.as_error(str(model)) from None
                continue
            if faults and offline.decide and not offline.decide(error := _error_of_call(faults)):
                raise error
            if task.offline:
                return await _ask_offline(task, given, _failed_models(faults))
        if offline.if_away and task.offline and _is_away(faults):
            return await _ask_offline(task, given, _failed_models(faults))
        raise _error_of_call(faults) if offline.decide else _final_error(faults)

    def _models(self, task: Task[In, Out], offline: OfflineUse) -> Sequence[Model]:
        models = self._chain.of(task.name)
        remote = [model for model in models if model.provider != LOCAL]
        if remote and not offline.if_configured:
            return remote
        return _local_last(models) if offline.decide else models

    async def _ask_remote(
        self,
        task: Task[In, Out],
        given: In,
        request: ModelRequest,
        call: BilledCall[Out],
        model: Model,
        failed: tuple[FailedModel, ...],
        on_text: OnText | None,
    ) -> ModelAnswer[Out]:
        """Call one model. If its answer is invalid, call it once more with the reason for the rejection."""
        remote = self._require_remote()
        provider = remote.providers[model.provider]
        call = replace(call, expected=replace(call.expected, input=request.tokens_for(model.provider)))

        async def send(attempt: ModelRequest, seconds: float) -> CallResult[Out]:
            reply = await provider.generate(model.name, attempt, call.caller.owner_id, seconds, on_text)
            try:
                output = task.read(reply.text, given)
            except UnusableAnswer as reason:
                raise MalformedAnswer(reply.usage, reply.text, str(reason)) from None
            return CallResult(output, output.model_dump(mode="json"), reply.usage)

        try:
            return await remote.billing.call(call, model, partial(send, request), failed)
        except MalformedAnswer as bad:
            repaired = request.with_correction(bad.answer, bad.reason)
            failed = (*failed, FailedModel(str(model), bad.fault))
        return await remote.billing.call(call, model, partial(send, repaired), failed)

    async def embed(self, texts: Sequence[str], caller: Caller, model: str | None = None) -> ModelAnswer[Vectors]:
        """Embed any number of texts of any length.

        `model` is `provider:model` or `local`. The default is the configured embedding model. If the model fails, no
        other model is tried, because vectors from two models cannot be compared. Long texts are split into windows, and
        each call embeds up to 100 windows. Embedding the same texts again costs nothing.
        """
        chosen = parse_model(model) if model else self._chain.embedding
        if chosen.provider == LOCAL:
            return await _embed_offline(texts)
        windows = [cut_windows(text) for text in texts]
        flat = [window for one in windows for window in one]
        parts: list[ModelAnswer[list[list[float]]]] = []
        for start in range(0, len(flat), MAX_TEXTS):
            try:
                parts.append(await self._embed_remote(flat[start : start + MAX_TEXTS], caller, chosen))
            except LocalOnly:
                return await _embed_offline(texts)
            except ProviderFault as fault:
                raise fault.as_error(str(chosen)) from None
        rows = iter([vector for part in parts for vector in part.output])
        vectors = [pool([next(rows) for _ in one], [len(window) for window in one]) for one in windows]
        cost, reused = sum((part.cost_usd for part in parts), start=Decimal(0)), all(part.reused for part in parts)
        return ModelAnswer(Vectors(str(chosen), vectors), str(chosen), cost, reused=reused)

    async def _embed_remote(self, texts: Sequence[str], caller: Caller, model: Model) -> ModelAnswer[list[list[float]]]:
        remote = self._require_remote()
        provider = remote.providers.get(model.provider)
        if not isinstance(provider, Embedder):
            raise NoModel(f"{model.provider} has no embedding models.")

        async def send(seconds: float) -> CallResult[list[list[float]]]:
            embedded = await provider.embed(model.name, texts, seconds)
            if len(embedded.vectors) != len(texts):
                raise ProviderFault(Fault.MALFORMED, embedded.usage)
            return CallResult(embedded.vectors, pack(embedded.vectors), embedded.usage)

        call = BilledCall(
            purpose=EMBED,
            digest=embedding_digest(texts, model, caller),
            caller=caller,
            expected=TokenUsage(input=estimate_tokens(texts)),
            seconds=EMBED_SECONDS,
            deadline=time.monotonic() + MAX_WAIT_SECONDS + CALLS_PER_DEADLINE * EMBED_SECONDS,
            restore=unpack,
        )
        return await remote.billing.reuse(call) or await remote.billing.call(call, model, send)

    async def maintain(self, database: Database) -> float:
        """Close abandoned calls and resume jobs that were waiting for budget.

        Returns the seconds until the next run.
        """
        del database
        if self._remote:
            await self._remote.billing.maintain()
        return MAINTENANCE_SECONDS

    def _require_remote(self) -> RemoteModels:
        if self._remote is None:
            raise NoModel
        return self._remote


async def _ask_offline(task: Task[In, Out], given: In, failed: tuple[FailedModel, ...]) -> ModelAnswer[Out]:
    if task.offline is None:
        raise NoModel(f"{task.name} cannot be done offline.")
    from octavo.language.embedding import load_runtime

    await asyncio.to_thread(load_runtime)
    return ModelAnswer(await asyncio.to_thread(task.offline, given), LOCAL, failed=failed)


async def _embed_offline(texts: Sequence[str]) -> ModelAnswer[Vectors]:
    from octavo.language import NAME, offline_embedder

    vectors = await asyncio.to_thread(lambda: offline_embedder().embed(texts).tolist())
    return ModelAnswer(Vectors(NAME, vectors), LOCAL)


def _failed_models(faults: Mapping[Model, ProviderFault]) -> tuple[FailedModel, ...]:
    return tuple(FailedModel(str(model), fault.fault) for model, fault in faults.items())


def _is_away(faults: Mapping[Model, ProviderFault]) -> bool:
    """Whether a later call may succeed, because a provider is only temporarily unavailable."""
    return any(fault.fault in AWAY for fault in faults.values())


def is_stopgap(answer: ModelAnswer[Any]) -> bool:
    """Whether the answer was made offline only because a provider was temporarily unavailable. A model can improve it
    later.
    """
    return answer.made_by == LOCAL and any(one.fault in AWAY for one in answer.failed)


def _local_last(models: Sequence[Model]) -> Sequence[Model]:
    """Return the models with `local` moved to the end, unless it is the first one."""
    return models if models[0].provider == LOCAL else sorted(models, key=lambda model: model.provider == LOCAL)


def _error_of_call(faults: Mapping[Model, ProviderFault]) -> OctavoError:
    """Choose the error to raise if every model failed.

    `TokenLimit` is preferred, because the caller can shorten the request.
    """
    for model, fault in faults.items():
        if fault.rule.error is TokenLimit:
            return fault.as_error(str(model))
    return _final_error(faults)


def _final_error(faults: Mapping[Model, ProviderFault]) -> OctavoError:
    if not faults:
        return NoModel()
    fault = most_recoverable(faults.values())
    return fault.as_error(next(str(model) for model, other in faults.items() if other is fault))


def _files_seconds(request: ModelRequest) -> float:
    return FILE_SECONDS + ACTIVE_SECONDS if request.has_files else 0.0
