"""Reads the objects under a prefix of an S3 bucket. Objects are never changed."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, PreconditionError

from octavo.core.errors import BadInput, NetworkFailed, OctavoError
from octavo.fetch import parse_url
from octavo.intake.errors import BadSource, SourceRefused
from octavo.intake.sources.folders import is_wanted
from octavo.intake.sources.reading import (
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
from octavo.storage.s3_client import AccessKeys, S3Address, error_code, is_missing_bucket, open_store

if TYPE_CHECKING:
    from obstore import GetOptions

PART_BYTES = 8 << 20
PAGE_KEYS = 1000
TIMEOUT = timedelta(seconds=60)
_REFUSED = re.compile(r"status code: (?:401|403)|\b(?:401|403) (?:Unauthorized|Forbidden)|AccessDenied|SignatureDoes")
# Error codes that concern one object. Other objects may still be readable.
_OBJECT_REFUSED = frozenset({"AccessDenied", "InvalidObjectState"})


class BucketReader:
    """Reads the objects under one prefix. An object is identified by its key and its entity tag."""

    settle_seconds = 0.0
    makes_versions = True

    def __init__(self, source: Source, connections: Connections) -> None:
        self._source = source
        self._connections = connections
        parts, access = urlsplit(source.address), source.access
        self._prefix = parts.path.strip("/")
        self._address = S3Address(parts.netloc, self._prefix, access.endpoint, access.region or "")
        keys = AccessKeys(access.user or "", connections.open_secret(source).password)
        self._store = open_store(self._address, keys, timeout=TIMEOUT)

    async def look(self) -> Look:
        await self._check_address()
        deep, found = self._source.options.subfolders != "ignore", list[SeenFile]()
        pages = obstore.list(self._store, chunk_size=PAGE_KEYS)  # pyright: ignore[reportUnknownMemberType]
        try:
            async for page in pages:
                for one in page:
                    steps = PurePosixPath(one["path"]).parts
                    if one["size"] and all(map(is_wanted, steps)) and (deep or len(steps) == 1):
                        modified = nanoseconds(one["last_modified"])
                        found.append(SeenFile(one["path"], one["size"], modified, one["e_tag"] or ""))
                if len(found) > MOST_FILES:
                    raise BadSource(f"It has more than {MOST_FILES:,} files.")
        except BaseError as error:
            raise self._explain(error) from None
        return Look(found)

    async def _check_address(self) -> None:
        """Refuse private addresses.

        The S3 client resolves the host name again, so a name whose address changes in between is not detected.
        """
        target = parse_url(self._address.server_url)
        await self._connections.fetch.addresses(target.host, target.port)

    async def read(self, file: SeenFile) -> ReadFile:
        return ReadFile(NewUpload(file.name, bytes=file.bytes), self._parts(file))

    async def _parts(self, file: SeenFile) -> AsyncGenerator[bytes]:
        start = 0
        while start < file.bytes:
            end = min(file.bytes, start + PART_BYTES)
            try:
                options: GetOptions = {"range": (start, end)}
                if file.etag:
                    options["if_match"] = file.etag
                answer = await obstore.get_async(self._store, file.path, options=options)
                part = bytes(await answer.bytes_async())
            except (FileNotFoundError, PreconditionError):
                raise FileChanged from None
            except BaseError as error:
                if error_code(error) in _OBJECT_REFUSED:
                    raise BadInput("The server does not allow reading this object, or has archived it.") from None
                raise self._explain(error) from None
            start = end
            yield part

    def _explain(self, error: Exception) -> OctavoError:
        if is_missing_bucket(error):
            return BadSource(f"{self._address.server_url} has no bucket {self._address.bucket}.")
        if _REFUSED.search(str(error)):
            return SourceRefused("The server refused the access key or the secret key.")
        return NetworkFailed(f"{self._address.server_url} does not respond as expected.")

    def parents(self, file: SeenFile) -> tuple[str, ...]:
        return PurePosixPath(file.path).parts[:-1]

    async def finish(self, files: Sequence[SeenFile]) -> Sequence[SeenFile]:
        """Do nothing, because objects are never changed."""
        return files

    async def aclose(self) -> None:
        """Do nothing, because the client closes its connections itself."""
