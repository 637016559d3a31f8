"""Builds the gateway for model calls from the settings of a process."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import SecretStr

from octavo.ai.billing import Billing
from octavo.ai.budgets import Budgets
from octavo.ai.calls import LOCAL
from octavo.ai.gateway import Gateway, RemoteModels
from octavo.ai.ledger import Ledger, RateLimit
from octavo.ai.models import Model, ModelChain, Prices, model_chain
from octavo.ai.providers import Anthropic, Compatible, Gemini, GeminiFiles, HttpClient, OpenAI, Provider
from octavo.core.errors import BadSetting
from octavo.core.settings import PROVIDERS, Settings
from octavo.database import Database


def open_local_gateway() -> Gateway:
    """Return a gateway that uses only the provider `local`: no data leaves this machine, and nothing costs money."""
    local = Model(LOCAL)
    return Gateway(ModelChain((local,), {}, local))


def check_models(settings: Settings) -> None:
    """Raise `BadSetting` for settings that cannot work, so that workers do not fail on them repeatedly."""
    chain, prices = model_chain(settings), Prices(settings.prices)
    parse_rate_limits(settings.provider_limits)
    for model in chain.models:
        if model.provider != LOCAL:
            prices.find(model.provider, model.name)


def open_gateway(settings: Settings, database: Database) -> Gateway:
    check_models(settings)
    chain, prices = model_chain(settings), Prices(settings.prices)
    remote = [model for model in chain.models if model.provider != LOCAL]
    if not remote:
        return open_local_gateway()
    http = HttpClient()
    budgets, rates = Budgets.of(settings), parse_rate_limits(settings.provider_limits)
    ledger = Ledger(database, budgets, rates, allow_anonymous=settings.anonymous_models)
    providers = {name: _provider(name, settings, http, database) for name in {model.provider for model in remote}}
    remote_models = RemoteModels(providers, Billing(ledger, prices), http.aclose)
    return Gateway(chain, remote_models, compatible_context=settings.compatible_context)


def parse_rate_limits(given: Iterable[str]) -> dict[str, RateLimit]:
    """Parse settings such as `gemini=1000/1000000` (requests and tokens per minute)."""
    rates: dict[str, RateLimit] = {}
    for one in given:
        name, _, pair = one.partition("=")
        requests, _, tokens = pair.partition("/")
        rates[name] = RateLimit(float(requests), float(tokens))
        if name not in PROVIDERS or not rates[name].requests or not rates[name].tokens:
            raise BadSetting(f"OCTAVO_PROVIDER_LIMITS: {one} is invalid. Example: gemini=1000/1000000.")
    return rates


def _provider(name: str, settings: Settings, http: HttpClient, database: Database) -> Provider:
    match name:
        case "gemini":
            key = _reveal(settings.gemini_key)
            return Gemini(http, settings.gemini_url, key, GeminiFiles(database, http, settings.gemini_url, key))
        case "openai":
            return OpenAI(http, settings.openai_url, _reveal(settings.openai_key))
        case "anthropic":
            return Anthropic(http, settings.anthropic_url, _reveal(settings.anthropic_key))
        case _:
            url, key = settings.compatible_url or "", _reveal(settings.compatible_key)
            return Compatible(http, url, key, settings.compatible_context)


def _reveal(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""
