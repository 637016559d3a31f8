"""`octavo keys`, `login`, `logout` and `profiles`: API keys for programs, and the servers that this command line uses.

A profile is a server with an API key, stored in the user's configuration folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.options import PROMPT_FOR_IT, AsJson, Key, Server, find_among, read_password
from octavo.cli.output import clean, local_time, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import LOCAL, PROFILE_NAME, Profile, Profiles, Target, call
from octavo.core.errors import BadInput

if TYPE_CHECKING:
    from octavo.client import Client, NewKey
    from octavo.core.http import Page
    from octavo.records.account import KeyView, Me

DEFAULT_PROFILE = "default"

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
        "Save the key now: it will not be shown again. Use it with `octavo login`, or set OCTAVO_KEY.",
        err=True,
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


# Profiles -----------------------------------------------------------------------------------------------------------

profiles_app = typer.Typer()
ProfileName = Annotated[str, typer.Option("--profile", metavar="NAME", help="Name of the profile.")]


@profiles_app.command()
def login(
    server: Annotated[str, typer.Argument(metavar="URL", help="Address of the server.")],
    key: Annotated[
        str,
        typer.Option(metavar="KEY", help="API key. Use - to be prompted for it or to read it from standard input."),
    ] = PROMPT_FOR_IT,
    profile: ProfileName = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Save a server and an API key as a profile. Commands use it until you log out or log in to another server.

    The key is stored in your configuration folder, where only you can read it. Create the key on the server, in the
    settings or with `octavo keys add`.
    """
    from octavo.client.transport import read_address, read_key

    if profile == LOCAL or not PROFILE_NAME.fullmatch(profile):
        raise BadInput(f"{profile!r} cannot be the name of a profile. Use letters, digits, - and _.")
    secret = read_key(read_password(key, "API key: ") or "")

    async def run(client: Client) -> Me:
        return await client.show_me()

    address = read_address(server)
    me = call(Target(address, secret), run)
    saved = Profiles.load()
    replace(saved, current=profile, by_name={**saved.by_name, profile: Profile(address, secret)}).save()
    if as_json:
        return print_json({"profile": profile, "server": address, "email": me.email, "scope": me.scope})
    name = f" as {me.email}" if me.email else ""
    return typer.echo(f"Commands now use {address}{name} ({me.scope}). To use this machine again: octavo logout")


@profiles_app.command()
def logout(
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="Profile to delete. Default: the one in use.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Delete a profile with its key. The key itself stays valid until you revoke it."""
    saved = Profiles.load()
    name = profile or saved.current
    if name is None:
        raise BadInput("No profile is in use.")
    saved.find(name)
    kept = {one: found for one, found in saved.by_name.items() if one != name}
    Profiles(None if saved.current == name else saved.current, kept).save()
    if as_json:
        return print_json({"profile": name})
    return typer.echo(f"Deleted the profile {clean(name)}. Its key is still valid: revoke it with `octavo keys rm`.")


@profiles_app.command()
def profiles(
    use: Annotated[
        str | None, typer.Option(metavar="NAME", help="Use this profile from now on; `local` for this machine.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the profiles, or choose the one that commands use."""
    saved = Profiles.load()
    if use is not None:
        if use != LOCAL:
            saved.find(use)
        saved = replace(saved, current=None if use == LOCAL else use)
        saved.save()
    rows = [
        {"name": name, "server": one.server, "current": name == saved.current} for name, one in saved.by_name.items()
    ]
    if as_json:
        return print_items(rows)
    if not rows:
        return typer.echo("No profiles yet. Create one with `octavo login URL`.")
    console = open_console()
    cells = [["*" if one["current"] else "", str(one["name"]), str(one["server"])] for one in rows]
    return print_on(console, make_table(console, ["", "NAME", "SERVER"], cells))
