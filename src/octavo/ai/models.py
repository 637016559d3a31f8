"""The configured models in the order in which they are tried, their prices, and each provider's limits for one call.

`tools/make_prices.py` writes the price table. The settings and a file with newer prices can add prices to this table. A
model without a known price is never called, because budgets could not be enforced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from octavo.ai.calls import LOCAL
from octavo.ai.faults import TokenUsage
from octavo.ai.tasks import TASKS
from octavo.core.errors import BadSetting
from octavo.core.settings import Settings

EMBEDDING_MODELS = {"gemini": "gemini-embedding-001", "openai": "text-embedding-3-small", LOCAL: ""}
MEGABYTE = 1_000_000
# Tokens for the instructions and the answer. At least a quarter of the context is left for the text.
RESERVED_TOKENS = 5000
MILLION = Decimal(1_000_000)
# A suffix of a model name that does not change its price: a date or an edition.
_EDITION = re.compile(r"-(\d+|latest|preview|exp)$")


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
        "mistral": settings.mistral_model,
        "azure": settings.azure_model or "",
        "vertex": settings.vertex_model,
        "bedrock": settings.bedrock_model or "",
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
    """The maximum amount of content in one call. `outside` is true if the data leaves this machine."""

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
    "mistral": CallLimits(pages=8, bytes=45 * MEGABYTE, tokens=115_000),
    "azure": CallLimits(pages=50, bytes=45 * MEGABYTE, tokens=115_000),
    "vertex": CallLimits(pages=16, bytes=18 * MEGABYTE, tokens=900_000),
    "bedrock": CallLimits(pages=20, bytes=18 * MEGABYTE, tokens=180_000),
    "compatible": CallLimits(pages=100, bytes=20 * MEGABYTE, tokens=85_000),
}


def shared_limits(models: Iterable[Model], compatible_context: int | None = None) -> CallLimits:
    """Return the smallest limits of these models, because any of them may be called."""
    known = dict(CALL_LIMITS)
    if compatible_context:
        usable = max(compatible_context * 9 // 10 - RESERVED_TOKENS, compatible_context // 4)
        known["compatible"] = replace(known["compatible"], tokens=usable)
    limits = [known[model.provider] for model in models if model.provider != LOCAL]
    if not limits:
        return UNLIMITED
    return CallLimits(*(min(getattr(one, name) for one in limits) for name in ("pages", "bytes", "tokens")))


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model in US dollars per million tokens.

    `above` contains an input size and the price that applies to larger inputs.
    """

    input: Decimal
    output: Decimal
    cached: Decimal
    above: tuple[int, Price] | None = None

    def cost(self, usage: TokenUsage) -> Decimal:
        price = self.above[1] if self.above and usage.input > self.above[0] else self
        fresh = usage.input - usage.cached
        return (fresh * price.input + usage.cached * price.cached + usage.output * price.output) / MILLION


FREE = Price(Decimal(0), Decimal(0), Decimal(0))


class Prices:
    """The price table.

    `extra` contains prices from the settings, e.g. `gpt-9=1.25/10`. `file` is a file with newer prices. It is read
    again when it changes. `free` contains the providers whose models cost nothing, unless `extra` has a price for the
    model.
    """

    def __init__(
        self, extra: Iterable[str] = (), *, file: Path | None = None, free: frozenset[str] = frozenset()
    ) -> None:
        self._file = file
        self._free = free
        self._extra: dict[str, Price] = {}
        for one in extra:
            name, _, pair = one.partition("=")
            price_in, _, price_out = pair.partition("/")
            self._extra[name] = Price(Decimal(price_in), Decimal(price_out), Decimal(price_in))

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the prices for these settings. Models of an OpenAI-compatible server on this machine are free."""
        free = frozenset({"compatible"} if _is_this_machine(settings.compatible_url) else ())
        return cls(settings.prices, file=settings.prices_file, free=free)

    def find(self, model: Model) -> Price | None:
        """Return the price of a model. Returns None if the price is unknown."""
        if model.name in self._extra:
            return self._extra[model.name]
        for table in (read_price_file(self._file) if self._file else {}, _table()):
            if row := _find_row(table.get(model.provider, {}), model.name):
                return _price(row)
        return FREE if model.provider in self._free else None

    def missing(self, chain: ModelChain) -> list[Model]:
        """Return the models whose price is unknown."""
        unknown = (model for model in chain.models if model.provider != LOCAL and self.find(model) is None)
        return sorted(unknown, key=str)


def _is_this_machine(url: str | None) -> bool:
    host = urlsplit(url or "").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _find_row(known: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    while name not in known and _EDITION.search(name):
        name = _EDITION.sub("", name)
    return known.get(name)


PriceTable = dict[str, dict[str, Any]]


@cache
def _table() -> PriceTable:
    return json.loads(files("octavo.ai").joinpath("prices.json").read_text(), parse_float=Decimal)["models"]


_read_files: dict[Path, tuple[int, PriceTable]] = {}


def read_price_file(file: Path) -> PriceTable:
    """Read a file that `tools/make_prices.py` wrote. It is read again only if it has changed.

    If the file can no longer be read, its earlier prices stay in use. If it could never be read, raises `BadSetting`.
    """
    earlier = _read_files.get(file)
    try:
        changed = file.stat().st_mtime_ns
        if earlier is None or earlier[0] != changed:
            table: PriceTable = json.loads(file.read_text(), parse_float=Decimal)["models"]
            for rows in table.values():
                for row in rows.values():
                    _price(row)
            earlier = _read_files[file] = (changed, table)
    except (OSError, ValueError, TypeError, AttributeError, KeyError, ArithmeticError) as error:
        if earlier is None:
            raise BadSetting(f"OCTAVO_PRICES_FILE: {file} cannot be read ({type(error).__name__}).") from None
    return earlier[1]


def _price(row: dict[str, Any]) -> Price:
    above = row.get("above")
    price_in = Decimal(row["input"])
    return Price(
        input=price_in,
        output=Decimal(row.get("output", 0)),
        cached=Decimal(row.get("cached", price_in)),
        above=(above["tokens"], _price(above)) if above else None,
    )
