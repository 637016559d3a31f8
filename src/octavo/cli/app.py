"""The commands that start, stop, check and configure an installation, and that set up shell completion."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from octavo.cli import (
    add,
    analyse,
    automation,
    bulk,
    connections,
    convert,
    costs,
    diff,
    documents,
    edit,
    extract,
    jobs,
    keys,
    mappings,
    members,
    prompts,
    search,
    sharing,
    sources,
    top,
    transfers,
    watch,
    webhooks,
)
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import print_json
from octavo.core.errors import BadInput, NotRunning, StorageFailed
from octavo.core.formatting import format_bytes
from octavo.core.settings import Settings, load_settings, variable_name

if TYPE_CHECKING:
    from octavo.client import Client

NOT_RUNNING = 3
TRACED = ("web", "worker")
MEBIBYTE = 1 << 20

app = typer.Typer(
    name="octavo",
    help="Self-hosted document platform: add documents, search them, ask them questions, and convert them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(add.app)
app.add_typer(documents.app)
app.add_typer(edit.app)
app.add_typer(diff.app)
app.add_typer(connections.app)
app.add_typer(search.app)
app.add_typer(watch.app)
app.add_typer(top.app)
app.add_typer(transfers.app)
app.add_typer(analyse.app)
app.add_typer(costs.usage_app)
app.add_typer(extract.app)
app.add_typer(convert.app)
app.add_typer(costs.models_app, name="models")
app.add_typer(costs.budgets_app, name="budgets")
app.add_typer(keys.profiles_app)
app.add_typer(edit.lists_app)
app.add_typer(edit.collections_app, name="collections")
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(keys.app, name="keys")
app.add_typer(members.app, name="users")
app.add_typer(members.members_app, name="members")
app.add_typer(members.groups_app, name="groups")
app.add_typer(members.grants_app, name="grants")
app.add_typer(sharing.app, name="shares")
app.add_typer(sharing.audit_app)
app.add_typer(jobs.app, name="jobs")
app.add_typer(mappings.app, name="mappings")
app.add_typer(convert.conversions_app, name="conversions")
app.add_typer(analyse.analyses_app, name="analyses")
app.add_typer(prompts.app, name="prompts")
app.add_typer(jobs.schedules_app, name="schedules")
app.add_typer(add.uploads, name="uploads")
app.add_typer(bulk.app, name="bulk")
app.add_typer(sources.sources_app, name="sources")
app.add_typer(automation.fields_app, name="fields")
app.add_typer(automation.rules_app, name="rules")

Parent = Annotated[int | None, typer.Option(hidden=True, help="Stop when the process with this ID ends.")]


def show_version(wanted: bool) -> None:
    if wanted:
        from octavo import __version__

        typer.echo(f"octavo {__version__}")
        raise typer.Exit


@app.callback()
def everything(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Self-hosted document platform: add documents, search them, ask them questions, and convert them."""
    del version


def begin(process: str, parent: int | None = None) -> Settings:
    """Prepare a long-running process: load the settings, and set up logging and tracing.

    If `parent` is given, this process stops when the process with that id ends.
    """
    from octavo.ops.logs import configure_logs
    from octavo.ops.processes import end_with_parent

    if parent is not None:
        end_with_parent(parent)
    settings = load_settings()
    configure_logs(settings.log_level, settings.log_format, process=process)
    if settings.traces_url and process in TRACED:
        from octavo.core.instruments import start_tracing

        start_tracing(process, settings.traces_url)
    return settings


