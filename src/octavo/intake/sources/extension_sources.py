"""Sources provided by extensions.

The address of such a source is a URL whose scheme is the name of the entry point, such as `notes://server/folder`. The
entry point is a function that takes the address and the password and returns a `FileStore`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol, cast

from octavo.core.errors import ExtensionFailed, OctavoError
from octavo.core.extensions import ExtensionKind, extension_names, load_extension
from octavo.intake.errors import BadSource
from octavo.intake.sources.reading import MOST_FILES, MOST_PATH_BYTES, Connections, Look, ReadFile, SeenFile, Source
from octavo.intake.upload_rows import NewUpload


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a source. `path` is relative to the source. `version` changes whenever the content changes."""

    path: str
    bytes: int
    version: str


class FileStore(Protocol):
    """The interface that an extension implements to add a kind of source.

    Files are only read, never changed or deleted.
    """

    async def list_files(self) -> Sequence[StoredFile]:
        """List all files of the source."""
        ...

    def read(self, path: str) -> AsyncIterator[bytes]:
        """Read the bytes of a file."""
        ...

    async def aclose(self) -> None:
        """Close connections to other servers."""
        ...


OpenStore = Callable[[str, str], FileStore]


def scheme_of(address: str) -> str:
    return address.partition("://")[0].lower()


def check_address(address: str) -> str:
    """Normalise the address of a new source. Raises `BadSource` if no installed extension supports its scheme."""
    scheme, separator, rest = address.partition("://")
    if not separator or not rest or scheme.lower() not in extension_names(ExtensionKind.SOURCE):
        raise BadSource("There is no extension for this address. `octavo extensions` lists those that are installed.")
    return f"{scheme.lower()}://{rest}"


class ExtensionReader:
    """Reads a source through an extension. Errors of the extension are reported as errors of the source."""

    settle_seconds = 0.0
    makes_versions = True

    def __init__(self, source: Source, connections: Connections) -> None:
        self._source = source
        self._connections = connections
        self._store: FileStore | None = None

    async def look(self) -> Look:
        try:
            found = await self._open().list_files()
        except OctavoError:
            raise
        except Exception as error:
            raise ExtensionFailed(_describe(self._source, error)) from error
        files = [SeenFile(one.path, one.bytes, etag=one.version) for one in found if _is_valid(one)]
        if len(files) > MOST_FILES:
            raise BadSource(f"A source can have at most {MOST_FILES:,} files.")
        return Look(files)

    async def read(self, file: SeenFile) -> ReadFile:
        return ReadFile(NewUpload(file.name, bytes=file.bytes), self._body(file.path))

    async def _body(self, path: str) -> AsyncGenerator[bytes]:
        try:
            async for piece in self._open().read(path):
                yield piece
        except OctavoError:
            raise
        except Exception as error:
            raise ExtensionFailed(_describe(self._source, error)) from error

    def parents(self, file: SeenFile) -> tuple[str, ...]:
        return PurePosixPath(file.path).parts[:-1]

    async def finish(self, files: Sequence[SeenFile]) -> Sequence[SeenFile]:
        """Do nothing, because extensions only read files."""
        return files

    async def aclose(self) -> None:
        if self._store is not None:
            await self._store.aclose()

    def _open(self) -> FileStore:
        if self._store is None:
            scheme = scheme_of(self._source.address)
            opening = load_extension(ExtensionKind.SOURCE, scheme)
            if opening is None:
                raise BadSource(f"The extension for {scheme}:// is not installed.")
            password = self._connections.open_secret(self._source).password
            self._store = cast("OpenStore", opening)(self._source.address, password)
        return self._store


def _is_valid(one: StoredFile) -> bool:
    return 0 < len(one.path.encode()) <= MOST_PATH_BYTES and one.bytes >= 0 and "\0" not in one.path


def _describe(source: Source, error: Exception) -> str:
    return f"{scheme_of(source.address)}:// failed with {type(error).__name__}."
