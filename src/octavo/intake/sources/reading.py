"""Types that all kinds of sources share: files, readers, the resources that readers need, and encrypted secrets.

A check lists the files or emails of a source. A job reads the new ones. Both use a reader, which implements access to
one kind of source.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Protocol
from uuid import UUID

from octavo.ai.model_settings import KeySeal, SealedKey
from octavo.core.settings import Settings
from octavo.database import Database, Row, load_queries
from octavo.fetch import GuardedClient
from octavo.intake.errors import BadSource
from octavo.intake.upload_rows import NewUpload
from octavo.records.automation import SourceAccess, SourceKind, SourceOptions

# A check that takes longer is cancelled.
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

    If `complete` is true, the list contains every file of the source. Otherwise, it contains only the files that are
    new since the last check, and the next check continues at `position`.
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
    """The interface for reading one kind of source.

    Network failures are raised as `NetworkFailed` or `TimedOut`, failures of the file system as `OSError`, and other
    problems as `BadInput`.
    """

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
        """Return the names of the folders that contain a file, outermost first. They are relative to the source."""
        ...

    async def finish(self, files: Sequence[SeenFile]) -> Sequence[SeenFile]:
        """Move or mark files at the source after they have been added.

        Returns the files that are done. The next check tries the others again.
        """
        ...

    async def aclose(self) -> None: ...


QUERIES = load_queries("sources")


@dataclass(frozen=True, slots=True)
class SourceSecret:
    """The secrets of a source. For OAuth, the password is the refresh token."""

    password: str = ""
    client_secret: str | None = None


@dataclass(frozen=True, slots=True)
class Connections:
    """The resources that readers need: the settings, the HTTP client, and the database with the secrets of sources."""

    settings: Settings
    fetch: GuardedClient
    database: Database

    @property
    def allow(self) -> frozenset[str]:
        return frozenset(self.settings.fetch_allow)

    def open_secret(self, source: Source) -> SourceSecret:
        """Decrypt the secrets of a source."""
        return open_secret(self.settings, source.secret)

    async def replace_password(self, source: Source, secret: SourceSecret, password: str) -> None:
        """Store a new refresh token, unless somebody has changed the secret in the meantime."""
        new = seal_secret(self.settings, SourceSecret(password, secret.client_secret))
        async with self.database.transaction() as connection:
            values = {"source": source.id, "old": source.secret, "new": new}
            await connection.execute(QUERIES.replace_secret, values)


def open_secret(settings: Settings, sealed: str | None) -> SourceSecret:
    """Decrypt the secrets of a source."""
    if sealed is None:
        return SourceSecret()
    opened = KeySeal(settings).open(SealedKey(sealed, ""))
    if opened is None:
        raise BadSource("The password cannot be decrypted on this machine. Enter it again.")
    return SourceSecret(**json.loads(opened))


def seal_secret(settings: Settings, secret: SourceSecret) -> str:
    """Encrypt the secrets of a source, in the same way as the API keys of model providers."""
    given = {"password": secret.password, "client_secret": secret.client_secret}
    return KeySeal(settings).seal(json.dumps(given)).token
