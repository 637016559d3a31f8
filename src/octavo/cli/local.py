"""Access to the Octavo installation on this machine: its address, its database and its backups.

A user who can open its database acts as the local owner (the Octavo account of this machine).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from octavo.cli.output import open_console, print_json
from octavo.core.errors import NotRunning
from octavo.core.formatting import count_of, format_bytes
from octavo.core.settings import Settings, load_settings

if TYPE_CHECKING:
    from octavo.database import Connection
    from octavo.ops.backup import Outcome, Report


OTHER_SERVER = "Or choose another server with --server and --key."


def running_address(settings: Settings, hint: str = "") -> str:
    """Return the address of the running installation that uses this data folder.

    Raises `NotRunning` with the text `hint` if it is not running.
    """
    from octavo.database.embedded import DataFolder
    from octavo.ops.processes import RecordFile

    record = RecordFile(DataFolder(settings.data_dir)).read()
    if record is None:
        raise NotRunning(hint)
    return record.address


async def open_local_session(settings: Settings) -> str:
    """Open a session for the local account and return its secret. The caller must end the session."""
    from octavo.database import require_current
    from octavo.ops.instance import open_connection
    from octavo.owners import local_owner
    from octavo.owners.sessions import insert_session

    async with open_connection(settings) as connection:
        await require_current(connection)
        async with connection.transaction():
            return await insert_session(connection, await local_owner(connection), None)


Answer = TypeVar("Answer")


def act(
    run: Callable[[Connection], Awaitable[Answer]], *, before: Callable[[Connection], Awaitable[None]] | None = None
) -> Answer:
    """Call `run` with a database connection, in a transaction, and return its result.

    If `before` is given, it is called first in a separate transaction, so that its locks are released early.
    """
    from octavo.database import require_current
    from octavo.ops.instance import open_connection

    async def main() -> Answer:
        async with open_connection(load_settings()) as connection:
            # Reports an outdated schema; without this check, a missing table would be reported as a raw database error.
            await require_current(connection)
            if before:
                async with connection.transaction():
                    await before(connection)
            async with connection.transaction():
                return await run(connection)

    return asyncio.run(main())


# Backups ------------------------------------------------------------------------------------------------------------


def run_backup(path: Path, *, verify: bool, as_json: bool) -> None:
    """Back up the installation to a folder and print the result."""
    from octavo.ops.backup import back_up, refuse_damaged

    began = time.monotonic()
    with show_progress(silent=as_json) as report:
        outcome = asyncio.run(back_up(load_settings(), path, report, verify=verify))
    _print_outcome(outcome, "Backed up to", began, as_json)
    refuse_damaged(outcome)


def run_restore(path: Path, *, as_json: bool) -> None:
    """Restore a backup into the empty installation that the settings name, and print the result."""
    from octavo.ops.backup import restore_backup

    began = time.monotonic()
    with show_progress(silent=as_json) as report:
        outcome = asyncio.run(restore_backup(load_settings(), path, report))
    _print_outcome(outcome, "Restored", began, as_json)
    if not as_json:
        if outcome.damaged:
            typer.echo(f"{count_of(len(outcome.damaged), 'file')} were already missing when the backup was made.")
        typer.echo("Start Octavo with `octavo up`, and check it with `octavo doctor`.")


def is_folder(name: str) -> bool:
    """Whether an argument of `octavo restore` is a backup folder and not a document."""
    return name.startswith(("/", "./", "../", "~/")) or Path(name).is_dir()


def _print_outcome(outcome: Outcome, done: str, began: float, as_json: bool) -> None:
    seconds = round(time.monotonic() - began, 1)
    if as_json:
        return print_json({**asdict(outcome), "seconds": seconds})
    files = f"{count_of(outcome.files, 'file')} ({format_bytes(outcome.file_bytes)}), {outcome.copied:,} of them copied"
    return typer.echo(f"{done} {outcome.path} in {seconds} s: {count_of(outcome.rows, 'row')} and {files}.")


@contextmanager
def show_progress(*, silent: bool) -> Generator[Report]:
    """Show the progress on a terminal, and nothing elsewhere."""
    console = open_console(stderr=True)
    if silent or not console.is_terminal:
        yield lambda _what, _done, _total: None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bars:
        task = bars.add_task("", total=None)
        yield lambda what, done, total: bars.update(task, description=what, completed=done, total=total or None)
