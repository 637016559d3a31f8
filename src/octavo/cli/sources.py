"""`octavo sources`: folders, mailboxes and servers whose files become documents."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from octavo.cli.automation import find, shown_id
from octavo.cli.options import AsJson, Key, Server, read_password
from octavo.cli.output import clean, local_time, make_table, open_console, print_items, print_json, print_on
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of
from octavo.core.settings import load_settings

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.client.automation import SourceAction
    from octavo.records.automation import SourceKind, SourceView

sources_app = typer.Typer(help="Watch folders, mailboxes and servers, and add their files.", no_args_is_help=True)
add_app = typer.Typer(help="Add a source.", no_args_is_help=True)
sources_app.add_typer(add_app, name="add")
SourceId = Annotated[str, typer.Argument(metavar="SOURCE", help="Id of the source (or part of it), or its full name.")]
Name = Annotated[str | None, typer.Option(help="Name of the source.")]
User = Annotated[str | None, typer.Option(help="User name.")]
Password = Annotated[
    str | None,
    typer.Option(help="Password. Use - to be prompted for it. It is stored encrypted."),
]
PROMPT = "Password: "


class Subfolders(StrEnum):
    IGNORE = "ignore"
    PLAIN = "plain"
    COLLECTIONS = "collections"
    TAGS = "tags"


class After(StrEnum):
    KEEP = "keep"
    MOVE = "move"


class AfterMail(StrEnum):
    KEEP = "keep"
    SEEN = "seen"
    MOVE = "move"


class Changed(StrEnum):
    VERSION = "version"
    NEW = "new"


SubfolderOption = Annotated[
    Subfolders,
    typer.Option(
        help="How to treat sub-folders: ignore them, add their files (plain), or also use their names as collections "
        "or tags."
    ),
]
ChangedOption = Annotated[
    Changed, typer.Option(help="A changed file becomes a new version of its document, or a new document.")
]


@add_app.command("folder")
def add_folder(  # noqa: PLR0917 - each is an option of the command
    path: Annotated[str, typer.Argument(metavar="PATH", help="Folder on the server.")],
    name: Name = None,
    subfolders: SubfolderOption = Subfolders.PLAIN,
    after: Annotated[
        After, typer.Option(help="Keep added files where they are, or move them to the sub-folder `added`.")
    ] = After.KEEP,
    changed: ChangedOption = Changed.VERSION,
    every: Annotated[int, typer.Option(min=2, max=86400, help="Seconds between checks of the folder.")] = 10,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Watch a folder on the server, and add its files as documents.

    Octavo never deletes the files. If a file is deleted, its document is kept.
    """
    options = {"subfolders": subfolders.value, "after": after.value, "changed": changed.value}
    more = {"options": options, "every_seconds": every, "name": name}
    _add("folder", _absolute(path, server), more, Target(server, key), as_json=as_json)


