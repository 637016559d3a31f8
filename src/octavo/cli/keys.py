"""`octavo keys`: API keys for programs, and for using this command line from other machines."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.names import find_among
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import local_time, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call

if TYPE_CHECKING:
    from octavo.client import Client, NewKey
    from octavo.core.pagination import Page
    from octavo.records.account import KeyView

app = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)


class Scope(StrEnum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name of the key, such as laptop.")],
    scope: Annotated[Scope, typer.Option(help="Permissions of the key.")] = Scope.WRITE,
    days: Annotated[
        int | None, typer.Option(min=1, max=3650, help="Days until the key expires. Default: no expiry.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Create an API key. It is shown only once."""

    async def run(client: Client) -> NewKey:
        return await client.make_key(name, scope.value, days)

    made = call(Target(server, key), run)
    if as_json:
        return print_json(made)
    typer.echo(made.key)
    typer.echo(
        "Save the key now: it will not be shown again. Set it as OCTAVO_KEY, together with OCTAVO_SERVER.", err=True
    )
    return None


@app.command("ls")
def list_all(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List valid keys, newest first."""

    async def run(client: Client) -> Page[KeyView]:
        return await client.list_keys()

    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    if not page.items:
        return typer.echo("No keys yet. Create one with `octavo keys add NAME`.")
    console = open_console()
    head = ["ID", "NAME", "KEY", "SCOPE", "LAST USED", "EXPIRES"]
    rows = [row_of(one, whole_id=not console.is_terminal) for one in page.items]
    return print_on(console, make_table(console, head, rows))


@app.command()
def rm(
    keys: Annotated[list[str], typer.Argument(metavar="ID", help="Key ids (or parts of them), or full key names.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Revoke keys. They stop working immediately."""

    async def run(client: Client) -> int:
        known = (await client.list_keys()).items
        wanted = {find_key(one, known) for one in keys}
        for one in wanted:
            await client.revoke_key(one)
        return len(wanted)

    revoked = call(Target(server, key), run)
    if as_json:
        return print_json({"changed": revoked})
    return typer.echo(f"Revoked: {revoked}.")


def find_key(typed: str, known: Sequence[KeyView]) -> UUID:
    """Find a key by its name, its id or part of its id. A name works only if exactly one key has it."""
    named = [one.id for one in known if one.name == typed]
    if len(named) == 1:
        return named[0]
    return find_among(typed, {one.id: one.name for one in known}, "key", "octavo keys ls")


def row_of(key: KeyView, *, whole_id: bool) -> list[str]:
    return [
        str(key.id) if whole_id else short_id(key.id),
        key.name,
        f"{key.start}…",
        key.scope,
        local_time(key.last_used_at) if key.last_used_at else "never",
        local_time(key.expires_at) if key.expires_at else "never",
    ]
