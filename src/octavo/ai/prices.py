"""What models cost. The table comes from `tools/make_prices.py`; the settings add models that it does not know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from octavo.ai.faults import Usage
from octavo.core.errors import BadSetting

MILLION = Decimal(1_000_000)
# The end of a name that makes no difference in price: a date, or which of several it is.
_EDITION = re.compile(r"-(\d+|latest|preview|exp)$")
# Providers whose models run on the user's own machines.
FREE = frozenset({"compatible"})


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a million tokens. `above`: other ones hold for a call that reads more than so many."""

    input: Decimal
    output: Decimal
    cached: Decimal
    above: tuple[int, Price] | None = None

    def cost(self, usage: Usage) -> Decimal:
        price = self.above[1] if self.above and usage.read > self.above[0] else self
        fresh = usage.read - usage.cached
        return (fresh * price.input + usage.cached * price.cached + usage.written * price.output) / MILLION


class Prices:
    """`extra` are settings, as `gpt-9=1.25/10`."""

    def __init__(self, extra: Iterable[str] = ()) -> None:
        self._extra: dict[str, Price] = {}
        for one in extra:
            name, _, pair = one.partition("=")
            read, _, written = pair.partition("/")
            self._extra[name] = Price(Decimal(read), Decimal(written), Decimal(read))

    def find(self, provider: str, model: str) -> Price:
        """A model without a price is refused: nobody could say when a budget is used up."""
        if model in self._extra:
            return self._extra[model]
        if provider in FREE:
            return Price(Decimal(0), Decimal(0), Decimal(0))
        known, name = _table().get(provider, {}), model
        while name not in known and _EDITION.search(name):
            name = _EDITION.sub("", name)
        if name not in known:
            raise BadSetting(f"What {provider}:{model} costs is not known; say so in OCTAVO_PRICES.")
        return _price(known[name])


@cache
def _table() -> dict[str, dict[str, Any]]:
    return json.loads(files("octavo.ai").joinpath("prices.json").read_text(), parse_float=Decimal)["models"]


def _price(row: dict[str, Any]) -> Price:
    above = row.get("above")
    read = Decimal(row["input"])
    return Price(
        input=read,
        output=Decimal(row.get("output", 0)),
        cached=Decimal(row.get("cached", read)),
        above=(above["tokens"], _price(above)) if above else None,
    )
