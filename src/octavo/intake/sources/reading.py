"""Types that all kinds of sources share: the files that were found, and the interface for reading them.

A check lists the files or emails of a source. A job reads the new ones. Both use a reader, which implements access to
one kind of source.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Protocol
from uuid import UUID

from octavo.database import Row
from octavo.intake.upload_rows import NewUpload
from octavo.records.automation import SourceAccess, SourceKind, SourceOptions

# A look that takes longer is given up.
LOOK_SECONDS = 60.0
MOST_FILES = 200_000


# Longer paths do not fit into the index of the table.
MOST_PATH_BYTES = 2000
# A later time does not fit into its column.
_MOST_NANOSECONDS = 2**63 - 1


def nanoseconds(time: datetime) -> int:
    """Return a time of a server as a number. A time that no file can have becomes 0."""
    number = int(time.timestamp()) * 10**9 + time.microsecond * 1000
    return number if abs(number) <= _MOST_NANOSECONDS else 0


class FileChanged(Exception):
    """The file changed, or was added by another job. It is left as it is, and the next look decides."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file or a mail of a source. `path` is relative to the source; `modified` is in nanoseconds."""

    path: str
    bytes: int
    modified: int = 0
    etag: str = ""

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a check: the files that were found.

    If `complete` is true, these are all files of the source. Otherwise, these are the files since the last `position`.
    """

    files: Sequence[SeenFile]
    complete: bool = True
    position: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that is being read: its description for the intake, and its bytes."""

    upload: NewUpload
    body: AsyncGenerator[bytes]


@dataclass(frozen=True, slots=True)
class Source:
    """A source, as workers use it."""

    id: UUID
    owner_id: UUID
    kind: SourceKind
    address: str
    options: SourceOptions = field(default_factory=SourceOptions)
    access: SourceAccess = field(default_factory=SourceAccess)
    secret: str | None = None
    position: dict[str, Any] | None = None

    @classmethod
    def of(cls, row: Row) -> Source:
        options, access = SourceOptions(**row["options"]), SourceAccess(**row["access"])
        places = (row["id"], row["owner_id"], row["kind"], row["address"])
        return cls(*places, options, access, row["secret"], row["position"])


class Reader(Protocol):
    """Reads one source. Network failures are raised as `NetworkFailed` or `TimedOut`; other problems as `BadInput`."""

    # A file must have the same size and time for this long before it is added.
    settle_seconds: float
    # Whether a changed file becomes a new version of its document.
    makes_versions: bool

    async def look(self) -> Look:
        """List the files of the source."""
        ...

    async def read(self, file: SeenFile) -> ReadFile:
        """Begin to read a file. Raises `FileChanged` if the file has changed since it was found."""
        ...

    def parents(self, file: SeenFile) -> tuple[str, ...]:
        """Return the sub-folders of a file."""
        ...

    async def finish(self, files: Sequence[SeenFile]) -> Sequence[SeenFile]:
        """Move or mark files that have been added. Returns the files that are finished."""
        ...

    async def aclose(self) -> None: ...
