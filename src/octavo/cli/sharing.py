"""`octavo shares` and `octavo audit`: links that share documents and collections, and the log of actions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.options import AsJson, Key, Server, find_among
from octavo.cli.output import clean, local_time, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.http import Page
    from octavo.records.account import AuditEntry, NewShare, Share

app = typer.Typer(help="Create, list and revoke links that share documents and collections.", no_args_is_help=True)
audit_app = typer.Typer()
Day = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Day, such as 2026-11-18.")]


@app.command()
def add(
    document: Annotated[str | None, typer.Argument(metavar="[ID]", help="Id of a document.")] = None,
    collection: Annotated[str | None, typer.Option(help="Name of a collection to share instead.")] = None,
    days: Annotated[int | None, typer.Option(min=1, max=365, help="Days until the link expires. Default: 7.")] = None,
    sign_in: Annotated[bool, typer.Option("--sign-in", help="Only people with an account can open the link.")] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Create a link that lets others read a document or a collection. The link is shown only once."""
    if (document is None) == (collection is None):
        raise BadInput("Specify a document, or a collection with --collection.")

    async def run(client: Client) -> NewShare:
        if collection is not None:
            known = {one.id: one.name for one in await client.list_collections()}
            named = [ident for ident, name in known.items() if name == collection]
            chosen = named[0] if named else find_among(collection, known, "collection", "octavo collections ls")
            return await client.share(collection=chosen, expires_in_days=days, sign_in=sign_in)
        return await client.share(document=read_id(document or ""), expires_in_days=days, sign_in=sign_in)

    made = call(Target(server, key), run)
    if as_json:
        return print_json(made)
    typer.echo(made.link)
    return typer.echo(f"The link works until {local_time(made.expires_at)}.", err=True)


def read_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadInput(f"{text!r} is not the id of a document. `octavo ls --json` prints ids.") from None


@app.command("ls")
def list_all(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List the links that are valid, newest first."""

    async def run(client: Client) -> list[Share]:
        return await client.list_shares()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No links yet. Create one with `octavo shares add ID`.")
    console = open_console()
    rows = [
        [
            str(one.id) if not console.is_terminal else short_id(one.id),
            clean(one.name),
            "with sign-in" if one.sign_in else "anybody",
            local_time(one.expires_at),
        ]
        for one in found
    ]
    return print_on(console, make_table(console, ["ID", "SHOWS", "FOR", "EXPIRES"], rows))


@app.command()
def rm(
    shares: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of links, or parts of them.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Revoke links. They stop working immediately."""

    async def run(client: Client) -> int:
        known = {one.id: one.name for one in await client.list_shares()}
        wanted = {find_among(one, known, "link", "octavo shares ls") for one in shares}
        for one in wanted:
            await client.revoke_share(one)
        return len(wanted)

    revoked = call(Target(server, key), run)
    return print_json({"changed": revoked}) if as_json else typer.echo(f"Revoked: {revoked}.")


@audit_app.command()
def audit(
    action: Annotated[
        str | None,
        typer.Option(help="Only this action, such as key.add, or this group of actions, such as member."),
    ] = None,
    since: Day = None,
    until: Day = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print all actions as CSV.")] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List the actions of people and programs in your account, newest first."""
    first, last = since.date() if since else None, until.date() if until else None

    async def export(client: Client) -> bytes:
        return await client.export_audit(action=action, since=first, until=last)

    async def run(client: Client) -> Page[AuditEntry]:
        return await client.list_audit(action=action, since=first, until=last)

    if csv:
        return typer.echo(call(Target(server, key), export).decode(), nl=False)
    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    console = open_console()
    rows = [[local_time(one.at), one.actor or "visitor", one.action, clean(one.thing or "")] for one in page.items]
    return print_on(console, make_table(console, ["TIME", "PERSON", "ACTION", "OBJECT"], rows))
