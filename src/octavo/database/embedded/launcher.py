"""Starts the bundled PostgreSQL once for all processes that use the same data folder.

Any number of processes can call `start` at the same time: the first one creates and starts the server, the others wait
and use it. Each holds a shared lock until it ends. When the last process has ended, the keeper stops the server.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from psycopg.conninfo import make_conninfo

from octavo.core.errors import DatabaseUnavailable, NotPossibleHere
from octavo.database.embedded import keeper
from octavo.database.embedded.cluster import (
    DATABASE,
    SUPERUSER,
    Account,
    Binaries,
    choose_major,
    database_account,
    find_binaries,
    first_closed_folder,
    make_cluster,
    read_password,
    readable_binaries,
    recorded_major,
)
from octavo.database.embedded.data_folder import POLL_SECONDS, PRIVATE, DataFolder, FileLock, explain, is_locked

# Recovery after a crash replays the log since the last checkpoint, which takes seconds to a few minutes.
START_SECONDS = 300
STOP_SECONDS = 30
START_TRIES, RETRY_SECONDS = 10, 0.2
# The length limit of a socket's path in PostgreSQL, minus the file name.
LONGEST_SOCKET_FOLDER = 107 - len("/.s.PGSQL.5432.lock")
LARGEST_LOG_BYTES = 16 << 20

SERVER_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "max_wal_size": "2GB",
    "jit": "off",  # compiling takes longer than it saves for short queries
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    "log_error_verbosity": "terse",  # without the data of the rejected row
}


# A vector index is read at random positions, and each page outside the buffers is copied. That made searches among
# 200,000 vectors nearly three times as slow (decision 18). Memory is only taken when it is used.
LEAST_BUFFERS_MB, MOST_BUFFERS_MB, SHARE_OF_MEMORY = 128, 1024, 8


def buffers() -> str:
    """Return the value for PostgreSQL's `shared_buffers` setting, which depends on the machine's memory."""
    share = psutil.virtual_memory().total // SHARE_OF_MEMORY >> 20
    return f"{min(max(share, LEAST_BUFFERS_MB), MOST_BUFFERS_MB)}MB"


class EmbeddedPostgres:
    """The PostgreSQL server of one data folder. `start` registers this process as a user of the server."""

    def __init__(self, folder: DataFolder, *, account: str | None = None, major: int | None = None) -> None:
        self._folder = folder
        self._account_name = account
        self._major = major
        self._users: FileLock | None = None

    def start(self) -> str:
        """Start the server unless it is running. Returns the connection string."""
        self._folder.prepare()
        if self._users is None:
            users = FileLock(self._folder.run / "postgres.users.lock")
            users.lock(shared=True, seconds=STOP_SECONDS)  # the keeper holds it while it stops the server
            self._users = users
        starting = FileLock(self._folder.run / "postgres.start.lock")
        try:
            starting.lock(seconds=START_SECONDS)
            self._start_alone()
        finally:
            starting.close()
        return self.connection_info()

    def check_version(self) -> None:
        """Raise an error if no included version of PostgreSQL can open the data folder. The server is not started."""
        find_binaries(choose_major(self._folder, self._major))

    def connection_info(self) -> str:
        """Return the connection string for local processes, with the password from the data folder."""
        return make_conninfo(
            host=str(self.socket_folder()),
            user=SUPERUSER,
            dbname=DATABASE,
            password=read_password(self._folder),
            application_name="octavo",
        )

    def is_running(self) -> bool:
        """Whether the server accepts connections and has a keeper. Reads only two files and does not connect."""
        postmaster = read_postmaster(self._folder.cluster)
        return postmaster is not None and postmaster.is_ready and self._has_keeper()

    def pid(self) -> int | None:
        """Return the process id of the server. Returns None if the server is not running."""
        postmaster = read_postmaster(self._folder.cluster)
        return postmaster.pid if postmaster else None

    def release(self) -> None:
        """Stop using the server. The server stops when no other process uses it."""
        if self._users:
            self._users.close()
            self._users = None

    def stop(self) -> None:
        """Stop the server for all processes and wait until it has stopped."""
        self.release()
        if is_locked(self._keeper_lock):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._keeper_state()[0], signal.SIGTERM)
            self._wait_for_keeper()
        end_orphan(self._folder.cluster, keeper.PATIENCE_SECONDS)

    def socket_folder(self) -> Path:
        """Return the folder for the server's socket.

        It is in the data folder if the path is short enough; otherwise it is a private temporary folder.
        """
        if len(os.fsencode(self._folder.socket)) <= LONGEST_SOCKET_FOLDER:
            return self._folder.socket
        name = hashlib.sha256(os.fsencode(self._folder.root)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"octavo-{os.geteuid()}-{name}"

    @property
    def log_file(self) -> Path:
        return self._folder.logs / "postgres.log"

    @property
    def _keeper_lock(self) -> Path:
        return self._folder.run / "postgres.keeper.lock"

    def _start_alone(self) -> None:
        account = database_account(self._account_name)
        if self._has_keeper() and self._wait_until_ready():
            return
        self._wait_for_keeper()
        self._refuse_closed_folder(account)
        binaries = readable_binaries(choose_major(self._folder, self._major), account, self._folder.binaries)
        if recorded_major(self._folder) is None:
            make_cluster(self._folder, binaries, account)
        end_orphan(self._folder.cluster, keeper.PATIENCE_SECONDS)
        self._make_socket_folder(account)
        remove_stale_files(self._folder.cluster, self.socket_folder())
        self._start_server(binaries, account)

    def _start_server(self, binaries: Binaries, account: Account) -> None:
        """Start the server.

        Retries a few times, because processes of a killed server may still hold its shared memory.
        """
        for _ in range(START_TRIES):
            self._spawn_keeper(binaries, account)
            if self._wait_until_ready():
                return
            time.sleep(RETRY_SECONDS)
        raise DatabaseUnavailable(f"PostgreSQL did not start. {self._last_log_line()}")

    def _refuse_closed_folder(self, account: Account) -> None:
        closed = None if account.is_ours else first_closed_folder(self._folder.root, account)
        if closed:
            raise NotPossibleHere(
                f"PostgreSQL runs as {account.name}, which cannot access {closed}. "
                "Set OCTAVO_DATA_DIR to a folder that every account can access, such as /var/lib/octavo."
            )

    def _make_socket_folder(self, account: Account) -> None:
        folder = self.socket_folder()
        try:
            folder.mkdir(PRIVATE, exist_ok=True)
            if folder.is_symlink() or folder.stat().st_uid not in {os.geteuid(), account.uid}:
                raise NotPossibleHere(f"{folder} belongs to another user. Set OCTAVO_DATA_DIR to a shorter path.")
            folder.chmod(PRIVATE)
            os.chown(folder, account.uid, account.gid)
        except OSError as error:
            raise NotPossibleHere(explain(error, folder)) from error

    def _spawn_keeper(self, binaries: Binaries, account: Account) -> None:
        settings = {
            **SERVER_SETTINGS,
            "shared_buffers": buffers(),
            "unix_socket_directories": str(self.socket_folder()),
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        order = {
            "keeper_lock": str(self._keeper_lock),
            "users_lock": str(self._folder.run / "postgres.users.lock"),
            "log": str(self.log_file),
            "command": [str(binaries.program("postgres")), "-D", str(self._folder.cluster), *options],
            "environment": {"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            "account": account.process_options(),
        }
        if self.log_file.exists() and self.log_file.stat().st_size > LARGEST_LOG_BYTES:
            self.log_file.replace(self.log_file.with_suffix(".log.old"))
        subprocess.run(
            [sys.executable, "-I", "-S", keeper.__file__, json.dumps(order)],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C in a terminal must not stop the server before its users
        )

    def _keeper_state(self) -> tuple[int, str]:
        pid, state = self._keeper_lock.read_text().split()
        return int(pid), state

    def _has_keeper(self) -> bool:
        return is_locked(self._keeper_lock) and self._keeper_state()[1] == keeper.RUNNING

    def _wait_for_keeper(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while is_locked(self._keeper_lock):
            if time.monotonic() > deadline:
                raise DatabaseUnavailable(f"PostgreSQL did not stop. See {self.log_file}.")
            time.sleep(POLL_SECONDS)

    def _wait_until_ready(self) -> bool:
        """Wait until the server accepts connections. Returns False if the server exits first."""
        deadline = time.monotonic() + START_SECONDS
        while not self.is_running():
            if not self._has_keeper():
                return False
            if time.monotonic() > deadline:
                raise DatabaseUnavailable(f"PostgreSQL did not become ready. {self._last_log_line()}")
            time.sleep(POLL_SECONDS)
        return True

    def _last_log_line(self) -> str:
        lines = self.log_file.read_text(errors="replace").splitlines() if self.log_file.exists() else []
        return f"Its last message: {lines[-1]}" if lines else f"See {self.log_file}."


STATUS_LINE = 7


@dataclass(frozen=True, slots=True)
class Postmaster:
    pid: int
    status: str

    @property
    def is_ready(self) -> bool:
        return self.status == "ready"


def read_postmaster(cluster: Path) -> Postmaster | None:
    """Return the running server of this data directory. Returns None if no server is running.

    The `postmaster.pid` file does not prove that a server is running: the process that it names may be dead, a zombie
    or another program.
    """
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        process = psutil.Process(int(lines[0]))
        if process.status() == psutil.STATUS_ZOMBIE or not _serves(process, cluster):
            return None
    except (OSError, ValueError, IndexError, psutil.Error):
        return None
    return Postmaster(process.pid, lines[STATUS_LINE].strip() if len(lines) > STATUS_LINE else "")


def _serves(process: psutil.Process, cluster: Path) -> bool:
    command = process.cmdline()
    return bool(command) and Path(command[0]).name == "postgres" and str(cluster) in command


def remove_stale_files(cluster: Path, socket_folder: Path) -> None:
    """Remove the files of a dead server.

    PostgreSQL does not start if these files contain the process id of a zombie or of another program.
    """
    (cluster / "postmaster.pid").unlink(missing_ok=True)
    for file in socket_folder.glob(".s.PGSQL.*"):
        file.unlink(missing_ok=True)


def end_orphan(cluster: Path, patience_seconds: float) -> None:
    """Stop a server whose keeper has died. The server recovers at the next start, and no committed data is lost."""
    started = time.monotonic()
    signalled: dict[int, signal.Signals] = {}
    while postmaster := read_postmaster(cluster):
        patient = time.monotonic() - started < patience_seconds
        wanted = signal.SIGINT if patient else signal.SIGQUIT
        if signalled.get(postmaster.pid) != wanted:
            with contextlib.suppress(ProcessLookupError):
                os.kill(postmaster.pid, wanted)
            signalled[postmaster.pid] = wanted
        time.sleep(POLL_SECONDS)
