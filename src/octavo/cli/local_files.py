"""Finds the files that a user named: walks folders, matches patterns, and copies standard input to disk."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import has_magic
from itertools import takewhile
from pathlib import Path
from typing import Literal

from octavo.core.errors import BadInput, OctavoError, StorageFailed

Reason = Literal["hidden", "link", "special"]


class NoSuchFile(BadInput):
    """File or folder not found."""

    code = "NO_SUCH_FILE"


class NotAFile(BadInput):
    """This is neither a file nor a folder. Pipe its content to `octavo add -` instead."""

    code = "NOT_A_FILE"


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file to add.

    `shown` is the path that the user typed, in printable characters; `name` is the document's file name.
    """

    path: Path
    shown: str
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was skipped when a folder was added."""

    shown: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class RefusedFile:
    shown: str
    error: OctavoError


@dataclass(slots=True)
class FileSelection:
    files: list[LocalFile] = field(default_factory=list[LocalFile])
    skipped: list[SkippedFile] = field(default_factory=list[SkippedFile])
    refused: list[RefusedFile] = field(default_factory=list[RefusedFile])


def find_files(named: Iterable[str]) -> FileSelection:
    """Return the files that the arguments name, without duplicates.

    They are in the order of the arguments. The files in a folder are sorted by name.
    """
    found = FileSelection()
    seen: set[str] = set()
    for one in named:
        for path in match(one):
            add_path(found, path, seen)
    return found


def match(named: str) -> list[str]:
    """Return the path itself if it exists, otherwise the paths that match it as a glob pattern."""
    if os.path.lexists(named) or not has_magic(named):
        return [named]
    parts = Path(named).parts
    base = Path(*takewhile(lambda part: not has_magic(part), parts))
    wanted = parts[len(base.parts) :]
    hidden_too = any(part.startswith(".") for part in wanted)
    try:
        # Not `glob.glob`, which follows symbolic links in circles.
        matches = sorted(base.glob(str(Path(*wanted))))
    except ValueError:  # an invalid pattern such as **.txt
        return [named]
    return [str(one) for one in matches if hidden_too or not is_hidden(one.relative_to(base))] or [named]


def is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def add_path(found: FileSelection, path: str, seen: set[str]) -> None:
    """Add a file, or every file in a folder, to `found`.

    Symbolic links are followed only if the user named them.
    """
    try:
        about = Path(path).stat()
    except OSError as error:
        found.refused.append(RefusedFile(printable(path), explain(error)))
        return
    if stat.S_ISDIR(about.st_mode):
        for child in list_folder(found, path):
            add_path(found, child, seen)
    elif stat.S_ISREG(about.st_mode):
        absolute = os.path.abspath(path)  # noqa: PTH100 - keeps symbolic links
        if absolute not in seen:
            seen.add(absolute)
            found.files.append(LocalFile(Path(path), printable(path), Path(path).name, about.st_size))
    else:
        found.refused.append(RefusedFile(printable(path), NotAFile()))


def list_folder(found: FileSelection, folder: str) -> list[str]:
    """Return the entries of a folder, sorted by name. Skipped entries and read errors are recorded in `found`."""
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        found.refused.append(RefusedFile(printable(folder), explain(error)))
        return []
    reasons: list[tuple[str, Reason | None]] = [(entry.path, reason_to_skip(entry)) for entry in entries]
    found.skipped += [SkippedFile(printable(path), reason) for path, reason in reasons if reason]
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
    """Decode a path for printing. File names are bytes; invalid characters are replaced."""
    return os.fsencode(path).decode(errors="replace")


PIECE_BYTES = 1 << 20


@contextmanager
def keep_stdin(name: str, most_bytes: int) -> Generator[LocalFile]:
    """Copy standard input to disk, so that a broken transfer can be retried. Stops at the size limit."""
    with tempfile.NamedTemporaryFile(prefix="octavo-") as kept:
        size = 0
        while size <= most_bytes and (piece := sys.stdin.buffer.read(PIECE_BYTES)):
            size += kept.write(piece)
        kept.flush()
        yield LocalFile(Path(kept.name), name, name, size)
