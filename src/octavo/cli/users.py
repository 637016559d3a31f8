"""`octavo users`: the people who use an installation, invitations, and links that set a new password."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.options import AsJson, Key, Server, find_among
from octavo.cli.output import local_time, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.pagination import Page
    from octavo.records.account import Invitation, NewInvitation, ResetLink, UserAccount

app = typer.Typer(help="List users, invite people, and create links for setting a new password.", no_args_is_help=True)
Email = Annotated[str, typer.Argument(metavar="EMAIL", help="Email address of the person.")]


class Role(StrEnum):
    READER = "reader"
    MEMBER = "member"
    OWNER = "owner"


@app.command("ls")
def list_all(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List all accounts of the installation, newest first. Only administrators can do this."""

    async def run(client: Client) -> Page[UserAccount]:
        return await client.list_users()

    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    console = open_console()
    rows = [[", ".join(one.members) or one.kind, str(one.documents), local_time(one.created_at)] for one in page.items]
    return print_on(console, make_table(console, ["PEOPLE", "DOCUMENTS", "CREATED"], rows))


@app.command()
def invite(
    email: Email,
    role: Annotated[Role, typer.Option(help="Role of the new member.")] = Role.MEMBER,
    days: Annotated[int | None, typer.Option(min=1, max=90, help="Days until the link expires. Default: 7.")] = None,
    limited: Annotated[
        bool, typer.Option("--limited", help="Show only the collections that you grant with `octavo grants add`.")
    ] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Invite a person to your account. Prints a link that works once."""

    async def run(client: Client) -> NewInvitation:
        return await client.invite(email, role.value, days, limited=limited)

    made = call(Target(server, key), run)
    if as_json:
        return print_json(made)
    typer.echo(made.link)
    sent = "The link was also sent by mail." if made.mailed else "Send the link to the person."
    return typer.echo(f"{sent} It works once, until {local_time(made.expires_at)}.", err=True)


@app.command()
def invitations(
    withdraw: Annotated[str | None, typer.Option(metavar="ID", help="Withdraw this invitation.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List the open invitations to your account, or withdraw one."""

    async def run(client: Client) -> list[Invitation]:
        known = await client.list_invitations()
        if withdraw is None:
            return known
        names = {one.id: one.email for one in known}
        await client.withdraw_invitation(find_among(withdraw, names, "invitation", "octavo users invitations"))
        return await client.list_invitations()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No open invitations.")
    console = open_console()
    rows = [
        [str(one.id) if not console.is_terminal else short_id(one.id), one.email, one.role, local_time(one.expires_at)]
        for one in found
    ]
    return print_on(console, make_table(console, ["ID", "EMAIL", "ROLE", "EXPIRES"], rows))


@app.command("reset-link")
def reset_link(
    email: Email,
    clear_second_factor: Annotated[
        bool, typer.Option("--clear-second-factor", help="Also remove the second factor, if the phone was lost.")
    ] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Print a link that lets a person set a new password. Only administrators can do this."""

    async def run(client: Client) -> ResetLink:
        return await client.make_reset_link(email, clear_second_factor=clear_second_factor)

    made = call(Target(server, key), run)
    if as_json:
        return print_json(made)
    typer.echo(made.link)
    return typer.echo(f"The link works once, until {local_time(made.expires_at)}.", err=True)
