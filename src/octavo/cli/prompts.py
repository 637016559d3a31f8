"""`octavo prompts`: manages the prompts for analyses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.options import AsJson, Key, Server, find_among
from octavo.cli.output import make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.analyses import Prompt

app = typer.Typer(help="Manage the prompts for `octavo analyse`.", no_args_is_help=True)

Title = Annotated[str | None, typer.Option(help="Title of the prompt.")]
System = Annotated[str | None, typer.Option(help="System prompt: instructions for the answer.")]
Order = Annotated[int | None, typer.Option(min=0, help="Prompts with a lower number run first.")]
Active = Annotated[bool | None, typer.Option(help="Run this prompt when no prompt is named.")]
Which = Annotated[str, typer.Argument(metavar="PROMPT", help="Title of the prompt, or part of its id.")]


@app.command("ls")
def list_all(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List prompts in order of execution."""

    async def run(client: Client) -> list[Prompt]:
        return await client.analyses.list_prompts()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    console = open_console()
    head = ["ID", "TITLE", "PROMPT", "ORDER", "VERSION", "ACTIVE", "FROM"]
    return print_on(console, make_table(console, head, [row_of(one) for one in found], flexible=(1, 2)))


@app.command()
def add(
    content: Annotated[str, typer.Argument(metavar="TEXT", help="Text of the prompt.")],
    title: Title = None,
    system: System = None,
    order: Order = None,
    active: Active = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Add a prompt."""
    more = without_none(system=system, execution_order=order, active=active)

    async def run(client: Client) -> Prompt:
        return await client.analyses.add_prompt(title or content[:60], content, **more)

    made = call(Target(server, key), run)
    return print_json(made) if as_json else typer.echo(f"{short_id(made.id)}  {made.title}")


@app.command()
def edit(  # noqa: PLR0917 - each is an option of the command
    prompt: Which,
    content: Annotated[str | None, typer.Option("--text", help="Text of the prompt.")] = None,
    title: Title = None,
    system: System = None,
    order: Order = None,
    active: Active = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Edit a prompt. Changing its text creates a new version; existing answers still refer to the old version."""
    changes = without_none(content=content, title=title, system=system, execution_order=order, active=active)
    if not changes:
        raise BadInput("Nothing to change. Use at least one option.")

    async def run(client: Client) -> Prompt:
        return await client.analyses.change_prompt(await find_prompt(client, prompt), **changes)

    changed = call(Target(server, key), run)
    return print_json(changed) if as_json else typer.echo(f"{changed.title}: version {changed.version}")


@app.command()
def rm(prompt: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Delete a prompt. Its answers are kept."""

    async def run(client: Client) -> UUID:
        found = await find_prompt(client, prompt)
        await client.analyses.delete_prompt(found)
        return found

    gone = call(Target(server, key), run)
    return print_json({"deleted": gone}) if as_json else typer.echo("Deleted.")


async def find_prompt(client: Client, typed: str) -> UUID:
    return choose_prompt(typed, await client.analyses.list_prompts())


def choose_prompt(typed: str, known: Sequence[Prompt]) -> UUID:
    """Find a prompt by its title, its id or part of its id. A title works only if exactly one prompt has it."""
    named = [one.id for one in known if one.title.casefold() == typed.strip().casefold()]
    if len(named) == 1:
        return named[0]
    return find_among(typed, {one.id: one.title for one in known}, "prompt", "octavo prompts ls")


def without_none(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def row_of(prompt: Prompt) -> list[str]:
    return [
        short_id(prompt.id),
        prompt.title,
        prompt.content,
        str(prompt.execution_order),
        str(prompt.version),
        "yes" if prompt.active else "no",
        "Octavo" if prompt.built_in else "you",
    ]
