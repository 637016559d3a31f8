"""Opens the gateway of a process from its settings."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import SecretStr

from octavo.ai.billing import Till
from octavo.ai.budgets import Budgets
from octavo.ai.calls import LOCAL
from octavo.ai.gateway import Gateway, Outside
from octavo.ai.ledger import Ledger, Rate
from octavo.ai.models import Line, Model, line_of
from octavo.ai.prices import Prices
from octavo.ai.providers import Anthropic, Compatible, Gemini, GeminiFiles, OpenAI, Provider, Wire
from octavo.core.errors import BadSetting
from octavo.core.settings import PROVIDERS, Settings
from octavo.database import Database


def open_local_gateway() -> Gateway:
    """Nothing leaves this machine, and nothing costs money."""
    here = Model(LOCAL)
    return Gateway(Line((here,), {}, here))


def check_models(settings: Settings) -> None:
    """Refuse settings with which no gateway can be opened, before a worker does it again and again."""
    line, prices = line_of(settings), Prices(settings.prices)
    read_rates(settings.provider_limits)
    for model in line.models:
        if model.provider != LOCAL:
            prices.find(model.provider, model.name)


def open_gateway(settings: Settings, database: Database) -> Gateway:
    check_models(settings)
    line, prices = line_of(settings), Prices(settings.prices)
    outside = [model for model in line.models if model.provider != LOCAL]
    if not outside:
        return open_local_gateway()
    wire = Wire()
    budgets, rates = Budgets.of(settings), read_rates(settings.provider_limits)
    ledger = Ledger(database, budgets, rates, anonymous_too=settings.anonymous_models)
    providers = {name: _provider(name, settings, wire, database) for name in {model.provider for model in outside}}
    return Gateway(line, Outside(providers, Till(ledger, prices), wire.aclose))


def read_rates(given: Iterable[str]) -> dict[str, Rate]:
    """From the settings, as `gemini=1000/1000000`."""
    rates: dict[str, Rate] = {}
    for one in given:
        name, _, pair = one.partition("=")
        requests, _, tokens = pair.partition("/")
        rates[name] = Rate(float(requests), float(tokens))
        if name not in PROVIDERS or not rates[name].requests or not rates[name].tokens:
            raise BadSetting(f"OCTAVO_PROVIDER_LIMITS: {one} is not like gemini=1000/1000000.")
    return rates


def _provider(name: str, settings: Settings, wire: Wire, database: Database) -> Provider:
    match name:
        case "gemini":
            key = _reveal(settings.gemini_key)
            return Gemini(wire, settings.gemini_url, key, GeminiFiles(database, wire, settings.gemini_url, key))
        case "openai":
            return OpenAI(wire, settings.openai_url, _reveal(settings.openai_key))
        case "anthropic":
            return Anthropic(wire, settings.anthropic_url, _reveal(settings.anthropic_key))
        case _:
            return Compatible(wire, settings.compatible_url or "", _reveal(settings.compatible_key))


def _reveal(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""
