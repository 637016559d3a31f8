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
    """Convert the time that a server reports to nanoseconds since 1970. Returns 0 if the time is out of range."""
    number = int(time.timestamp()) * 10**9 + time.microsecond * 1000
    return number if abs(number) <= _MOST_NANOSECONDS else 0


class FileChanged(Exception):
    """The file has changed, or another job has already added it.

    The job skips the file. The next check of the source decides whether it must be added.
    """


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file or an email that a check found. `path` is relative to the source; `modified` is in nanoseconds."""

    path: str
    bytes: int
    modified: int = 0
    etag: str = ""

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass(frozen=True, slots=True)
class Look:
    """The files that a check of a source found.

    If `complete` is true, these are all files of the source. Otherwise, these are only the files that are new since the
    last check, and the next check continues at `position`.
    """

    files: Sequence[SeenFile]
    complete: bool = True
    position: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that is being read: its name and other metadata, and its bytes."""

    upload: NewUpload
    body: AsyncGenerator[bytes]


@dataclass(frozen=True, slots=True)
class Source:
    """A source of documents, with everything that a worker needs to check it."""

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
        """Return the names of the sub-folders in which a file is."""
        ...

    async def finish(self, files: Sequence[SeenFile]) -> Sequence[SeenFile]:
        """Move or mark files at the source after they have been added. Returns the files that are done."""
        ...

    async def aclose(self) -> None: ...
