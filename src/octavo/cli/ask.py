"""`octavo ask`: prints an answer from the documents as it arrives, and then its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import clean, open_console, print_json, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.search import AnswerSources, Citation, Statement

UNVERIFIED = "(not verified)"

app = typer.Typer()


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question, in your own words.")],
    among: Annotated[
        list[str] | None,
        typer.Option("--in", metavar="ID", help="Use only this document (id or part of it). Can be repeated."),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Ask your documents. The answer cites them; quotes that are not in the cited text are marked.

    Exits with code 1 if the documents do not answer the question.
    """
    from octavo.records.search import Statement

    if not question.strip():
        raise BadInput("The question is empty.")

    async def run(client: Client) -> tuple[list[Statement], AnswerSources | None]:
        statements: list[Statement] = []
        sources: AnswerSources | None = None
        async for one in client.ask(question, await find_ids(client, among or ())):
            if isinstance(one, Statement):
                statements.append(one)
                if not as_json:
                    print_statement(one)
            else:
                sources = one
        return statements, sources

    statements, sources = call(Target(server, key), run)
    if as_json:
        print_json({"statements": statements, "sources": sources})
    elif sources:
        print_sources(sources)
    raise typer.Exit(0 if sources and sources.found else 1)


def print_statement(one: Statement) -> None:
    mark = f" {UNVERIFIED}" if one.citations and not one.verified else ""
    open_console().print(f"{clean(one.text)}{mark}", soft_wrap=True)


def print_sources(sources: AnswerSources) -> None:
    console = open_console()
    for one in sources.citations:
        console.print(f"\n[{one.number}] {describe_place(one)}", style="bold", soft_wrap=True)
        console.print(f"    “{clean(one.quote)}”", soft_wrap=True)
    cost = f", {sources.cost_usd:.4f} USD" if sources.cost_usd else ""
    if sources.citations:
        who = "Quotes found offline" if sources.made_by == "local" else f"By {sources.made_by}"
        typer.echo(f"\n{who}{cost}.")


def describe_place(one: Citation) -> str:
    page = f", page {one.page}" if one.page else ""
    mark = "" if one.verified else f" {UNVERIFIED}"
    return f"{clean(one.title)}{page}, {short_id(one.document_id)}{mark}"
