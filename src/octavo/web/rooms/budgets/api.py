"""The API for budgets, usage and model providers. Changes apply to all processes without a restart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Literal, cast
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from octavo.ai.calls import LOCAL
from octavo.ai.calls import Caller as ModelCaller
from octavo.ai.estimates import DocumentSize, estimate_document, estimate_size
from octavo.ai.gateway_setup import check_models
from octavo.ai.ledger import MAX_USD, Budgets, Scope, read_budgets, read_usage, resume_paused_jobs, set_budgets
from octavo.ai.model_checks import check_address, find_servers, require_complete, test_model
from octavo.ai.model_settings import (
    EMBEDDING,
    ORDER,
    TASKS,
    StoredSettings,
    apply,
    change_provider,
    describe,
    lock_stored,
    read_stored,
    refuse_fixed,
    remove_provider,
    save_stored,
)
from octavo.ai.models import Model, Prices, model_chain, parse_model
from octavo.core.errors import BadInput, BadSetting
from octavo.core.http import Page
from octavo.core.settings import Settings
from octavo.core.types import JSON
from octavo.library.changes import read_document_budget, set_document_budget
from octavo.library.documents import show_document
from octavo.owners import Caller
from octavo.records.account import (
    BudgetsInForce,
    DocumentBudget,
    DocumentEstimate,
    ModelServer,
    ModelsInForce,
    ModelTest,
    RemoteProvider,
    TaskGroup,
    Usage,
)
from octavo.web.context.callers import AdminCaller, ReadCaller, WholeCaller, WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import WHOLE, problems

router = APIRouter(prefix="/api/v1", tags=["budgets"])
MOST_WORDS = 1_000_000_000
Dollars = Annotated[float, Field(strict=True, ge=0, le=MAX_USD, allow_inf_nan=False)]


class PriceNeeded(BadInput):
    """The price of this model is unknown. Enter the price, or 0/0 if the model is free."""

    code = "PRICE_NEEDED"


class BudgetsRequest(BaseModel):
    """Budgets in US dollars. Budgets that are not sent stay unchanged; null restores the default from the settings."""

    model_config = ConfigDict(extra="forbid")

    document: Dollars | None = None
    owner: Dollars | None = None
    month: Dollars | None = None

    @property
    def changes(self) -> dict[Scope, float | None]:
        given: dict[Scope, float | None] = {"document": self.document, "owner": self.owner, "month": self.month}
        return {scope: most for scope, most in given.items() if scope in self.model_fields_set}


class DocumentBudgetRequest(BaseModel):
    """The budget of one document in US dollars; null restores the default budget."""

    model_config = ConfigDict(extra="forbid")

    usd: Dollars | None


@router.get("/settings/budgets", responses=problems(401, 403))
async def budgets(services: ServicesOf, caller: WholeCaller) -> BudgetsInForce:
    """Return the budgets per document and per account. Administrators also see the budget for all accounts together."""
    return await budgets_of(services, caller)


@router.put("/settings/budgets", responses=problems(400, 401, 403, 422))
async def change_budgets(services: ServicesOf, caller: AdminCaller, wanted: BudgetsRequest) -> BudgetsInForce:
    """Change the budgets for everybody, effective immediately. Paused jobs resume if the new budgets allow it."""
    await change(services, caller, wanted)
    return await budgets_of(services, caller)


@router.get("/documents/{document}/budget", responses=problems(401, 404, 422))
async def document_budget(services: ServicesOf, caller: ReadCaller, document: UUID) -> DocumentBudget:
    """Return the budget of a document, its costs, and the amount that its paused jobs need."""
    async with services.database.connection() as connection:
        return await read_document_budget(connection, caller.owner_id, document, Budgets.of(services.settings))


@router.get("/documents/{document}/estimate", responses=problems(401, 404, 422))
async def document_estimate(
    services: ServicesOf, caller: ReadCaller, document: UUID, prompts: Annotated[int, Query(ge=1, le=100)] = 1
) -> DocumentEstimate:
    """Estimate the cost of model calls for this document.

    There are separate estimates for generating the title, summary and tags, for cleaning up the text, for extracting
    the text from page images, for finding connections, and for running the given number of prompts.
    """
    async with services.database.connection() as connection:
        found = await show_document(connection, caller.owner_id, document)
    return estimate_document(services.settings, caller, found, prompts)


@router.get("/estimate", responses=problems(401, 422))
async def estimate(
    services: ServicesOf,
    caller: ReadCaller,
    words: Annotated[int, Query(ge=0, le=MOST_WORDS)],
    pages: Annotated[int, Query(ge=0, le=MOST_WORDS)] = 0,
    prompts: Annotated[int, Query(ge=1, le=100)] = 1,
) -> DocumentEstimate:
    """Estimate the cost of model calls for a document of this size, before it is added."""
    return estimate_size(services.settings, caller, DocumentSize(words, pages), prompts)


@router.put("/documents/{document}/budget", responses=problems(400, 401, 403, 404, 409, 422))
async def change_document_budget(
    services: ServicesOf, caller: WriteCaller, document: UUID, wanted: DocumentBudgetRequest
) -> DocumentBudget:
    """Set the budget of a document, up to your monthly budget. Its paused jobs resume if the new budget allows it."""
    await change_of_document(services, caller, document, wanted.usd)
    return await document_budget(services, caller, document)


# Also for pages ----------------------------------------------------------------------------------------------------


async def budgets_of(services: Services, caller: Caller) -> BudgetsInForce:
    defaults = Budgets.of(services.settings)
    async with services.database.connection() as connection:
        return await read_budgets(connection, caller.owner_id, defaults, everybody=caller.is_admin)


async def change(services: Services, caller: Caller, wanted: BudgetsRequest) -> None:
    if not wanted.changes:
        return
    async with services.database.transaction() as connection:
        await set_budgets(connection, caller.owner_id, wanted.changes)
    await resume_paused_jobs(services.database, Budgets.of(services.settings))


async def change_of_document(services: Services, caller: Caller, document: UUID, usd: float | None) -> None:
    defaults = Budgets.of(services.settings)
    async with services.database.transaction() as connection:
        await set_document_budget(connection, caller.owner_id, document, usd, defaults)
    await resume_paused_jobs(services.database, defaults)


usage_router = APIRouter(prefix="/api/v1", tags=["usage"])

Month = Annotated[
    str | None,
    Query(pattern=r"^[12]\d{3}-(0[1-9]|1[0-2])$", description="A month such as 2026-11. Default: the current month."),
]


@usage_router.get("/usage", responses=problems(401, 403, 422))
async def usage(services: ServicesOf, caller: WholeCaller, month: Month = None) -> Usage:
    """Return the cost of your model calls in a month, by purpose, and the savings from reused answers."""
    owner, everybody, defaults = caller.owner_id, caller.is_admin, Budgets.of(services.settings)
    async with services.database.connection() as connection:
        budgets = await read_budgets(connection, owner, defaults, everybody=everybody)
        return await read_usage(connection, owner, month, budget_usd=budgets.owner.usd, everybody=everybody)


# Providers of models ------------------------------------------------------------------------------------------------

models_router = APIRouter(prefix="/api/v1/models", tags=["models"])
servers_router = APIRouter(prefix="/api/v1/model-servers", tags=["models"])
NAME = r"^[^|,=\s\x00-\x1f\x7f]*$"
ModelName = Annotated[str, Field(min_length=1, max_length=200, pattern=NAME)]
ModelRef = Annotated[
    str,
    Field(
        max_length=220,
        pattern=r"^(local|(gemini|openai|anthropic|mistral|azure|vertex|bedrock|compatible):[^|,=\s\x00]+)$",
    ),
]
AnyProvider = RemoteProvider | Literal["local"]
LEAST_CONTEXT, MOST_CONTEXT = 2048, 100_000_000


class ProviderRequest(BaseModel):
    """Values of a provider. Values that are not sent stay unchanged; null restores the default.

    `key` is stored encrypted and never returned.
    """

    model_config = ConfigDict(extra="forbid")

    key: Annotated[SecretStr, Field(min_length=1, max_length=1000)] | None = None
    url: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^https?://[^\s\x00-\x1f\x7f]+$")] | None = None
    model: ModelName | None = None
    context: Annotated[int, Field(ge=LEAST_CONTEXT, le=MOST_CONTEXT), WHOLE] | None = None
    price: Annotated[str, Field(max_length=40, pattern=r"^\d{1,9}(\.\d{1,9})?/\d{1,9}(\.\d{1,9})?$")] | None = None

    @field_validator("key")
    @classmethod
    def _printable(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not (value.get_secret_value().isascii() and value.get_secret_value().isprintable()):
            raise ValueError("must consist of printable ASCII characters")
        return value

    @property
    def changes(self) -> dict[str, JSON]:
        sent: dict[str, JSON] = {name: getattr(self, name) for name in self.model_fields_set - {"key"}}
        if "key" in self.model_fields_set:
            sent["key"] = self.key.get_secret_value() if self.key else None
        if isinstance(url := sent.get("url"), str):
            sent["url"] = url.rstrip("/")
        return sent


class ModelsRequest(BaseModel):
    """The order of the providers, and the models for tasks and embeddings. Values that are not sent stay unchanged.

    A task that is set to null uses the first provider that can do it.
    """

    model_config = ConfigDict(extra="forbid")

    order: Annotated[list[AnyProvider], Field(min_length=1, max_length=5)] | None = None
    tasks: dict[TaskGroup, ModelRef | None] | None = None
    embedding: ModelRef | None = None


@models_router.get("", responses=problems(401, 403))
async def models(services: ServicesOf, caller: WholeCaller) -> ModelsInForce:
    """Return the providers, the models of each task, and this month's cost. Only administrators see the URLs of
    providers.
    """
    return await models_of(services, caller)


@models_router.put("", responses=problems(400, 401, 403, 409, 422))
async def choose_models(services: ServicesOf, caller: AdminCaller, wanted: ModelsRequest) -> ModelsInForce:
    """Choose the order of the providers, and the model for each task."""
    await choose(services, caller, wanted)
    return await models_of(services, caller)


@models_router.put("/{provider}", responses=problems(400, 401, 403, 404, 409, 422))
async def set_provider(
    services: ServicesOf, caller: AdminCaller, provider: RemoteProvider, wanted: ProviderRequest
) -> ModelsInForce:
    """Set up a provider or change its values. A new provider is tried before all others."""
    await save_provider(services, caller, provider, wanted)
    return await models_of(services, caller)


@models_router.delete("/{provider}", status_code=204, responses=problems(401, 403, 404, 409, 422))
async def delete_provider(services: ServicesOf, caller: AdminCaller, provider: RemoteProvider) -> None:
    """Stop using a provider, and delete its API key."""
    await drop_provider(services, caller, provider)


@models_router.post("/{provider}/test", responses=problems(400, 401, 402, 403, 404, 409, 422, 429, 502, 503, 504))
async def call_provider(
    services: ServicesOf, caller: AdminCaller, provider: RemoteProvider, wanted: ProviderRequest | None = None
) -> ModelTest:
    """Call the provider's model once. Values in the request are tested without saving them."""
    return await try_provider(services, caller, provider, wanted or ProviderRequest())


