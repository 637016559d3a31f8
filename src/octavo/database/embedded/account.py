"""Chooses the system account that runs PostgreSQL: the current account or, if that is root, an unprivileged one."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from octavo.core.errors import BadSetting, NotPossibleHere

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
        """Return the options with which `subprocess` starts a program as this account.

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
    """Return the first folder on the path that the account cannot enter; None if it can enter all of them."""
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
