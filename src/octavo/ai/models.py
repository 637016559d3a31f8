"""Which models are asked, in which order, as the settings say."""

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
    """`local` has no name of its own."""

    provider: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}" if self.name else self.provider


def read_model(text: str) -> Model:
    provider, _, name = text.partition(":")
    return Model(provider, name)


@dataclass(frozen=True, slots=True)
class Line:
    """The models for each task, the first one first, and the one that makes vectors."""

    default: tuple[Model, ...]
    tasks: Mapping[str, tuple[Model, ...]]
    embedding: Model

    def of(self, task: str) -> tuple[Model, ...]:
        return self.tasks.get(task, self.default)

    @property
    def models(self) -> set[Model]:
        return {*self.default, self.embedding, *(model for models in self.tasks.values() for model in models)}


def line_of(settings: Settings) -> Line:
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
            raise BadSetting(f"OCTAVO_TASK_MODELS: there is no task {task}; there are {', '.join(TASKS.names)}.")
        tasks[task] = tuple(map(read_model, models.split("|")))
    default = tuple(Model(provider, names.get(provider, "")) for provider in settings.providers)
    line = Line(default, tasks, _embedding_of(settings))
    for model in line.models:
        if model.provider not in (*settings.providers, LOCAL):
            raise BadSetting(f"{model} is none of OCTAVO_PROVIDERS, which are {', '.join(settings.providers)}.")
    return line


def asks_outside(settings: Settings, task: str) -> bool:
    """Whether a task can be done by anybody but `local`."""
    return any(model.provider != LOCAL for model in line_of(settings).of(task))


def _embedding_of(settings: Settings) -> Model:
    if settings.embedding_model:
        return read_model(settings.embedding_model)
    first = next((one for one in settings.providers if one in EMBEDDING_MODELS), LOCAL)
    return Model(first, EMBEDDING_MODELS[first])
