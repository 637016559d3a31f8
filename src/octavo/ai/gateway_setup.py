"""Builds the gateway for model calls, and rebuilds it when an administrator changes the model settings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

import structlog
from pydantic import SecretStr

from octavo.ai.billing import Billing
from octavo.ai.calls import AS_CONFIGURED, LOCAL, Caller, ModelAnswer, OfflineUse
from octavo.ai.gateway import Gateway, RemoteModels
from octavo.ai.ledger import Budgets, Ledger, RateLimit
from octavo.ai.model_settings import apply, read_stored, read_version
from octavo.ai.models import CallLimits, Model, ModelChain, Prices, model_chain
from octavo.ai.providers import (
    Anthropic,
    Azure,
    Bedrock,
    Compatible,
    Gemini,
    GeminiFiles,
    HttpClient,
    Mistral,
    OnText,
    OpenAI,
    Provider,
    Vertex,
    VisionLimits,
)
from octavo.ai.tasks.task import In, Out, Task
from octavo.ai.vectors import Vectors
from octavo.core.errors import BadSetting, DatabaseUnavailable
from octavo.core.settings import PROVIDERS, Settings
from octavo.database import Database

log = structlog.get_logger()
# A process notices changed model settings within this time.
CHECK_SECONDS = 1.0
# Workers without a job check this often.
IDLE_CHECK_SECONDS = 20.0
WAIT_SECONDS = 5.0


def open_local_gateway() -> Gateway:
    """Return a gateway that uses only the `local` provider: no data leaves this machine, and nothing costs money."""
    local = Model(LOCAL)
    return Gateway(ModelChain((local,), {}, local))


def check_models(settings: Settings) -> None:
    """Raise `BadSetting` for invalid model settings, so that workers do not fail repeatedly because of them."""
    missing = Prices.of(settings).missing(model_chain(settings))
    parse_rate_limits(settings.provider_limits)
    for model in missing:
        log.warning("model is not used, because its price is unknown", model=str(model))


def open_gateway(settings: Settings, database: Database) -> Gateway:
    check_models(settings)
    chain, prices = model_chain(settings), Prices.of(settings)
    remote = [model for model in chain.models if model.provider != LOCAL]
    if not remote:
        return open_local_gateway()
    http = HttpClient()
    budgets, rates = Budgets.of(settings), parse_rate_limits(settings.provider_limits)
    ledger = Ledger(database, budgets, rates, allow_anonymous=settings.anonymous_models)
    providers = {name: make_provider(name, settings, http, database) for name in {model.provider for model in remote}}
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


def make_provider(name: str, settings: Settings, http: HttpClient, database: Database) -> Provider:
    match name:
        case "gemini":
            key = _reveal(settings.gemini_key)
            return Gemini(http, settings.gemini_url, key, GeminiFiles(database, http, settings.gemini_url, key))
        case "openai":
            return OpenAI(http, settings.openai_url, _reveal(settings.openai_key))
        case "anthropic":
            return Anthropic(http, settings.anthropic_url, _reveal(settings.anthropic_key))
        case "compatible":
            url, key = settings.compatible_url or "", _reveal(settings.compatible_key)
            return Compatible(http, url, key, settings.compatible_context)
        case _:
            return _make_cloud_provider(name, settings, http)


def _make_cloud_provider(name: str, settings: Settings, http: HttpClient) -> Provider:
    match name:
        case "mistral":
            return Mistral(http, settings.mistral_url, _reveal(settings.mistral_key))
        case "azure":
            return Azure(http, settings.azure_url or "", _reveal(settings.azure_key), version=settings.azure_version)
        case "vertex":
            return Vertex.of(http, settings.vertex_url, _reveal(settings.vertex_key))
        case "bedrock":
            return Bedrock(http, settings.bedrock_url, _reveal(settings.bedrock_key), settings.bedrock_region)
        case _:
            raise BadSetting(f"Unknown provider {name}.")


def _reveal(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""


class LiveModels:
    """The current model settings and gateway of a process. Both are reloaded when the settings change, without a
    restart.

    The gateway is opened on first use, so that a process that calls no model does not load the gateway's libraries.
    Calls in progress finish on the gateway they started with.
    """

    def __init__(self, base: Settings, database: Database) -> None:
        self.base = base
        self.settings = base
        self._database = database
        self._version = 0
        self._checked = float("-inf")
        self._opened: Gateway | None = None
        self._replaced: list[Gateway] = []

    @property
    def gateway(self) -> Gateway:
        if self._opened is None:
            self._opened = open_gateway(self.settings, self._database)
        return self._opened

    async def embed(self, texts: Sequence[str], caller: Caller, model: str | None = None) -> ModelAnswer[Vectors]:
        return await self.gateway.embed(texts, caller, model)

    async def refresh(self, *, now: bool = False) -> None:
        """Reload the settings if they have changed. Unless `now` is true, check for changes at most once a second.

        If the database is unavailable, the current settings stay in use.
        """
        if not now and time.monotonic() - self._checked < CHECK_SECONDS:
            return
        self._checked = time.monotonic()
        with suppress(DatabaseUnavailable):
            async with self._database.connection(wait_seconds=WAIT_SECONDS) as connection:
                if await read_version(connection) == self._version:
                    return
                stored = await read_stored(connection)
            self._use(apply(self.base, stored), stored.version)

    def _use(self, settings: Settings, version: int) -> None:
        try:
            check_models(settings)
        except BadSetting as error:
            log.warning("stored model settings are not used", reason=error.line)
            settings = self.base
        self.settings, self._version = settings, version
        if self._opened:
            self._replaced.append(self._opened)
            self._opened = None
        log.info("model settings changed", providers=",".join(settings.providers))

    async def aclose(self) -> None:
        for gateway in (*self._replaced, *([self._opened] if self._opened else [])):
            await gateway.aclose()


class LiveGateway(Gateway):
    """A gateway that always uses the current model settings."""

    def __init__(self, models: LiveModels) -> None:
        local = Model(LOCAL)
        super().__init__(ModelChain((local,), {}, local))
        self._models_in_force = models

    def call_limits(self, task: str) -> CallLimits:
        return self._models_in_force.gateway.call_limits(task)

    @property
    def has_offline_models(self) -> bool:
        return self._models_in_force.gateway.has_offline_models

    @property
    def is_offline(self) -> bool:
        return self._models_in_force.gateway.is_offline

    def vision_limits(self, task: str) -> VisionLimits | None:
        return self._models_in_force.gateway.vision_limits(task)

    async def ask(
        self,
        task: Task[In, Out],
        given: In,
        caller: Caller,
        offline: OfflineUse = AS_CONFIGURED,
        on_text: OnText | None = None,
    ) -> ModelAnswer[Out]:
        await self._models_in_force.refresh()
        return await self._models_in_force.gateway.ask(task, given, caller, offline, on_text)

    async def embed(self, texts: Sequence[str], caller: Caller, model: str | None = None) -> ModelAnswer[Vectors]:
        await self._models_in_force.refresh()
        return await self._models_in_force.embed(texts, caller, model)

    async def maintain(self, database: Database) -> float:
        await self._models_in_force.refresh()
        return min(IDLE_CHECK_SECONDS, await self._models_in_force.gateway.maintain(database))
