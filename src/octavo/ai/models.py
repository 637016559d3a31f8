"""The configured models, the order in which they are tried, and the limits of one call for each provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from octavo.ai.calls import LOCAL
from octavo.ai.tasks import TASKS
from octavo.core.errors import BadSetting
from octavo.core.settings import Settings

EMBEDDING_MODELS = {"gemini": "gemini-embedding-001", "openai": "text-embedding-3-small", LOCAL: ""}
MEGABYTE = 1_000_000
# Tokens for the instructions and the answer. At least a quarter of the context is left for the text.
RESERVED_TOKENS = 5000


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a provider. The name is empty if the provider is `local`."""

    provider: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}" if self.name else self.provider


def parse_model(text: str) -> Model:
    provider, _, name = text.partition(":")
    return Model(provider, name)


@dataclass(frozen=True, slots=True)
class ModelChain:
    """The models for each task in order of preference, and the embedding model."""

    default: tuple[Model, ...]
    tasks: Mapping[str, tuple[Model, ...]]
    embedding: Model

    def of(self, task: str) -> tuple[Model, ...]:
        return self.tasks.get(task, self.default)

    @property
    def models(self) -> set[Model]:
        return {*self.default, self.embedding, *(model for models in self.tasks.values() for model in models)}


def model_chain(settings: Settings) -> ModelChain:
    names = {
        "gemini": settings.gemini_model,
        "openai": settings.openai_model,
        "anthropic": settings.anthropic_model,
        "compatible": settings.compatible_model or "",
    }
    tasks: dict[str, tuple[Model, ...]] = {}
    for one in settings.task_models:
        task, _, models = one.partition("=")
        if task not in TASKS:
            raise BadSetting(f"OCTAVO_TASK_MODELS: unknown task {task}. Tasks: {', '.join(TASKS.names)}.")
        tasks[task] = tuple(map(parse_model, models.split("|")))
    default = tuple(Model(provider, names.get(provider, "")) for provider in settings.providers)
    chain = ModelChain(default, tasks, _embedding_of(settings))
    for model in chain.models:
        if model.provider not in (*settings.providers, LOCAL):
            raise BadSetting(
                f"The provider of {model} is missing from OCTAVO_PROVIDERS ({', '.join(settings.providers)})."
            )
    return chain


def uses_remote_model(settings: Settings, task: str) -> bool:
    """Whether a provider other than `local` is configured for the task."""
    return any(model.provider != LOCAL for model in model_chain(settings).of(task))


def _embedding_of(settings: Settings) -> Model:
    if settings.embedding_model:
        return parse_model(settings.embedding_model)
    first = next((one for one in settings.providers if one in EMBEDDING_MODELS), LOCAL)
    return Model(first, EMBEDDING_MODELS[first])


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How much one call can contain. `outside` says whether the data leaves this machine."""

    pages: int
    bytes: int
    tokens: int
    outside: bool = True


UNLIMITED = CallLimits(pages=100_000, bytes=1 << 40, tokens=1 << 40, outside=False)
# As documented by the providers for the default models, with a tenth reserved for the answer and for estimates.
# The limit of self-hosted servers is a setting. A request that a server refuses or cuts off is split and sent again.
CALL_LIMITS = {
    "gemini": CallLimits(pages=1000, bytes=50 * MEGABYTE, tokens=900_000),
    "openai": CallLimits(pages=1000, bytes=45 * MEGABYTE, tokens=240_000),
    "anthropic": CallLimits(pages=100, bytes=22 * MEGABYTE, tokens=180_000),
    "compatible": CallLimits(pages=100, bytes=20 * MEGABYTE, tokens=85_000),
}


def shared_limits(models: Iterable[Model], compatible_context: int | None = None) -> CallLimits:
    """The smallest limits of all these models, because any of them may get the call."""
    known = dict(CALL_LIMITS)
    if compatible_context:
        usable = max(compatible_context * 9 // 10 - RESERVED_TOKENS, compatible_context // 4)
        known["compatible"] = replace(known["compatible"], tokens=usable)
    limits = [known[model.provider] for model in models if model.provider != LOCAL]
    if not limits:
        return UNLIMITED
    return CallLimits(*(min(getattr(one, name) for one in limits) for name in ("pages", "bytes", "tokens")))
