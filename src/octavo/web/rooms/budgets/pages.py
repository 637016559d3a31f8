"""Settings pages for budgets and for model providers, and the page for the budget of one document."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Annotated, Any, cast, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request, Response

from octavo.ai.calls import LOCAL
from octavo.ai.ledger import MAX_USD, Budgets
from octavo.ai.model_checks import find_servers
from octavo.ai.model_settings import REMOTE, TASK_GROUPS, embedding_choices
from octavo.core.errors import BadInput, BudgetTooHigh, NotFound, OctavoError
from octavo.core.formatting import format_number
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.library.changes import read_document_budget
from octavo.library.documents import show_document
from octavo.records.account import BudgetsInForce, DocumentBudget, ModelProvider, ModelsInForce, RemoteProvider
from octavo.web.context.callers import AdminCaller, WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.budgets.api import (
    LEAST_CONTEXT,
    MOST_CONTEXT,
    AnyProvider,
    BudgetsRequest,
    DocumentBudgetRequest,
    ModelsRequest,
    PriceNeeded,
    ProviderRequest,
    budgets_of,
    change,
    change_of_document,
    choose,
    drop_provider,
    models_of,
    save_provider,
    try_provider,
)
from octavo.web.shell.forms import Question, ask, read_form, read_id
from octavo.web.shell.frame import Frame, LibraryFrame, back_to, render
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(include_in_schema=False)
WRONG = 422
Field = Annotated[str, Form(max_length=100)]


def _amount() -> str:
    return _("Enter an amount in US dollars from 0 to %(most)s, such as 2.50.", most=format_number(MAX_USD))


def _amounts() -> dict[str, str]:
    """Return the error message for each field of the form."""
    return dict.fromkeys(("document", "owner", "month", "usd"), _amount())


@router.get("/settings/budgets")
async def budgets_page(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    found = await budgets_of(services, frame.caller)
    return show(request, "budgets", frame, said=said, budgets=found, written=as_written(found), plain=plain_number)


@router.post("/settings/budgets")
async def save(
    request: Request,
    services: ServicesOf,
    caller: AdminCaller,
    frame: SettingsFrame,
    document: Field = "",
    owner: Field = "",
    month: Field = "",
) -> Response:
    """Save only the budgets that were changed."""
    found = await budgets_of(services, caller)
    written = {"document": document, "owner": owner, "month": month}
    changed = {name: value for name, value in written.items() if value.strip() != as_written(found)[name]}
    wanted, wrong = read_form(BudgetsRequest, read_amounts(changed), _amounts())
    if wanted is None:
        return show(request, "budgets", frame, WRONG, budgets=found, written=written, wrong=wrong, plain=plain_number)
    await change(services, caller, wanted)
    return back_to("/settings/budgets?said=budgets")


@router.get("/documents/{document}/budget")
async def document_page(
    request: Request, services: ServicesOf, caller: WriteCaller, frame: LibraryFrame, document: str
) -> Response:
    del caller
    return await _show(request, services, frame, document)


@router.post("/documents/{document}/budget")
async def raise_budget(
    request: Request, services: ServicesOf, caller: WriteCaller, frame: LibraryFrame, document: str, usd: Field = ""
) -> Response:
    """Change the budget of a document and return to its page. Its paused jobs resume if the new budget allows it."""
    ident = read_id(document)
    wanted, wrong = read_form(DocumentBudgetRequest, read_amounts({"usd": usd}), _amounts())
    if wanted is not None:
        try:
            await change_of_document(services, caller, ident, wanted.usd)
            return back_to(f"/documents/{ident}")
        except BudgetTooHigh as error:
            wrong = {"usd": error.line}
    return await _show(request, services, frame, document, usd, wrong)


async def _show(
    request: Request,
    services: Services,
    frame: Frame,
    document: str,
    written: str | None = None,
    wrong: Mapping[str, str] | None = None,
) -> Response:
    owner, ident = frame.caller.owner_id, read_id(document)
    async with services.database.connection() as connection:
        found = await show_document(connection, owner, ident)
        budget = await read_document_budget(connection, owner, ident, Budgets.of(services.settings))
    shown = suggest(budget) if written is None else written
    values = {"d": found, "budget": budget, "written": shown, "wrong": wrong or {}, "plain": plain_number}
    return render(request, "budget.html", frame, WRONG if wrong else 200, **values)


def as_written(found: BudgetsInForce) -> dict[str, str]:
    """Return the texts of the form fields. A field is empty if its budget is not set and the default applies."""
    given = {"document": found.document, "owner": found.owner, "month": found.month}
    return {name: plain_number(one.usd) if one and one.is_set else "" for name, one in given.items()}


def suggest(budget: DocumentBudget) -> str:
    """Suggest a budget for the form: enough for all paused jobs, rounded up to whole dollars.

    If no jobs are paused, the current budget is returned, or an empty string if no budget was set for the document.
    """
    if budget.paused:
        enough = ceil(max(budget.spent_usd + budget.needed_usd, budget.usd))
        return plain_number(min(enough, budget.most_usd))
    return plain_number(budget.usd) if budget.is_set else ""


def plain_number(amount: float) -> str:
    """Format an amount for a form field, such as 2.5 or 1000000."""
    return f"{amount:.8f}".rstrip("0").rstrip(".")


def read_amounts(written: Mapping[str, str]) -> dict[str, float | str | None]:
    """Convert the form fields to numbers for validation.

    An empty field becomes None. Text that is not a number is kept, so that validation rejects it.
    """
    return {name: _read_amount(value.strip()) for name, value in written.items()}


def _read_amount(text: str) -> float | str | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text


# Providers of models ------------------------------------------------------------------------------------------------

models_router = APIRouter(include_in_schema=False, prefix="/settings/models")
HERE = "/settings/models"
MOST_CHARACTERS = 2000
NAMES: Mapping[str, str] = Texts(
    {
        "gemini": "Google Gemini",
        "openai": "OpenAI",
        "anthropic": "Anthropic",
        "mistral": "Mistral",
        "azure": "Azure OpenAI",
        "vertex": "Google Vertex AI",
        "bedrock": "Amazon Bedrock",
        "compatible": "Ollama or another compatible server",
        LOCAL: "Offline, without a model",
    }
)
GROUPS = Texts(
    {
        "describe": "Titles, summaries and tags",
        "read": "Reading pages and cleaning up text",
        "connect": "Connections between documents",
        "answer": "Answers to questions",
        "analyse": "Analyses",
        "convert": "Fields of conversions",
    }
)


def _model_values() -> dict[str, str]:
    """Return the error message for each field of a provider's form."""
    least, most = format_number(LEAST_CONTEXT), format_number(MOST_CONTEXT)
    return {
        "key": _("Enter the API key without spaces."),
        "url": _("Enter an address such as http://127.0.0.1:11434/v1."),
        "model": _("Enter the name of a model, without spaces or commas."),
        "context": _("Enter a whole number from %(least)s to %(most)s.", least=least, most=most),
        "price": _("Enter two prices in US dollars, such as 0.15/0.60, or 0/0 if the model is free."),
    }


