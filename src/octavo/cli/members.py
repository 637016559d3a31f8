"""`octavo members`, `octavo groups` and `octavo grants`: the members of an account, and the collections they see.

`octavo users`: the people who use an installation, invitations, and password reset links.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.options import AsJson, Key, Server, find_among
from octavo.cli.output import clean, local_time, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from rich.console import Console

    from octavo.client import Client
    from octavo.records.account import Grant, Group, Member

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.http import Page
    from octavo.records.account import Invitation, NewInvitation, ResetLink, UserAccount


app = typer.Typer(help="List users, invite people, and create links for setting a new password.", no_args_is_help=True)
UserEmail = Annotated[str, typer.Argument(metavar="EMAIL", help="Email address of the person.")]


class Role(StrEnum):
    READER = "reader"
    MEMBER = "member"
    OWNER = "owner"


class Language(StrEnum):
    EN = "en"
    DE = "de"
    ES = "es"
    FR = "fr"
    ZH = "zh"
    BROWSER = "browser"


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
    email: UserEmail,
    role: Annotated[Role, typer.Option(help="Role of the new member.")] = Role.MEMBER,
    days: Annotated[int | None, typer.Option(min=1, max=90, help="Days until the link expires. Default: 7.")] = None,
    limited: Annotated[
        bool,
        typer.Option("--limited", help="The new member sees only collections that you grant with `octavo grants add`."),
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
    sent = "The link was also sent by email." if made.mailed else "Send the link to the person."
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
    email: UserEmail,
    clear_second_factor: Annotated[
        bool,
        typer.Option("--clear-second-factor", help="Also remove the second factor, for example if the phone was lost."),
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


@app.command()
def language(
    email: UserEmail,
    chosen: Annotated[
        Language, typer.Argument(metavar="LANGUAGE", help="en, de, es, fr or zh; `browser` removes the choice.")
    ],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Set the language of a person's pages and emails. Only administrators can do this."""
    kept = None if chosen is Language.BROWSER else chosen.value

    async def run(client: Client) -> None:
        await client.set_language_of(email, kept)

    call(Target(server, key), run)
    return print_json({"email": email, "language": kept}) if as_json else typer.echo(f"{clean(email)}: {chosen.value}")


members_app = typer.Typer(help="List the members of your account, and change what they can do.", no_args_is_help=True)
groups_app = typer.Typer(help="Manage groups of members who are granted the same collections.", no_args_is_help=True)
grants_app = typer.Typer(help="Manage which collections limited members and groups can see.", no_args_is_help=True)
Email = Annotated[str, typer.Argument(metavar="EMAIL", help="Email address of the member.")]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.")]


# Members -----------------------------------------------------------------------------------------------------------


