"""Settings pages for models and their budgets, and the budget of one document."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from octavo.ai.budgets import MAX_USD, Budgets
from octavo.core.errors import BudgetTooHigh
from octavo.library.changes import read_document_budget
from octavo.library.documents import show_document
from octavo.records.account import BudgetsInForce, DocumentBudget
from octavo.web.context.callers import AdminCaller, WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.budgets.api import BudgetsRequest, DocumentBudgetRequest, budgets_of, change, change_of_document
from octavo.web.shell.forms import read_form, read_id
from octavo.web.shell.frame import Frame, LibraryFrame
from octavo.web.shell.settings import SettingsFrame, show
from octavo.web.shell.templates import back_to, render

router = APIRouter(include_in_schema=False)
WRONG = 422
Field = Annotated[str, Form(max_length=100)]
AMOUNT = f"Enter an amount in US dollars from 0 to {MAX_USD:,}, such as 2.50."
SENTENCES: dict[str, str] = dict.fromkeys(("document", "owner", "month", "usd"), AMOUNT)


@router.get("/settings/budgets")
async def budgets_page(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    found = await budgets_of(services, frame.caller)
    return show(request, "budgets", frame, said=said, budgets=found, written=as_written(found), plain=plain_number)


@router.get("/settings/models")
async def models_page(request: Request, services: ServicesOf, frame: SettingsFrame) -> Response:
    """Show which providers are configured, and how to configure one."""
    return show(request, "models", frame, providers=[one for one in services.settings.providers if one != "local"])


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
    wanted, wrong = read_form(BudgetsRequest, read_amounts(changed), SENTENCES)
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
    """Raise the budget of a document and return to its page. Its paused work resumes."""
    ident = read_id(document)
    wanted, wrong = read_form(DocumentBudgetRequest, read_amounts({"usd": usd}), SENTENCES)
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

    If no jobs are paused, this is the current budget, or an empty text if none is set.
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