@app.command()
def up(
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="For upgrades: stop the running instance, and take over its port. Requests wait in the meantime.",
        ),
    ] = False,
) -> None:
    """Start Octavo on this machine: database, workers and web server. Ctrl-C stops it."""
    from octavo.ops.ports import open_early

    settings = load_settings()
    listener = open_early(settings.host, settings.port)  # before the modules are loaded, which takes a while
    from octavo.ops.supervise import Supervisor

    begin("up")
    replaces = replace and listener is None

    async def supervise() -> None:
        await Supervisor(settings, typer.echo, listener, replaces=replaces).run()

    asyncio.run(supervise())


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show whether Octavo is running and ready. Exits with code 3 if it is not running."""
    from octavo.ops.supervise import read_status

    try:
        found = read_status(load_settings())
    except NotRunning as error:
        typer.echo(json.dumps({"running": False}) if as_json else error.line)
        raise typer.Exit(NOT_RUNNING) from None
    if as_json:
        return typer.echo(json.dumps({"running": True, **found.as_json()}, indent=2))
    typer.echo(f"Octavo is {'ready' if found.ready else 'not ready yet'} at {found.address}")
    typer.echo(f"Data folder: {found.data_dir}")
    for process in found.processes:
        state = f"process {process.pid}, {process.memory_bytes // MEBIBYTE} MiB" if process.running else "not running"
        again = f", restarted {process.restarts} times" if process.restarts else ""
        typer.echo(f"  {process.name:<10} {state}{again}")
    return None


@app.command("sign-in")
def sign_in(as_json: AsJson = False) -> None:
    """Print a new link that signs in one browser. Octavo must be running on this machine or at OCTAVO_PUBLIC_URL.

    Only the link is written to standard output. It works once, within 15 minutes, and signs in to the same account as
    the link that `octavo up` prints.
    """
    from octavo.cli.remote import act, running_address
    from octavo.core.http import shown_address
    from octavo.owners import make_sign_in_link, sign_in_url
    from octavo.owners.sessions import LINK_SECONDS

    settings = load_settings()
    address = settings.public_url or shown_address(settings, running_address(settings))
    url = sign_in_url(address, act(make_sign_in_link))
    if as_json:
        return typer.echo(json.dumps({"url": url, "expires_in_seconds": LINK_SECONDS}))
    typer.echo(url)
    return typer.echo(f"Open this link within {LINK_SECONDS // 60} minutes. It works once.", err=True)


@app.command()
def stop(as_json: AsJson = False) -> None:
    """Stop all processes that `octavo up` started, and wait until they have stopped."""
    from octavo.ops.supervise import stop as stop_everything

    stopped = stop_everything(load_settings())
    if as_json:
        return typer.echo(json.dumps({"stopped": stopped}))
    return typer.echo("Stopped." if stopped else "Nothing was running.")


@app.command()
def extensions(as_json: AsJson = False) -> None:
    """List the installed packages that add formats, sources, channels and connection engines to Octavo."""
    from octavo.core.extensions import ExtensionKind, installed_extensions

    found = installed_extensions()
    if as_json:
        return typer.echo(json.dumps([asdict(one) for one in found]))
    if not found:
        return typer.echo("No extensions are installed.")
    words = {
        ExtensionKind.FORMAT: "format",
        ExtensionKind.ENGINE: "connection engine",
        ExtensionKind.SOURCE: "source",
        ExtensionKind.CHANNEL: "channel",
    }
    for one in found:
        typer.echo(f"{words[one.kind]} {one.name}, from {one.package} {one.version}")
    return None


@app.command()
def web(
    fd: Annotated[int | None, typer.Option(hidden=True, help="File descriptor of a socket to serve on.")] = None,
    loaded: Annotated[
        int | None, typer.Option(hidden=True, help="File descriptor to close when the modules are loaded.")
    ] = None,
    begin_at: Annotated[
        int | None,
        typer.Option("--begin", hidden=True, help="File descriptor; serving begins when its other end is closed."),
    ] = None,
    parent: Parent = None,
) -> None:
    """Run one web server. On a single machine, `octavo up` does this for you."""
    from octavo.ops.ports import address_of, listen
    from octavo.web.app import load_routes, serve

    settings = begin("web", parent)
    listener = socket.socket(fileno=fd) if fd is not None else listen(settings.host, settings.port)
    if fd is None:
        typer.echo(f"The web server is listening at {address_of(listener)}")
    if loaded is not None and begin_at is not None:
        load_routes()
        os.close(loaded)
        os.read(begin_at, 1)
    with listener:
        serve(settings, listener, is_supervised=fd is not None)


@app.command()
def worker(
    worker_id: Annotated[
        UUID | None, typer.Option("--id", hidden=True, help="ID of the worker, chosen by its supervisor.")
    ] = None,
    parent: Parent = None,
) -> None:
    """Run one worker. `octavo up` starts OCTAVO_WORKERS of them. You can run more, including on other machines."""
    from octavo.ops.work import work

    asyncio.run(work(begin("worker", parent), beside_web=parent is not None, worker_id=worker_id))


@app.command()
def lmtp(
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address to listen on. Anybody who can connect can deliver emails. Default: OCTAVO_LMTP_LISTEN, or "
            "127.0.0.1:8024.",
        ),
    ] = None,
    fd: Annotated[int | None, typer.Option(hidden=True, help="File descriptor of an open socket to serve on.")] = None,
    parent: Parent = None,
) -> None:
    """Receive emails from a mail server over LMTP, and add them as documents. See `octavo sources add lmtp`.

    `octavo up` does this for you if OCTAVO_LMTP_LISTEN is set.
    """
    from octavo.ops.lmtp import serve_mails
    from octavo.ops.ports import listen_for_mails

    settings = begin("lmtp", parent)
    place = listen or settings.lmtp_listen or "127.0.0.1:8024"
    with socket.socket(fileno=fd) if fd is not None else listen_for_mails(place) as listener:
        asyncio.run(serve_mails(settings, listener))


@app.command()
def mcp(
    write: Annotated[
        bool, typer.Option("--write", help="Without an API key: let the agent also add, analyse and convert documents.")
    ] = False,
    server: Server = None,
    key: Key = None,
) -> None:
    """Serve your documents to an AI agent on standard input and output, with the Model Context Protocol (MCP).

    Configure the agent to start this command. With an API key, the scope of the key decides what the agent may do.
    """
    from octavo.cli.remote import Target, call, find_server
    from octavo.mcp.server import serve_stdio

    has_key = bool(find_server(Target(server, key), load_settings()).key)

    async def run(client: Client) -> None:
        allowed = (await client.read_access()).may_write and (write or has_key)
        await serve_stdio(client, may_write=allowed)

    call(Target(server, key), run)


@app.command()
def migrate(as_json: AsJson = False) -> None:
    """Migrate the database to the schema of this version.

    It is safe to run this at any time, even several times in parallel.
    """
    from octavo.ops.instance import migrate_database

    applied = asyncio.run(migrate_database(load_settings())).applied
    typer.echo(json.dumps({"applied": applied}) if as_json else f"The schema is up to date ({applied} migrations).")


@app.command()
def doctor(
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Before the checks, repair values that can be recomputed, such as counts and statuses."
        ),
    ] = False,
    checksums: Annotated[
        bool, typer.Option("--checksums", help="Read every stored file and compare its checksum. This can be slow.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check database, jobs, documents, files, storage and sandbox. Exits with code 0 only if every check passes."""
    from octavo.ops.doctor import examine
    from octavo.ops.doctor import repair as repair_all

    values = load_settings()
    repairs = asyncio.run(repair_all(values)) if repair else []
    checks = asyncio.run(examine(values, checksums=checksums))
    healthy = all(one.ok for one in checks)
    if as_json:
        found: list[dict[str, Any]] = [{"name": one.name, "ok": one.ok, "detail": one.detail} for one in checks]
        made = [{"name": one.name, "changed": one.changed} for one in repairs]
        typer.echo(json.dumps({"healthy": healthy, "checks": found, "repairs": made}, indent=2))
    else:
        for one in repairs:
            typer.echo(f"fixed {one.name}: {one.changed}")
        for one in checks:
            typer.echo(f"{'ok  ' if one.ok else 'BAD '} {one.name:<12} {one.detail}")
        typer.echo("All checks passed." if healthy else "Some checks failed; see above.")
    raise typer.Exit(0 if healthy else 1)