@servers_router.post("", responses=problems(401, 403))
async def list_servers(caller: AdminCaller) -> Page[ModelServer]:
    """Look for model servers such as Ollama on well-known ports of the machine that runs Octavo."""
    del caller
    return Page(await find_servers(), None)


# Also for pages ----------------------------------------------------------------------------------------------------


async def models_of(services: Services, caller: Caller) -> ModelsInForce:
    base, admin = services.models.base, caller.is_admin
    async with services.database.connection() as connection:
        stored = await read_stored(connection)
        spent = await read_budgets(connection, caller.owner_id, Budgets.of(base), everybody=admin)
    shown = describe(base, stored, admin=admin)
    return replace(shown, spent_usd=spent.spent_usd, everybody_usd=spent.everybody_usd)


async def choose(services: Services, caller: Caller, wanted: ModelsRequest) -> None:
    base = services.models.base
    sent = {name: getattr(wanted, name) for name in wanted.model_fields_set}
    for name, setting in (("order", ORDER), ("tasks", TASKS), ("embedding", EMBEDDING)):
        if name in sent:
            refuse_fixed(base, setting)

    def change(stored: StoredSettings) -> StoredSettings:
        changes: dict[str, JSON] = {}
        if wanted.order is not None:
            changes[ORDER] = cast("JSON", list(dict.fromkeys(wanted.order)))
        if wanted.tasks is not None:
            groups = {**stored.groups, **wanted.tasks}
            changes[TASKS] = cast("JSON", {group: model for group, model in groups.items() if model})
        if "embedding" in sent:
            changes[EMBEDDING] = wanted.embedding
        return _require_known(stored.with_plain(changes), apply(base, stored.with_plain(changes)))

    await _save(services, caller, change, cast("dict[str, JSON]", sent))


