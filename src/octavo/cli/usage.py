"""`octavo usage`: what models cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import print_json
from octavo.cli.remote import Target, call
from octavo.cli.tables import make_facts, make_table, open_console, print_on, short_id
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.account import Usage

app = typer.Typer()


@app.command()
def usage(
    month: Annotated[str | None, typer.Option(metavar="YYYY-MM", help="Another month than this one, in UTC.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show what models cost in a month: by purpose, model and document, and what was saved by using answers again."""

    async def run(client: Client) -> Usage:
        return await client.read_usage(month)

    found = call(Target(server, key), run)
    if as_json:
        return print_json(found)
    console = open_console()
    print_on(console, make_facts(facts_of(found)))
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


def facts_of(found: Usage) -> dict[str, str | None]:
    estimated = f", {usd(found.estimated_usd)} of it estimated" if found.estimated_usd else ""
    return {
        "Month": found.month,
        "Cost": f"{usd(found.cost_usd)} of {usd(found.budget_usd)}{estimated}",
        "Open": usd(found.reserved_usd) if found.reserved_usd else None,
        "Saved": f"{usd(found.saved_usd)} by using {count_of(found.reuses, 'answer')} again" if found.reuses else None,
        "Calls": f"{found.calls:,}",
        "Tokens": f"{found.tokens_in:,} read, {found.tokens_out:,} written",
        "Everybody": usd(found.everybody_usd) if found.everybody_usd is not None else None,
        "Before": ", ".join(f"{one.month} {usd(one.cost_usd)}" for one in found.months if one.month != found.month),
    }


def usd(amount: float) -> str:
    """Small amounts with the digits that matter."""
    return f"{amount:.2f} USD" if amount >= 1 or not amount else f"{amount:.4f} USD"
