"""Folders on WebDAV servers, such as Nextcloud. Files are never changed."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath
from urllib.parse import quote, unquote, urljoin, urlsplit

from octavo.core.errors import BadInput, NetworkFailed, OctavoError
from octavo.extract.office.xml import Element, parse
from octavo.fetch import AddressRefused, FetchLimits, UnexpectedStatus
from octavo.intake.errors import BadSource, SourceRefused
from octavo.intake.sources.folders import MOST_DEPTH, has_control, is_wanted
from octavo.intake.sources.reading import (
    LOOK_SECONDS,
    MOST_FILES,
    Connections,
    FileChanged,
    Look,
    ReadFile,
    SeenFile,
    Source,
    nanoseconds,
)
from octavo.intake.upload_rows import NewUpload

READ_SECONDS = 600.0
MOST_ANSWER_BYTES = 32 << 20
_REQUEST = (
    b'<?xml version="1.0" encoding="utf-8"?><d:propfind xmlns:d="DAV:"><d:prop><d:resourcetype/><d:getcontentlength/>'
    b"<d:getetag/><d:getlastmodified/></d:prop></d:propfind>"
)
_MULTISTATUS, _FORBIDDEN, _NOT_FOUND = 207, 403, 404
_REFUSED = frozenset({401, _FORBIDDEN})
_GONE = frozenset({404, 410})
_DAV = "{DAV:}"


@dataclass(frozen=True, slots=True)
class DavEntry:
    """A file or a folder. `path` is relative to the folder of the source."""

    path: str
    is_folder: bool
    bytes: int
    etag: str
    modified: int


class DavReader:
    """Reads a folder on a WebDAV server. A file is identified by its path and its entity tag."""

    settle_seconds = 0.0
    makes_versions = True

    def __init__(self, source: Source, connections: Connections) -> None:
        self._source = source
        self._fetch = connections.fetch
        self._limit = connections.settings.upload_bytes
        self._headers: dict[str, str] = {}
        if user := source.access.user:
            pair = f"{user}:{connections.open_secret(source).password}".encode()
            self._headers = {"Authorization": f"Basic {b64encode(pair).decode()}"}

    async def look(self) -> Look:
        found: list[SeenFile] = []
        waiting = [""]
        while waiting:
            for entry in await self._list(waiting.pop()):
                if entry.is_folder and self._is_followed(entry):
                    waiting.append(f"{entry.path}/")
                elif not entry.is_folder and entry.bytes:
                    found.append(SeenFile(entry.path, entry.bytes, entry.modified, entry.etag))
            if len(found) + len(waiting) > MOST_FILES:
                raise BadSource(f"It has more than {MOST_FILES:,} files.")
        return Look(found)

    def _is_followed(self, entry: DavEntry) -> bool:
        return self._source.options.subfolders != "ignore" and entry.path.count("/") < MOST_DEPTH

    async def _list(self, folder: str) -> list[DavEntry]:
        headers = self._headers | {"Depth": "1", "Content-Type": "application/xml; charset=utf-8"}
        limits = FetchLimits(MOST_ANSWER_BYTES, LOOK_SECONDS)
        answer = await self._fetch.send("PROPFIND", self._url(folder), _REQUEST, headers, limits)
        if answer.status != _MULTISTATUS:
            raise _explain(answer.status)
        entries = await asyncio.to_thread(lambda: list(read_entries(answer.body, self._source.address)))
        # The folder itself is listed, too.
        return [one for one in entries if one.path.startswith(folder) and one.path != folder.rstrip("/")]

    def _url(self, path: str) -> str:
        return self._source.address + quote(path)

    async def read(self, file: SeenFile) -> ReadFile:
        return ReadFile(NewUpload(file.name), self._parts(file))

    async def _parts(self, file: SeenFile) -> AsyncGenerator[bytes]:
        limits = FetchLimits(self._limit, READ_SECONDS)
        try:
            async for block in self._fetch.download(self._url(file.path), self._headers, limits):
                yield block
        except UnexpectedStatus as error:
            if error.status in _GONE:
                raise FileChanged from None
            if error.status == _FORBIDDEN:
                raise BadInput("The server does not allow reading this file.") from None
            raise _explain(error.status) from None
        except AddressRefused as error:
            raise BadSource(error.line) from None

    def parents(self, file: SeenFile) -> tuple[str, ...]:
        return PurePosixPath(file.path).parts[:-1]

    async def finish(self, files: Sequence[SeenFile]) -> Sequence[SeenFile]:
        """Do nothing, because files are never changed."""
        return files

    async def aclose(self) -> None:
        """Do nothing, because the HTTP client is shared."""


def _explain(status: int) -> OctavoError:
    if status in _REFUSED:
        return SourceRefused()
    if status == _NOT_FOUND:
        return BadSource("The folder does not exist on the server.")
    return NetworkFailed(f"The server returned status {status}.")


def read_entries(body: bytes, base: str) -> Iterator[DavEntry]:
    """Parse the response to a PROPFIND request.

    Leaves out hidden and incomplete files, and entries outside the folder of the source.
    """
    try:
        root = parse(body)
    except BadInput:
        raise BadSource("The server did not return a valid WebDAV response.") from None
    for response in root.iter(f"{_DAV}response"):
        path = _relative(_text(response, "href"), base)
        if path and all(map(is_wanted, PurePosixPath(path).parts)):
            yield _entry(response, path)


def _entry(response: Element, path: str) -> DavEntry:
    is_folder = next(response.iter(f"{_DAV}collection"), None) is not None
    size = _text(response, "getcontentlength")
    number = int(size) if size.isascii() and size.isdecimal() and len(size) < 16 else 0  # noqa: PLR2004
    modified = _modified(_text(response, "getlastmodified"))
    return DavEntry(path, is_folder, number, _text(response, "getetag")[:200], modified)


def _text(response: Element, name: str) -> str:
    return next(((one.text or "").strip() for one in response.iter(f"{_DAV}{name}")), "")


def _relative(href: str, base: str) -> str:
    """Return the path of an entry relative to the folder of the source. Returns "" if the entry is outside it."""
    try:
        here, there = urlsplit(base), urlsplit(urljoin(base, href))
    except ValueError:
        return ""
    root, path = unquote(here.path), unquote(there.path).rstrip("/")
    same = (here.scheme, here.netloc) == (there.scheme, there.netloc)
    steps = path.removeprefix(root).split("/")
    if not same or not path.startswith(root) or {"", ".", ".."} & set(steps) or has_control(path):
        return ""
    return "/".join(steps)


def _modified(date: str) -> int:
    try:
        return nanoseconds(parsedate_to_datetime(date))
    except (ValueError, OverflowError):
        return 0
