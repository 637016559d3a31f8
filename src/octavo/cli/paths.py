"""What a person names, as files: folders are walked, and patterns that no shell expanded are matched."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from glob import has_magic
from itertools import takewhile
from pathlib import Path
from typing import Literal

from octavo.core.errors import BadInput, OctavoError, StorageFailed

Reason = Literal["hidden", "link", "special"]


class NoSuchFile(BadInput):
    """There is no such file or folder."""

    code = "NO_SUCH_FILE"


class NotAFile(BadInput):
    """This is neither a file nor a folder. Give its content to `octavo add -` instead."""

    code = "NOT_A_FILE"


@dataclass(frozen=True, slots=True)
class LocalFile:
    """`shown` is how the person named it, in characters that can be printed; `name` is what its document is called."""

    path: Path
    shown: str
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """Found in a folder and left out."""

    shown: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Refused:
    shown: str
    error: OctavoError


@dataclass(slots=True)
class Found:
    files: list[LocalFile] = field(default_factory=list[LocalFile])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    refused: list[Refused] = field(default_factory=list[Refused])


def find_files(named: Iterable[str]) -> Found:
    """Each file once, in the order of what was named and by name below that."""
    found = Found()
    seen: set[str] = set()
    for one in named:
        for path in match(one):
            add_path(found, path, seen)
    return found


def match(named: str) -> list[str]:
    """The name itself or, when there is no such file, what it matches as a pattern, as a shell would."""
    if os.path.lexists(named) or not has_magic(named):
        return [named]
    parts = Path(named).parts
    base = Path(*takewhile(lambda part: not has_magic(part), parts))
    wanted = parts[len(base.parts) :]
    hidden_too = any(part.startswith(".") for part in wanted)
    try:
        # Not `glob.glob`, which follows links in a circle.
        matches = sorted(base.glob(str(Path(*wanted))))
    except ValueError:  # a pattern such as **.txt
        return [named]
    return [str(one) for one in matches if hidden_too or not is_hidden(one.relative_to(base))] or [named]


def is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def add_path(found: Found, path: str, seen: set[str]) -> None:
    """A file, or all below a folder. A link gets here only when somebody named it, and then it is followed."""
    try:
        about = Path(path).stat()
    except OSError as error:
        found.refused.append(Refused(printable(path), explain(error)))
        return
    if stat.S_ISDIR(about.st_mode):
        for child in list_folder(found, path):
            add_path(found, child, seen)
    elif stat.S_ISREG(about.st_mode):
        absolute = os.path.abspath(path)  # noqa: PTH100 - links stay as they were named
        if absolute not in seen:
            seen.add(absolute)
            found.files.append(LocalFile(Path(path), printable(path), Path(path).name, about.st_size))
    else:
        found.refused.append(Refused(printable(path), NotAFile()))


def list_folder(found: Found, folder: str) -> list[str]:
    """What is in a folder, by name; what is left out or cannot be read is noted."""
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        found.refused.append(Refused(printable(folder), explain(error)))
        return []
    reasons: list[tuple[str, Reason | None]] = [(entry.path, reason_to_skip(entry)) for entry in entries]
    found.skipped += [Skipped(printable(path), reason) for path, reason in reasons if reason]
    return [path for path, reason in reasons if not reason]


def reason_to_skip(entry: os.DirEntry[str]) -> Reason | None:
    if entry.name.startswith("."):
        return "hidden"
    if entry.is_symlink():
        return "link"
    return None if entry.is_dir() or entry.is_file() else "special"


def explain(error: OSError) -> OctavoError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NoSuchFile()
    return StorageFailed(f"{error.strerror}.")


def printable(path: str) -> str:
    """File names are bytes; those that are no text are shown as far as they are."""
    return os.fsencode(path).decode(errors="replace")
