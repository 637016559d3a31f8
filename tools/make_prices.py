# /// script
# requires-python = ">=3.11"
# dependencies = ["genai-prices==0.2.1"]
# ///
"""Writes what models cost, from the collection of prices that `genai-prices` brings. Nothing of this runs at run time.

    uv run --script tools/make_prices.py 2026-11-15 src/octavo/ai/prices.json

The date is the day for which prices are wanted. Of a price that is announced to rise the higher one is taken, so that a
budget is never passed because this file is old.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ConditionalPrice, ModelInfo, ModelPrice, TieredPrices

PROVIDERS = {
    "google": "gemini",
    "openai": "openai",
    "anthropic": "anthropic",
    "mistral": "mistral",
    "azure": "azure",
    "aws": "bedrock",
}
# Google sells other people's models too, elsewhere.
FOREIGN = ("claude",)
FIELDS = {"input": "input_mtok", "output": "output_mtok", "cached": "cache_read_mtok"}


def main(day: date, file: Path) -> None:
    models: dict[str, dict[str, Any]] = {name: {} for name in PROVIDERS.values()}
    for provider in get_snapshot().providers:
        for model in provider.models if provider.id in PROVIDERS else ():
            foreign = provider.id == "google" and model.id.startswith(FOREIGN)
            if not foreign and (price := price_of(model, day)):
                models[PROVIDERS[provider.id]][model.id] = price
    # The same models at the same prices, under other names or in addition.
    models["azure"] = {**models["openai"], **models["azure"]}
    models["vertex"] = {f"google/{name}": price for name, price in models["gemini"].items()}
    made = {"source": f"genai-prices {version('genai-prices')}", "date": day.isoformat(), "models": models}
    file.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")


Candidate = ConditionalPrice | ModelPrice
Price = Decimal | TieredPrices | None


def price_of(model: ModelInfo, day: date) -> dict[str, Any] | None:
    """US dollars a million tokens; `above` holds for calls that read more than so many."""
    candidates = model.prices if isinstance(model.prices, list) else [model.prices]
    prices = [getattr(one, "prices", one) for one in still_to_come(candidates, day)]
    dearest = max(prices, key=lambda price: base(price.input_mtok))
    if not dearest.input_mtok:
        return None
    found = {name: base(getattr(dearest, field)) for name, field in FIELDS.items() if getattr(dearest, field)}
    tiers = getattr(dearest.input_mtok, "tiers", [])
    if tiers:
        above = {name: top(getattr(dearest, field)) for name, field in FIELDS.items() if getattr(dearest, field)}
        found["above"] = {"tokens": tiers[-1].start, **above}
    return found


def still_to_come(candidates: list[Candidate], day: date) -> list[Candidate]:
    """Without those that another one has replaced by this day; they stand in the order of their dates."""
    begun = [one for one in candidates if start_of(one) <= day]
    return begun[-1:] + [one for one in candidates if start_of(one) > day]


def start_of(candidate: Candidate) -> date:
    return getattr(getattr(candidate, "constraint", None), "start_date", date.min)


def base(price: Price) -> float:
    return float(getattr(price, "base", price) or 0)


def top(price: Price) -> float:
    tiers = getattr(price, "tiers", [])
    return float(tiers[-1].price) if tiers else base(price)


if __name__ == "__main__":
    main(date.fromisoformat(sys.argv[1]), Path(sys.argv[2]))
