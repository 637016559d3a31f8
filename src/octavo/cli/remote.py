"""Connects commands to the API, and backs up and restores the installation on this machine.

On another server, commands use an API key. On this machine, a user who can open the installation's database acts as its
local account.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from octavo.cli.output import open_console, print_json
from octavo.core.errors import BadSetting, NotRunning, OctavoError, StorageFailed
from octavo.core.formatting import count_of, format_bytes
from octavo.core.settings import Settings, load_settings

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.database import Connection
    from octavo.ops.backup import Outcome, Report

SIGN_OUT_SECONDS = 1.0
CONNECTIONS = 10
NO_KEY = (
    "A remote server requires an API key. Set it with --key or OCTAVO_KEY, or save it with `octavo login`. To create "
    "one, run `octavo keys add` on that server."
)
# The name for the installation on this machine, where a profile or a URL is expected.
LOCAL = "local"
# Anything else is a URL.
PROFILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,50}")
OTHER_USERS = 0o077
LOCAL_HINT = "See `octavo status`."


async def end_local_session(settings: Settings, secret: str) -> None:
    """End the session of a command. Signing out over HTTP would add an audit entry for each command."""
    from octavo.ops.instance import open_current_connection
    from octavo.owners.sessions import end_session

    async with open_current_connection(settings) as connection, connection.transaction():
        await end_session(connection, secret)


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Target:
    """The server and API key from the options of a command. Missing values are taken from the settings."""

    server: str | None = None
    key: str | None = None


def call(target: Target, run: Callable[[Client], Awaitable[Answer]], *, connections: int = CONNECTIONS) -> Answer:
    """Call `run` with a client for the selected server and return its result."""

    async def main() -> Answer:
        async with open_client(target, connections) as client:
            return await run(client)

    return asyncio.run(main())


@asynccontextmanager
async def open_client(target: Target, connections: int) -> AsyncGenerator[Client]:
    from octavo.client import Client

    settings = load_settings()
    found = find_server(target, settings)
    if found.server:
        async with Client(found.server, key=found.key, connections=connections) as client:
            yield client
    elif found.key:
        address = running_address(settings, OTHER_SERVER)
        async with Client(address, key=found.key, connections=connections, hint=LOCAL_HINT) as client:
            yield client
    else:
        async with open_as_owner(settings, connections) as client:
            yield client


def find_server(target: Target, settings: Settings) -> Target:
    """Return the URL and the key of the selected server. The URL is None for the installation on this machine.

    If neither a server nor a key is selected, the current profile is used.
    """
    name = target.server or settings.server
    key = target.key or (settings.key.get_secret_value() if settings.key else None)
    if name == LOCAL or (name is None and key):
        return Target(None, key)
    if name and not PROFILE_NAME.fullmatch(name):
        if not key:
            raise BadSetting(NO_KEY)
        return Target(name, key)
    profiles = Profiles.load()
    if name is None and profiles.current is None:
        return Target()
    profile = profiles.find(name or profiles.current or "")
    return Target(profile.server, target.key or profile.key)


@asynccontextmanager
async def open_as_owner(settings: Settings, connections: int) -> AsyncGenerator[Client]:
    from octavo.client import Client

    address = running_address(settings, OTHER_SERVER)
    session = await open_local_session(settings)
    async with Client(address, session=session, connections=connections, hint=LOCAL_HINT) as client:
        try:
            yield client
        finally:
            # A failure is harmless: nobody else knows the session's secret, and the session expires.
            with contextlib.suppress(OctavoError, TimeoutError):
                async with asyncio.timeout(SIGN_OUT_SECONDS):
                    await end_local_session(settings, session)


# Profiles -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Profile:
    """A server and the API key for it."""

    server: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles of this user. `current` is the name of the profile that commands without --server use."""

    current: str | None = None
    by_name: dict[str, Profile] = field(default_factory=dict[str, Profile])

    @classmethod
    def load(cls) -> Profiles:
        path = profiles_file()
        try:
            if path.stat().st_mode & OTHER_USERS:
                raise BadSetting(f"Other users can read {path}. Run: chmod 600 '{path}'")
            stored = json.loads(path.read_bytes())
            return cls(stored["current"], {name: Profile(**one) for name, one in stored["profiles"].items()})
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise BadSetting(f"{path} cannot be read. Delete it, and run `octavo login` again.") from None

    def find(self, name: str) -> Profile:
        if name not in self.by_name:
            known = ", ".join(sorted(self.by_name)) or "none"
            raise BadSetting(f"There is no profile {name!r}; known: {known}. Create one with `octavo login`.")
        return self.by_name[name]

    def save(self) -> None:
        """Write all profiles. Only this user can read the file, because it contains the keys."""
        path = profiles_file()
        content = {"current": self.current, "profiles": {name: asdict(one) for name, one in self.by_name.items()}}
        part = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                json.dump(content, file, indent=2)
            part.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink()
            raise StorageFailed(f"{path} cannot be written: {error.strerror}.") from None


def profiles_file() -> Path:
    return Path(typer.get_app_dir("octavo")) / "profiles.json"


# The installation on this machine -------------------------------------------------------------------------------------


OTHER_SERVER = "Or choose another server with --server and --key."


def running_address(settings: Settings, hint: str = "") -> str:
    """Return the address of the running installation that uses this data folder.

    Raises `NotRunning`, with `hint` as its text, if Octavo is not running.
    """
    from octavo.ops.processes import read_record

    record = read_record(settings.data_dir)
    if record is None:
        raise NotRunning(hint)
    return record.address


async def open_local_session(settings: Settings) -> str:
    """Open a session for the local account and return its secret. The caller must end the session."""
    from octavo.ops.instance import open_current_connection
    from octavo.owners import local_owner
    from octavo.owners.sessions import insert_session

    async with open_current_connection(settings) as connection, connection.transaction():
        return await insert_session(connection, await local_owner(connection), None)


Answer = TypeVar("Answer")


def act(
    run: Callable[[Connection], Awaitable[Answer]], *, before: Callable[[Connection], Awaitable[None]] | None = None
) -> Answer:
    """Call `run` with a database connection, in a transaction, and return its result.

    If `before` is given, it is called first, in a separate transaction, so that its locks are released before `run`
    starts.
    """
    from octavo.ops.instance import open_current_connection

    async def main() -> Answer:
        async with open_current_connection(load_settings()) as connection:
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
    """Restore a backup into the empty installation selected by the settings, and print the result."""
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
