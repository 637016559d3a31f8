"""`octavo usage` and `octavo budgets`: the cost of model calls, and the budgets that limit it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import make_facts, make_table, open_console, print_json, print_on, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.account import Budget, BudgetsInForce, DocumentBudget, Usage


usage_app = typer.Typer()


@usage_app.command()
def usage(
    month: Annotated[
        str | None, typer.Option(metavar="YYYY-MM", help="Month (UTC). Default: the current month.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the cost of model calls in a month by purpose, model and document, and the savings from reused answers."""

    async def run(client: Client) -> Usage:
        return await client.read_usage(month)

    found = call(Target(server, key), run)
    if as_json:
        return print_json(found)
    console = open_console()
    print_on(console, make_facts(usage_facts(found)))
    if found.purposes:
        head = ["PURPOSE", "MODEL", "CALLS", "FAILED", "TOKENS", "COST"]
        rows = [
            [
                one.purpose,
                one.model,
                f"{one.calls:,}",
                f"{one.failed:,}",
                f"{one.tokens_in + one.tokens_out:,}",
                usd(one.cost_usd),
            ]
            for one in found.purposes
        ]
        typer.echo()
        print_on(console, make_table(console, head, rows))
    if found.documents:
        listed = [
            [short_id(one.document_id), one.title, f"{one.calls:,}", usd(one.cost_usd)] for one in found.documents
        ]
        typer.echo()
        print_on(console, make_table(console, ["ID", "TITLE", "CALLS", "COST"], listed))
    return None


def usage_facts(found: Usage) -> dict[str, str | None]:
    estimated = f", {usd(found.estimated_usd)} of it estimated" if found.estimated_usd else ""
    return {
        "Month": found.month,
        "Cost": f"{usd(found.cost_usd)} of {usd(found.budget_usd)}{estimated}",
        "Reserved": usd(found.reserved_usd) if found.reserved_usd else None,
        "Saved": f"{usd(found.saved_usd)} by reusing {count_of(found.reuses, 'answer')}" if found.reuses else None,
        "Calls": f"{found.calls:,}",
        "Tokens": f"{found.tokens_in:,} in, {found.tokens_out:,} out",
        "All owners": usd(found.everybody_usd) if found.everybody_usd is not None else None,
        "Earlier": ", ".join(f"{one.month} {usd(one.cost_usd)}" for one in found.months if one.month != found.month),
    }


def usd(amount: float) -> str:
    """Format an amount in US dollars. Amounts below one dollar get four decimals."""
    return f"{amount:.2f} USD" if amount >= 1 or not amount else f"{amount:.4f} USD"


budgets_app = typer.Typer(help="Show and set the budgets for models.", no_args_is_help=True)

USUAL = "usual"
_AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,8})?")
EXCEEDED = {"document": "the document's budget", "owner": "the owner's budget", "month": "the budget for all owners"}
ID = typer.Argument(metavar="ID", help="Document id, or at least four characters of it.")


@budgets_app.command()
def show(
    document: Annotated[str | None, ID] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the budgets and the cost of this month, or the budget of one document."""

    async def run(client: Client) -> BudgetsInForce | DocumentBudget:
        if document is None:
            return await client.read_budgets()
        (found,) = await find_ids(client, [document])
        return await client.read_document_budget(found)

    print_budgets(call(Target(server, key), run), as_json)


@budgets_app.command("set")
def set_all(
    document: Annotated[str | None, typer.Option(metavar="USD", help="Budget per document.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="USD", help="Monthly budget per owner.")] = None,
    month: Annotated[str | None, typer.Option(metavar="USD", help="Monthly budget for all owners together.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Set the budgets of this installation, in US dollars (administrators only).

    `usual` restores the default from the settings.
    """
    given = {"document": document, "owner": owner, "month": month}
    changes = {name: read_dollars(typed) for name, typed in given.items() if typed is not None}
    if not changes:
        raise BadInput("Use at least one of --document, --owner and --month.")

    async def run(client: Client) -> BudgetsInForce:
        return await client.set_budgets(changes)

    print_budgets(call(Target(server, key), run), as_json)


@budgets_app.command("raise")
def raise_one(
    document: Annotated[str, ID],
    dollars: Annotated[str, typer.Argument(metavar="USD", help="Amount in US dollars, or `usual` for the default.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Set the budget of one document. Jobs that were paused by the old budget resume."""
    most = read_dollars(dollars)

    async def run(client: Client) -> DocumentBudget:
        (found,) = await find_ids(client, [document])
        return await client.set_document_budget(found, most)

    print_budgets(call(Target(server, key), run), as_json)


def print_budgets(found: BudgetsInForce | DocumentBudget, as_json: bool) -> None:
    from octavo.records.account import DocumentBudget

    if as_json:
        return print_json(found)
    facts = document_facts(found) if isinstance(found, DocumentBudget) else budget_facts(found)
    return print_on(open_console(), make_facts(facts))


def budget_facts(found: BudgetsInForce) -> dict[str, str | None]:
    everybody = found.everybody_usd
    return {
        "Document": describe(found.document),
        "Owner": f"{describe(found.owner)} per month, {usd(found.spent_usd)} spent",
        "All owners": f"{describe(found.month)} per month, {usd(everybody or 0)} spent" if found.month else None,
    }


def document_facts(found: DocumentBudget) -> dict[str, str | None]:
    waits = f"{count_of(found.paused, 'job')} for about {usd(found.needed_usd)}"
    refused = f"; stopped by {EXCEEDED[found.over]}" if found.over else ""
    return {
        "Budget": f"{usd(found.usd)}, default {usd(found.usual_usd)}" if found.is_set else usd(found.usd),
        "Spent": usd(found.spent_usd),
        "Maximum": usd(found.most_usd),
        "Waiting": f"{waits}{refused}" if found.paused else None,
    }


def describe(budget: Budget) -> str:
    return f"{usd(budget.usd)} (default {usd(budget.usual_usd)})" if budget.is_set else usd(budget.usd)


def read_dollars(typed: str) -> float | None:
    """Parse an amount in US dollars. Returns None for `usual`, which restores the default.

    The server checks the maximum.
    """
    if typed.strip().lower() == USUAL:
        return None
    if not _AMOUNT.fullmatch(typed.strip()):
        raise BadInput(f"{typed!r} is not an amount. Use 5, 2.50 or {USUAL}.")
    return float(typed)