@members_app.command("ls")
def list_members(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List the members of your account."""

    async def run(client: Client) -> list[Member]:
        return await client.list_members()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    console = open_console()
    rows = [
        [one.email, one.role, "granted collections" if one.limited else "everything", local_time(one.created_at)]
        for one in found
    ]
    return print_on(console, make_table(console, ["EMAIL", "ROLE", "SEES", "SINCE"], rows))


@members_app.command("edit")
def edit_member(
    email: Email,
    role: Annotated[Role | None, typer.Option(help="New role.")] = None,
    limited: Annotated[
        bool | None,
        typer.Option("--limited/--unlimited", help="Whether the member sees only the collections that you grant."),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Change the role of a member, or limit the member to granted collections."""
    if role is None and limited is None:
        raise BadInput("Nothing to change. Use --role, --limited or --unlimited.")

    async def run(client: Client) -> Member:
        user = find_member(await client.list_members(), email)
        return await client.edit_member(user, role.value if role else None, limited=limited)

    changed = call(Target(server, key), run)
    if as_json:
        return print_json(changed)
    sees = "granted collections only" if changed.limited else "everything"
    return typer.echo(f"{changed.email}: {changed.role}, sees {sees}.")


@members_app.command("rm")
def remove_member(email: Email, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Remove a member. Their sessions and API keys for your account stop working."""

    async def run(client: Client) -> None:
        await client.delete_member(find_member(await client.list_members(), email))

    call(Target(server, key), run)
    return print_json({"changed": 1}) if as_json else typer.echo(f"Removed: {email}.")


def find_member(known: Iterable[Member], email: str) -> UUID:
    for one in known:
        if one.email == email.strip().lower():
            return one.user_id
    raise NotFound(f"{email} is not a member. `octavo members ls` lists the members.")


# Groups ------------------------------------------------------------------------------------------------------------


@groups_app.command("ls")
def list_groups(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List the groups and their members."""

    async def run(client: Client) -> list[Group]:
        return await client.list_groups()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No groups yet. Create one with `octavo groups add NAME`.")
    console = open_console()
    rows = [[clean(one.name), ", ".join(person.email for person in one.members)] for one in found]
    return print_on(console, make_table(console, ["GROUP", "MEMBERS"], rows))


@groups_app.command("add")
def add_group(
    group: GroupName,
    members: Annotated[list[str] | None, typer.Argument(metavar="EMAIL", help="Members to add to the group.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Create a group, or add members to an existing one."""

    async def run(client: Client) -> Group:
        people = await client.list_members() if members else []
        wanted = [find_member(people, email) for email in members or ()]
        known = [one for one in await client.list_groups() if one.name.lower() == group.strip().lower()]
        made = known[0] if known else await client.add_group(group)
        for user in wanted:
            made = await client.add_to_group(made.id, user)
        return made

    made = call(Target(server, key), run)
    return print_json(made) if as_json else typer.echo(f"{made.name}: {count_members(made)}.")


def count_members(group: Group) -> str:
    return "1 member" if len(group.members) == 1 else f"{len(group.members)} members"


@groups_app.command("rm")
def remove_group(
    group: GroupName,
    members: Annotated[
        list[str] | None, typer.Argument(metavar="EMAIL", help="Remove only these members from the group.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Delete a group and its grants, or remove members from it. The people in it stay members of your account."""

    async def run(client: Client) -> int:
        wanted = find_group(await client.list_groups(), group)
        if not members:
            await client.delete_group(wanted)
            return 1
        people = await client.list_members()
        for user in [find_member(people, email) for email in members]:
            await client.remove_from_group(wanted, user)
        return len(members)

    changed = call(Target(server, key), run)
    return print_json({"changed": changed}) if as_json else typer.echo(f"Removed: {changed}.")


def find_group(known: Iterable[Group], name: str) -> UUID:
    for one in known:
        if one.name.lower() == name.strip().lower():
            return one.id
    raise NotFound(f"There is no group {name!r}. `octavo groups ls` lists the groups.")


# Grants ------------------------------------------------------------------------------------------------------------


class Access(StrEnum):
    READ = "read"
    WRITE = "write"


@grants_app.command("ls")
def list_grants(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List the collections that limited members and groups can read or change."""

    async def run(client: Client) -> list[Grant]:
        return await client.list_grants()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No grants yet. Create one with `octavo grants add COLLECTION --to EMAIL`.")
    console = open_console()
    rows = [[_shown_id(console, one), clean(one.collection), _receiver(one), one.access] for one in found]
    return print_on(console, make_table(console, ["ID", "COLLECTION", "GRANTED TO", "ACCESS"], rows))


def _shown_id(console: Console, grant: Grant) -> str:
    return short_id(grant.id) if console.is_terminal else str(grant.id)


def _receiver(grant: Grant) -> str:
    return grant.email or f"group {clean(grant.group_name or '')}"


@grants_app.command("add")
def add_grant(
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection.")],
    to: Annotated[str | None, typer.Option(metavar="EMAIL", help="The member who gets access.")] = None,
    group: Annotated[str | None, typer.Option(help="The group that gets access.")] = None,
    access: Annotated[Access, typer.Option(help="Read only, or also add and change documents.")] = Access.READ,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Let a limited member or a group see a collection. Replaces an earlier grant of this collection to the same member
    or group.
    """
    if (to is None) == (group is None):
        raise BadInput("Specify a member with --to, or a group with --group.")

    async def run(client: Client) -> Grant:
        known = {one.name.lower(): one.id for one in await client.list_collections()}
        wanted = known.get(collection.strip().lower())
        if wanted is None:
            raise NotFound(f"There is no collection {collection!r}. `octavo collections ls` lists the collections.")
        if group is not None:
            return await client.grant(wanted, access.value, group=find_group(await client.list_groups(), group))
        return await client.grant(wanted, access.value, user=find_member(await client.list_members(), to or ""))

    made = call(Target(server, key), run)
    return print_json(made) if as_json else typer.echo(f"{_receiver(made)}: {made.access} {made.collection}.")


@grants_app.command("rm")
def remove_grant(
    grants: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of grants, or parts of them.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Withdraw grants. Members lose access from their next request on."""

    async def run(client: Client) -> int:
        known = {one.id: one.collection for one in await client.list_grants()}
        wanted = {find_among(one, known, "grant", "octavo grants ls") for one in grants}
        for one in wanted:
            await client.withdraw_grant(one)
        return len(wanted)

    withdrawn = call(Target(server, key), run)
    return print_json({"changed": withdrawn}) if as_json else typer.echo(f"Withdrawn: {withdrawn}.")