@add_app.command("imap")
def add_mailbox(  # noqa: PLR0917 - each is an option of the command
    address: Annotated[str, typer.Argument(metavar="URL", help="Mailbox, such as imaps://mail.example.org/INBOX.")],
    user: Annotated[str, typer.Option(help="User name for the mail server.")],
    password: Annotated[
        str,
        typer.Option(
            help="Password, or the refresh token for OAuth. Use - to be prompted for it. It is stored encrypted."
        ),
    ] = "-",  # noqa: S107
    name: Name = None,
    after: Annotated[
        AfterMail, typer.Option(help="Keep added emails as they are, mark them as seen, or move them.")
    ] = AfterMail.KEEP,
    move_to: Annotated[str | None, typer.Option(help="Mailbox to which added emails are moved.")] = None,
    sender: Annotated[str | None, typer.Option(help="Only emails with this text in the sender.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only emails with this text in the subject.")] = None,
    attachments: Annotated[bool, typer.Option("--attachments", help="Only emails with attachments.")] = False,
    token_url: Annotated[str | None, typer.Option(help="OAuth: URL that returns access tokens.")] = None,
    client_id: Annotated[str | None, typer.Option(help="OAuth: client id.")] = None,
    client_secret: Annotated[
        str | None, typer.Option(help="OAuth: client secret. Use - to be prompted for it.")
    ] = None,
    every: Annotated[int, typer.Option(min=10, max=86400, help="Seconds between checks.")] = 60,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Watch a mailbox. Each email and each attachment becomes a document. No email is ever deleted."""
    options: dict[str, Any] = {"after": after.value, "attachments": attachments}
    options |= _given(move_to=move_to, sender=sender, subject=subject)
    more = {"options": options, "every_seconds": every, "name": name, "user": user, "token_url": token_url}
    more |= {"client_id": client_id, "client_secret": read_password(client_secret, "Client secret: ")}
    more |= {"password": read_password(password, PROMPT)}
    _add("imap", address, more, Target(server, key), as_json=as_json)


@add_app.command("s3")
def add_bucket(  # noqa: PLR0917 - each is an option of the command
    address: Annotated[str, typer.Argument(metavar="URL", help="Bucket and prefix, such as s3://bucket/scans.")],
    access_key: Annotated[str, typer.Option(help="Access key.")],
    secret_key: Annotated[
        str, typer.Option(help="Secret key. Use - to be prompted for it. It is stored encrypted.")
    ] = "-",  # noqa: S107
    endpoint: Annotated[str | None, typer.Option(help="URL of the server, if it is not Amazon S3.")] = None,
    region: Annotated[str | None, typer.Option(help="Region. Default: us-east-1.")] = None,
    name: Name = None,
    subfolders: SubfolderOption = Subfolders.PLAIN,
    changed: ChangedOption = Changed.VERSION,
    every: Annotated[int, typer.Option(min=10, max=86400, help="Seconds between checks.")] = 300,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Watch a prefix of an S3 bucket. Objects are never changed or deleted."""
    options = {"subfolders": subfolders.value, "changed": changed.value}
    more = {"options": options, "every_seconds": every, "name": name, "endpoint": endpoint, "region": region}
    more |= {"user": access_key, "password": read_password(secret_key, "Secret key: ")}
    _add("s3", address, more, Target(server, key), as_json=as_json)


@add_app.command("webdav")
def add_dav(  # noqa: PLR0917 - each is an option of the command
    address: Annotated[str, typer.Argument(metavar="URL", help="Folder on a WebDAV server.")],
    user: User = None,
    password: Password = None,
    name: Name = None,
    subfolders: SubfolderOption = Subfolders.PLAIN,
    changed: ChangedOption = Changed.VERSION,
    every: Annotated[int, typer.Option(min=10, max=86400, help="Seconds between checks.")] = 300,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Watch a folder on a WebDAV server, such as Nextcloud. Its files are never changed or deleted."""
    options = {"subfolders": subfolders.value, "changed": changed.value}
    more = {"options": options, "every_seconds": every, "name": name, "user": user}
    more |= {"password": read_password(password, PROMPT)}
    _add("webdav", address, more, Target(server, key), as_json=as_json)


@add_app.command("rss")
def add_feed(
    address: Annotated[str, typer.Argument(metavar="URL", help="Address of an RSS or Atom feed.")],
    name: Name = None,
    every: Annotated[int, typer.Option(min=60, max=86400, help="Seconds between checks.")] = 900,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Watch a feed, and add the web page of each new entry."""
    _add("rss", address, {"every_seconds": every, "name": name}, Target(server, key), as_json=as_json)


@add_app.command("extension")
def add_extension(  # noqa: PLR0917 - each is an option of the command
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="Address of the source. It begins with the name of an installed extension, such as notes://server/folder.",
        ),
    ],
    user: User = None,
    password: Password = None,
    name: Name = None,
    subfolders: SubfolderOption = Subfolders.PLAIN,
    changed: ChangedOption = Changed.VERSION,
    every: Annotated[int, typer.Option(min=10, max=86400, help="Seconds between checks.")] = 300,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Watch a source that an extension provides. `octavo extensions` lists the installed extensions."""
    options = {"subfolders": subfolders.value, "changed": changed.value}
    more = {"options": options, "every_seconds": every, "name": name, "user": user}
    more |= {"password": read_password(password, PROMPT) if user else None}
    _add("extension", address, more, Target(server, key), as_json=as_json)


@add_app.command("lmtp")
def add_address(
    address: Annotated[
        str, typer.Argument(metavar="NAME", help="Part of the email address before the @, such as scans.")
    ],
    name: Name = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Add an email address. Each email that a mail server delivers to this address over LMTP becomes a document.

    `octavo up` receives emails if OCTAVO_LMTP_LISTEN is set. `octavo lmtp` receives them without `octavo up`.
    """
    _add("lmtp", address, {"name": name}, Target(server, key), as_json=as_json)


def _add(kind: SourceKind, path: str, more: dict[str, Any], target: Target, *, as_json: bool) -> None:
    async def run(client: Client) -> SourceView:
        return await client.automation.add_source(kind, path, **_given(**more))

    made = call(target, run)
    if as_json:
        return print_json(made)
    if made.kind == "lmtp":
        return typer.echo(
            f"Emails to {clean(made.path)} become documents if OCTAVO_LMTP_LISTEN is set, or while `octavo lmtp` runs."
        )
    return typer.echo(f"Watching {clean(made.path)} every {count_of(made.every_seconds, 'second')}.")


def _given(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _absolute(path: str, server: str | None) -> str:
    """Make a path absolute if the server is this machine. Otherwise, return it unchanged."""
    if server is None and load_settings().server is None:
        return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - the server resolves links
    return path


@sources_app.command("ls")
def list_sources(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List sources with their state and the number of their files."""

    async def run(client: Client) -> list[SourceView]:
        return await client.automation.list_sources()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No sources yet. Add one with `octavo sources add`.")
    console = open_console()
    head = ["ID", "NAME", "STATE", "ADDED", "WAITING", "FAILED", "LAST RUN", "NEXT RUN", "KIND", "PATH"]
    rows = [_source_row(one, whole_id=not console.is_terminal) for one in found]
    print_on(console, make_table(console, head, rows))
    for one in found:
        if one.error:
            typer.echo(f"{clean(one.name)}: {clean(one.error)}", err=True)
    return None


def _source_row(one: SourceView, *, whole_id: bool) -> list[str]:
    counts = one.counts
    return [
        *(shown_id(one.id, whole=whole_id), clean(one.name), one.state, str(counts.added + counts.known)),
        *(str(counts.waiting), str(counts.failed), local_time(one.last_run) if one.last_run else "never"),
        *(_next_run(one), one.kind, clean(one.path)),
    ]


def _next_run(one: SourceView) -> str:
    if one.next_run is None:
        return "paused"
    return "on delivery" if one.kind == "lmtp" else local_time(one.next_run)


@sources_app.command("edit")
def edit_source(  # noqa: PLR0917 - each is an option of the command
    source: SourceId,
    name: Name = None,
    every: Annotated[int | None, typer.Option(min=2, max=86400, help="Seconds between checks.")] = None,
    subfolders: Annotated[Subfolders | None, typer.Option(help="How to treat sub-folders.")] = None,
    changed: Annotated[Changed | None, typer.Option(help="How to treat changed files.")] = None,
    after: Annotated[AfterMail | None, typer.Option(help="What happens to added files or emails.")] = None,
    move_to: Annotated[str | None, typer.Option(help="Mailbox to which added emails are moved.")] = None,
    sender: Annotated[str | None, typer.Option(help="Only emails with this text in the sender. '' for all.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only emails with this text in the subject. '' for all.")] = None,
    attachments: Annotated[
        bool | None, typer.Option("--attachments/--all-emails", help="Only emails with attachments, or all.")
    ] = None,
    password: Annotated[str | None, typer.Option(help="New password. Use - to be prompted for it.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Change the name, the interval, the options or the password of a source. Its address cannot be changed."""
    chosen = {"subfolders": subfolders, "changed": changed, "after": after}
    options: dict[str, Any] = {one: value.value for one, value in chosen.items() if value}
    options |= _given(move_to=move_to, attachments=attachments)
    options |= {one: text or None for one, text in _given(sender=sender, subject=subject).items()}
    changes = _given(name=name, every_seconds=every, options=options or None, password=read_password(password, PROMPT))
    if not changes:
        raise BadInput("Nothing to change. Use --name, --every, --password or one of the other options.")

    async def run(client: Client) -> SourceView:
        known = {one.id: one.name for one in await client.automation.list_sources()}
        return await client.automation.edit_source(find(source, known, "source"), changes)

    edited = call(Target(server, key), run)
    return print_json(edited) if as_json else typer.echo(f"Changed the source {clean(edited.name)}.")


@sources_app.command("run")
def run_source(source: SourceId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Check a source for new files now. Files that could not be added are retried."""
    _act_on_source(source, "run", Target(server, key), as_json=as_json)


@sources_app.command("pause")
def pause_source(source: SourceId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Pause a source. Files that arrive during the pause are added when the source is resumed."""
    _act_on_source(source, "pause", Target(server, key), as_json=as_json)


@sources_app.command("resume")
def resume_source(source: SourceId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Resume a paused source."""
    _act_on_source(source, "resume", Target(server, key), as_json=as_json)


def _act_on_source(source: str, action: SourceAction, target: Target, *, as_json: bool) -> None:
    async def run(client: Client) -> SourceView:
        known = {one.id: one.name for one in await client.automation.list_sources()}
        return await client.automation.act_on_source(find(source, known, "source"), action)

    changed = call(target, run)
    return print_json(changed) if as_json else typer.echo(f"{clean(changed.name)}: {changed.state}.")


@sources_app.command("rm")
def remove_source(source: SourceId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Stop watching a source. Its files, and the documents made from them, are kept."""

    async def run(client: Client) -> UUID:
        known = {one.id: one.name for one in await client.automation.list_sources()}
        wanted = find(source, known, "source")
        await client.automation.delete_source(wanted)
        return wanted

    removed = call(Target(server, key), run)
    if as_json:
        return print_json({"id": str(removed)})
    return typer.echo("Source removed. Its documents and files are kept.")