@models_router.get("")
async def models_page(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    said: str = "",
    tested: Annotated[str, Query(max_length=20)] = "",
    seconds: float = 0.0,
    usd: float = 0.0,
) -> Response:
    result = (tested, seconds, usd) if tested in REMOTE else None
    return await _show_models(request, services, frame, said=said, result=result)


@models_router.post("/servers")
async def look_for_servers(
    request: Request, services: ServicesOf, caller: AdminCaller, frame: SettingsFrame
) -> Response:
    """Look for model servers on this machine. This happens only when an administrator requests it."""
    del caller
    return await _show_models(request, services, frame, servers=await find_servers())


@models_router.post("/tasks")
async def choose_models(request: Request, services: ServicesOf, caller: AdminCaller, frame: SettingsFrame) -> Response:
    form = {name: str(value) for name, value in (await request.form()).items()}
    wanted: dict[str, Any] = {}
    if tasks := {group: form[group] or None for group in TASK_GROUPS if group in form}:
        wanted["tasks"] = tasks
    if "embedding" in form:
        wanted["embedding"] = form["embedding"] or None
    read, wrong = read_form(ModelsRequest, wanted, {})
    if read is None:
        return await _show_models(request, services, frame, 422, wrong=("tasks", wrong))
    try:
        await choose(services, caller, read)
    except BadInput as error:
        return await _show_models(request, services, frame, error.status, wrong=("tasks", {"": error.line}))
    return back_to(f"{HERE}?said=tasks")


