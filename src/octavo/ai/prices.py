"""Prices of models. `tools/make_prices.py` writes the table; the settings can add models that are missing from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from octavo.ai.faults import TokenUsage
from octavo.core.errors import BadSetting

MILLION = Decimal(1_000_000)
# A suffix of a model name that does not change its price: a date or an edition.
_EDITION = re.compile(r"-(\d+|latest|preview|exp)$")
# Providers whose models run on the user's own machines.
FREE = frozenset({"compatible"})


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `above` is an input size and the price that applies to larger inputs."""

    input: Decimal
    output: Decimal
    cached: Decimal
    above: tuple[int, Price] | None = None

    def cost(self, usage: TokenUsage) -> Decimal:
        price = self.above[1] if self.above and usage.input > self.above[0] else self
        fresh = usage.input - usage.cached
        return (fresh * price.input + usage.cached * price.cached + usage.output * price.output) / MILLION


class Prices:
    """The price table. `extra` contains prices from the settings, e.g. `gpt-9=1.25/10`."""

    def __init__(self, extra: Iterable[str] = ()) -> None:
        self._extra: dict[str, Price] = {}
        for one in extra:
            name, _, pair = one.partition("=")
            price_in, _, price_out = pair.partition("/")
            self._extra[name] = Price(Decimal(price_in), Decimal(price_out), Decimal(price_in))

    def find(self, provider: str, model: str) -> Price:
        """The price of a model. Raises `BadSetting` if it is unknown, because budgets could not be enforced."""
        if model in self._extra:
            return self._extra[model]
        if provider in FREE:
            return Price(Decimal(0), Decimal(0), Decimal(0))
        known, name = _table().get(provider, {}), model
        while name not in known and _EDITION.search(name):
            name = _EDITION.sub("", name)
        if name not in known:
            raise BadSetting(f"The price of {provider}:{model} is unknown. Add it to OCTAVO_PRICES.")
        return _price(known[name])


@cache
def _table() -> dict[str, dict[str, Any]]:
    return json.loads(files("octavo.ai").joinpath("prices.json").read_text(), parse_float=Decimal)["models"]


def _price(row: dict[str, Any]) -> Price:
    above = row.get("above")
    price_in = Decimal(row["input"])
    return Price(
        input=price_in,
        output=Decimal(row.get("output", 0)),
        cached=Decimal(row.get("cached", price_in)),
        above=(above["tokens"], _price(above)) if above else None,
    )
