"""`octavo budgets`: what models may cost, for everybody and for one document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import print_json
from octavo.cli.remote import Target, call
from octavo.cli.tables import make_facts, open_console, print_on
from octavo.cli.usage import usd
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.account import Budget, BudgetsInForce, DocumentBudget

app = typer.Typer(help="Show and set what models may cost.", no_args_is_help=True)

USUAL = "usual"
_AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,8})?")
WHOSE = {"document": "its own", "owner": "that of its owner", "month": "that of everybody"}
ID = typer.Argument(metavar="ID", help="A document, by four or more characters of its id.")


@app.command()
def show(
    document: Annotated[str | None, ID] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show what models may cost and what they did this month, or that of one document."""

    async def run(client: Client) -> BudgetsInForce | DocumentBudget:
        if document is None:
            return await client.read_budgets()
        (found,) = await find_ids(client, [document])
        return await client.read_document_budget(found)

    print_budgets(call(Target(server, key), run), as_json)


@app.command("set")
def set_all(
    document: Annotated[str | None, typer.Option(metavar="USD", help="For any document.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="USD", help="For an owner in a month.")] = None,
    month: Annotated[str | None, typer.Option(metavar="USD", help="For all owners in a month.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Set budgets in US dollars for everybody, as their administrator; `usual` is what the settings say."""
    given = {"document": document, "owner": owner, "month": month}
    changes = {name: read_dollars(typed) for name, typed in given.items() if typed is not None}
    if not changes:
        raise BadInput("Say which: --document, --owner or --month.")

    async def run(client: Client) -> BudgetsInForce:
        return await client.set_budgets(changes)

    print_budgets(call(Target(server, key), run), as_json)


@app.command("raise")
def raise_one(
    document: Annotated[str, ID],
    dollars: Annotated[str, typer.Argument(metavar="USD", help="US dollars, or `usual`.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Let models cost up to so much for one document. What waited for it goes on."""
    most = read_dollars(dollars)

    async def run(client: Client) -> DocumentBudget:
        (found,) = await find_ids(client, [document])
        return await client.set_document_budget(found, most)

    print_budgets(call(Target(server, key), run), as_json)


def print_budgets(found: BudgetsInForce | DocumentBudget, as_json: bool) -> None:
    from octavo.records.account import DocumentBudget

    if as_json:
        return print_json(found)
    facts = facts_of_document(found) if isinstance(found, DocumentBudget) else facts_of(found)
    return print_on(open_console(), make_facts(facts))


def facts_of(found: BudgetsInForce) -> dict[str, str | None]:
    everybody = found.everybody_usd
    return {
        "Document": said(found.document),
        "Owner": f"{said(found.owner)} a month, {usd(found.spent_usd)} spent",
        "Everybody": f"{said(found.month)} a month, {usd(everybody or 0)} spent" if found.month else None,
    }


def facts_of_document(found: DocumentBudget) -> dict[str, str | None]:
    waits = f"{count_of(found.paused, 'job')} for about {usd(found.needed_usd)}"
    refused = f"; the budget in the way is {WHOSE[found.over]}" if found.over else ""
    return {
        "Budget": f"{usd(found.usd)}, usually {usd(found.usual_usd)}" if found.is_set else usd(found.usd),
        "Spent": usd(found.spent_usd),
        "Most": usd(found.most_usd),
        "Waiting": f"{waits}{refused}" if found.paused else None,
    }


def said(budget: Budget) -> str:
    return f"{usd(budget.usd)} (the settings say {usd(budget.usual_usd)})" if budget.is_set else usd(budget.usd)


def read_dollars(typed: str) -> float | None:
    """None is what is usual; whether it is too much is for the server to say."""
    if typed.strip().lower() == USUAL:
        return None
    if not _AMOUNT.fullmatch(typed.strip()):
        raise BadInput(f"{typed!r} is no amount: write 5, 2.50 or {USUAL}.")
    return float(typed)