@models_router.post("/{provider}")
async def save_values(
    request: Request,
    services: ServicesOf,
    caller: AdminCaller,
    frame: SettingsFrame,
    provider: str,
    action: Annotated[str, Form(max_length=10)] = "test",
) -> Response:
    """Save a provider. If `action` is `test`, the model is called first, and nothing is saved if that fails."""
    name, form = _read_name(provider), await request.form()
    written = {value: str(form.get(value, ""))[:MOST_CHARACTERS].strip() for value in _model_values()}
    written["url"] = written["url"].rstrip("/")
    found = await models_of(services, caller)
    changes = _changes(_find(found, name), written)
    wanted, wrong = read_form(ProviderRequest, changes, _model_values())
    status = 422
    if wanted:
        try:
            test = await try_provider(services, caller, name, wanted) if action == "test" else None
            await save_provider(services, caller, name, wanted)
        except PriceNeeded as error:
            wrong, status = {"price": error.line}, error.status
        except OctavoError as error:
            wrong, status = {"": error.line}, error.status
        else:
            told = {"tested": name, "seconds": test.seconds, "usd": test.cost_usd} if test else {"said": "provider"}
            return back_to(f"{HERE}?{urlencode(told)}")
    return await _show_models(request, services, frame, status, wrong=(name, wrong), written=(name, written))


@models_router.post("/{provider}/test")
async def call_model(
    request: Request, services: ServicesOf, caller: AdminCaller, frame: SettingsFrame, provider: str
) -> Response:
    name = _read_name(provider)
    try:
        made = await try_provider(services, caller, name, ProviderRequest())
    except OctavoError as error:
        return await _show_models(request, services, frame, error.status, wrong=(name, {"": error.line}))
    return back_to(f"{HERE}?{urlencode({'tested': name, 'seconds': made.seconds, 'usd': made.cost_usd})}")


@models_router.post("/{provider}/first")
async def use_first(services: ServicesOf, caller: AdminCaller, provider: str) -> Response:
    name = _read_name(provider)
    found = await models_of(services, caller)
    order = [name, *(one for one in found.order if one != name)]
    await choose(services, caller, ModelsRequest(order=cast("list[AnyProvider]", order)))
    return back_to(f"{HERE}?said=first")


@models_router.get("/{provider}/remove")
async def ask_to_remove(request: Request, caller: AdminCaller, frame: SettingsFrame, provider: str) -> Response:
    del caller
    name = _read_name(provider)
    question = Question(
        title=_("Remove %(name)s?", name=NAMES[name]),
        text=_("Its API key is deleted. Waiting work uses the next provider, or is done offline."),
        action=f"{HERE}/{name}/remove",
        verb=_("Remove"),
        keep=HERE,
    )
    return ask(request, question, frame)


@models_router.post("/{provider}/remove")
async def remove(services: ServicesOf, caller: AdminCaller, provider: str) -> Response:
    await drop_provider(services, caller, _read_name(provider))
    return back_to(f"{HERE}?said=no_provider")


async def _show_models(
    request: Request,
    services: Services,
    frame: Frame,
    status: int = 200,
    **values: Any,  # noqa: ANN401
) -> Response:
    found = await models_of(services, frame.caller)
    base = services.models.base
    defaults = {name: {value: _default(type(base), f"{name}_{value}") for value in ("url", "model")} for name in REMOTE}
    shared = {"models": found, "names": NAMES, "groups": GROUPS, "usual": defaults, "task_choices": _choices(found)}
    shared |= {"embedding_choices": embedding_choices(found), "context": (LEAST_CONTEXT, MOST_CONTEXT)}
    return show(request, "models", frame, status, **shared, **values)


def _default(form: type[Any], name: str) -> str | None:
    return form.model_fields[name].default


def _choices(found: ModelsInForce) -> list[str]:
    """List the models that can be chosen for a task.

    These are the models of the providers in use, the models that are already chosen for a task, and `local`.
    """
    named = [f"{one.name}:{one.model}" for one in found.providers if one.in_use]
    used = [model for task in found.tasks for model in task.models if task.is_set]
    return list(dict.fromkeys([*named, *used, LOCAL]))


def _changes(current: ModelProvider, written: dict[str, str]) -> dict[str, Any]:
    """Return the values that differ from the current ones. An empty field restores the default.

    An empty key is ignored, so that the stored key is kept.
    """
    now = {
        "url": current.url or "",
        "model": current.model or "",
        "context": str(current.context or ""),
        "price": current.price or "",
    }
    if current.name != "compatible":
        del now["context"]
    changes: dict[str, Any] = {
        name: written[name] or None
        for name, value in now.items()
        if name not in current.fixed_by and written[name] != value
    }
    if written["key"] and "key" not in current.fixed_by:
        changes["key"] = written["key"]
    return changes


def _find(found: ModelsInForce, name: RemoteProvider) -> ModelProvider:
    return next(one for one in found.providers if one.name == name)


def _read_name(text: str) -> RemoteProvider:
    if text not in get_args(RemoteProvider):
        raise NotFound
    return cast("RemoteProvider", text)