async def save_provider(services: Services, caller: Caller, provider: RemoteProvider, wanted: ProviderRequest) -> None:
    await _check_url(services, wanted)

    def change(stored: StoredSettings) -> StoredSettings:
        changed = change_provider(services.models.base, stored, provider, _own(provider, wanted))
        require_complete(apply(services.models.base, changed), provider)
        return changed

    detail: dict[str, JSON] = {"provider": provider, "changed": cast("JSON", sorted(wanted.changes))}
    await _save(services, caller, change, detail)


async def drop_provider(services: Services, caller: Caller, provider: RemoteProvider) -> None:
    def change(stored: StoredSettings) -> StoredSettings:
        return remove_provider(services.models.base, stored, provider)

    await _save(services, caller, change, {"provider": provider, "removed": True})


async def try_provider(
    services: Services, caller: Caller, provider: RemoteProvider, wanted: ProviderRequest
) -> ModelTest:
    await _check_url(services, wanted)
    async with services.database.connection() as connection:
        stored = await read_stored(connection)
    changed = change_provider(services.models.base, stored, provider, _own(provider, wanted))
    candidate = _checked(services.models.base, changed, stored)
    return await test_model(candidate, services.database, ModelCaller(caller.owner_id), provider)


async def _save(
    services: Services, caller: Caller, change: Callable[[StoredSettings], StoredSettings], detail: Mapping[str, JSON]
) -> None:
    async with services.database.transaction() as connection:
        stored = await lock_stored(connection)
        changed = change(stored)
        _checked(services.models.base, changed, stored)
        await save_stored(connection, changed, caller.owner_id, detail)
    await services.models.refresh(now=True)


