"""The configured models and the order in which they are tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from octavo.ai.calls import LOCAL
from octavo.ai.tasks import TASKS
from octavo.core.errors import BadSetting
from octavo.core.settings import Settings

EMBEDDING_MODELS = {"gemini": "gemini-embedding-001", "openai": "text-embedding-3-small", LOCAL: ""}


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