@app.command()
def backup(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder of the backup. It is created if it is missing.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Also re-read and check the files that an earlier backup already copied.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Back up the database and all files to a folder. You do not need to stop Octavo.

    A second backup to the same folder replaces the first one and copies only new files. `octavo restore PATH` restores
    a backup into an empty installation.
    """
    from octavo.cli.remote import run_backup

    run_backup(path.expanduser(), verify=verify, as_json=as_json)


@app.command()
def archives(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Print the lines of this archive.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the archives of old events and jobs, or print one of them.

    An archive is a file with one JSON object per line. OCTAVO_HISTORY_DAYS decides when events and jobs are moved from
    the database to an archive.
    """
    from octavo.ops.activity import show_archive, stored_archives

    values = load_settings()
    if name is not None:
        return asyncio.run(show_archive(values, name, sys.stdout.buffer.write))
    rows = asyncio.run(stored_archives(values))
    if as_json:
        return typer.echo(json.dumps([asdict(one) for one in rows], default=str))
    for one in rows:
        typer.echo(f"{one.name}  {one.rows} rows  {format_bytes(one.bytes)}")
    return None


@app.command()
def settings(as_json: AsJson = False) -> None:
    """List all settings with their meaning and current value. Secrets are hidden."""
    values = load_settings()
    rows = [
        {"name": variable_name(name), "value": str(getattr(values, name)), "help": field.description}
        for name, field in Settings.model_fields.items()
    ]
    if as_json:
        return typer.echo(json.dumps(rows, indent=2))
    for row in rows:
        typer.echo(f"{row['name']}={row['value']}\n    {row['help']}")
    return None


# Completion -----------------------------------------------------------------------------------------------------------


completion_app = typer.Typer(help="Set up Tab completion for commands and options.", no_args_is_help=True)
app.add_typer(completion_app, name="completion")

PROGRAM = "octavo"
# The script sets this variable when it requests completions.
VARIABLE = "_OCTAVO_COMPLETE"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


Which = Annotated[
    Shell | None, typer.Argument(metavar="bash|zsh|fish", help="Default: your current shell.", show_default=False)
]
# How to load the installed script in a shell that is already open.
LOAD = {Shell.BASH: "source '{path}'", Shell.ZSH: "exec zsh", Shell.FISH: "source '{path}'"}
STARTUP_FILES = {Shell.BASH: "~/.bashrc", Shell.ZSH: "~/.zshrc"}


def enable_completion() -> None:
    """Enable completion for all shells, but only if a completion script started this process."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage] - no public name

        completion_init()


@completion_app.command("show")
def show_script(shell: Which = None, as_json: AsJson = False) -> None:
    """Print the completion script, for example to install it for all users."""
    from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage] - no public name

    wanted = shell or detect_shell()
    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=wanted.value)
    if as_json:
        return print_json({"shell": wanted, "script": script})
    return typer.echo(script)


@completion_app.command()
def install(shell: Which = None, as_json: AsJson = False) -> None:
    """Install the completion script for the current user.

    It is written to your home folder. For bash and zsh, the lines that load it are added to ~/.bashrc or ~/.zshrc.
    """
    from typer.completion import install as install_script  # pyright: ignore[reportPrivateImportUsage] - no public name

    wanted = shell or detect_shell()
    try:
        _, path = install_script(wanted.value, PROGRAM, VARIABLE)
    except OSError as error:
        raise StorageFailed(f"{error.filename} cannot be written: {error.strerror}.") from None
    load = LOAD[wanted].format(path=path)
    if as_json:
        return print_json({"shell": wanted, "path": path, "load": load})
    typer.echo(f"Completion for {wanted} is written to {path}.")
    if wanted in STARTUP_FILES:
        typer.echo(f"{STARTUP_FILES[wanted]} loads it.")
    return typer.echo(f"Completion works in new terminals. To enable it in this one, run: {load}")


def detect_shell() -> Shell:
    """Return the shell that started this command or, if that cannot be found, the login shell."""
    from typer.completion import _get_shell_name  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]

    name = _get_shell_name() or PurePath(os.environ.get("SHELL", "")).name
    try:
        return Shell(name)
    except ValueError:
        known = ", ".join(Shell)
        raise BadInput(f"Your shell ({name or 'unknown'}) is not supported. Specify one of {known}.") from None