def _checked(base: Settings, changed: StoredSettings, stored: StoredSettings) -> Settings:
    """Return the settings as they would be after the change.

    Raises `BadInput` if they are invalid or a price is missing.
    """
    candidate = apply(base, changed)
    try:
        check_models(candidate)
    except BadSetting as error:
        raise BadInput(error.detail or error.line) from None
    before = _missing_prices(apply(base, stored))
    if unknown := [model for model in _missing_prices(candidate) if model not in before]:
        raise PriceNeeded(f"Model: {unknown[0]}.")
    return candidate


def _missing_prices(settings: Settings) -> list[Model]:
    try:
        return Prices.of(settings).missing(model_chain(settings))
    except BadSetting:
        return []


async def _check_url(services: Services, wanted: ProviderRequest) -> None:
    if wanted.url:
        await check_address(wanted.url, services.settings)


def _own(provider: RemoteProvider, wanted: ProviderRequest) -> dict[str, JSON]:
    if provider != "compatible" and "context" in wanted.model_fields_set:
        raise BadInput("context: only for the provider compatible")
    return wanted.changes


def _require_known(stored: StoredSettings, current: Settings) -> StoredSettings:
    """Return the settings. Raises `BadInput` if a chosen model belongs to a provider that is not set up."""
    known = {*current.providers, LOCAL}
    chosen = [*stored.groups.values(), str(stored.plain.get(EMBEDDING, LOCAL)), *stored.order]
    for name in chosen:
        if parse_model(name).provider not in known:
            raise BadInput(f"{name}: this provider is not set up")
    return stored
