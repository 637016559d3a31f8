"""Reads the objects under a prefix of an S3 bucket. Objects are never changed.

Requests are signed here and sent with the guarded client. Octavo's storage client is not used, because it resolves
names itself and follows redirects, so a server could lead it to a private address.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from urllib.parse import unquote_plus, urlsplit

from octavo.core.errors import BadInput, NetworkFailed, OctavoError
from octavo.extract.office.xml import Element, local_name, parse
from octavo.fetch import AddressRefused, FetchLimits, FetchResponse, UnexpectedStatus
from octavo.intake.errors import BadSource, SourceRefused
from octavo.intake.sources.folders import has_control, is_wanted
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
from octavo.storage.s3_client import AccessKeys, S3Address, error_code, is_missing_bucket, presign

MOST_ANSWER_BYTES = 16 << 20
READ_SECONDS = 600.0
SIGNED_SECONDS = 900
_OK, _FORBIDDEN, _CHANGED = 200, 403, frozenset({404, 412})
_REDIRECTS = frozenset({301, 302, 307, 308})
_REFUSED = frozenset({"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"})
# Error codes that concern one object. Other objects may still be readable.
_OBJECT_REFUSED = frozenset({"AccessDenied", "InvalidObjectState"})


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """One page of a list of objects. `following` is the token for the next page, or None if this is the last one."""

    files: Sequence[SeenFile]
    following: str | None


class BucketReader:
    """Reads the objects under one prefix. An object is identified by its key and its entity tag."""

    settle_seconds = 0.0
    makes_versions = True

    def __init__(self, source: Source, connections: Connections) -> None:
        self._source = source
        self._fetch = connections.fetch
        self._limit = connections.settings.upload_bytes
        parts, access = urlsplit(source.address), source.access
        self._prefix = f"{prefix}/" if (prefix := parts.path.strip("/")) else ""
        self._address = S3Address(parts.netloc, "", access.endpoint, access.region or "")
        self._keys = AccessKeys(access.user or "", connections.open_secret(source).password)

    async def look(self) -> Look:
        deep, found, following = self._source.options.subfolders != "ignore", list[SeenFile](), None
        while True:
            page = await self._list(following)
            for one in page.files:
                steps = one.path.split("/")
                if one.bytes and all(steps) and all(map(is_wanted, steps)) and (deep or len(steps) == 1):
                    found.append(one)
            if len(found) > MOST_FILES:
                raise BadSource(f"It has more than {MOST_FILES:,} files.")
            if page.following is None:
                return Look(found)
            following = page.following

    async def _list(self, following: str | None) -> ObjectPage:
        query = {"list-type": "2", "encoding-type": "url", "prefix": self._prefix}
        query |= {"continuation-token": following} if following else {}
        answer = await self._get("", query)
        if answer.status != _OK:
            raise self._explain(answer)
        return await asyncio.to_thread(read_page, answer.body, self._prefix)

    async def _get(self, key: str, query: Mapping[str, str], headers: Mapping[str, str] | None = None) -> FetchResponse:
        """Send a request. Redirects are not followed."""
        limits = FetchLimits(MOST_ANSWER_BYTES, LOOK_SECONDS)
        return await self._fetch.send("GET", self._signed(key, query), None, headers or {}, limits)

    def _signed(self, key: str, query: Mapping[str, str]) -> str:
        url, region = f"{self._address.bucket_url}/{key}", self._address.region
        return presign("GET", url, query, self._keys, region=region, seconds=SIGNED_SECONDS, now=datetime.now(UTC))

    async def read(self, file: SeenFile) -> ReadFile:
        return ReadFile(NewUpload(file.name, bytes=file.bytes), self._parts(file))

    async def _parts(self, file: SeenFile) -> AsyncGenerator[bytes]:
        key, limits = self._prefix + file.path, FetchLimits(self._limit, READ_SECONDS)
        headers = {"If-Match": file.etag} if file.etag else {}
        try:
            async for block in self._fetch.download(self._signed(key, {}), headers, limits):
                yield block
        except UnexpectedStatus as error:
            if error.status in _CHANGED:
                raise FileChanged from None
            answer = await self._get(key, {}, {"Range": "bytes=0-0"})  # says why
            if error_code(_text(answer)) in _OBJECT_REFUSED:
                raise BadInput("The server does not allow reading this object, or has archived it.") from None
            raise self._explain(answer) from None
        except AddressRefused as error:
            raise BadSource(error.line) from None

    def _explain(self, answer: FetchResponse) -> OctavoError:
        if is_missing_bucket(_text(answer)):
            return BadSource(f"{self._address.server_url} has no bucket {self._address.bucket}.")
        if answer.status in _REDIRECTS:
            return BadSource("The server redirects to another address. Check the region and the server.")
        if answer.status == _FORBIDDEN or error_code(_text(answer)) in _REFUSED:
            return SourceRefused("The server refused the access key or the secret key.")
        return NetworkFailed(f"{self._address.server_url} returned status {answer.status}.")

    def parents(self, file: SeenFile) -> tuple[str, ...]:
        return PurePosixPath(file.path).parts[:-1]

    async def finish(self, files: Sequence[SeenFile]) -> Sequence[SeenFile]:
        """Do nothing, because objects are never changed."""
        return files

    async def aclose(self) -> None:
        """Do nothing, because the client is shared."""


def _text(answer: FetchResponse) -> str:
    return answer.body[:10_000].decode(errors="replace")


def read_page(body: bytes, prefix: str) -> ObjectPage:
    """Read the response to ListObjectsV2. Keys outside the prefix are left out."""
    try:
        root = parse(body)
    except BadInput:
        raise BadSource("The server did not return a valid S3 response.") from None
    if local_name(root) != "ListBucketResult":
        raise BadSource("The server did not return a valid S3 response.")
    values = {local_name(child): child.text or "" for child in root}
    is_encoded = values.get("EncodingType") == "url"
    objects = [_object(one, prefix, is_encoded=is_encoded) for one in root if local_name(one) == "Contents"]
    following = values.get("NextContinuationToken") if values.get("IsTruncated") == "true" else None
    return ObjectPage([one for one in objects if one], following)


def _object(element: Element, prefix: str, *, is_encoded: bool) -> SeenFile | None:
    values = {local_name(child): child.text or "" for child in element}
    key, size = values.get("Key", ""), values.get("Size", "")
    key = unquote_plus(key) if is_encoded else key
    if not key.startswith(prefix) or has_control(key):
        return None
    number = int(size) if size.isascii() and size.isdecimal() and len(size) < 16 else 0  # noqa: PLR2004
    modified = _modified(values.get("LastModified", ""))
    return SeenFile(key.removeprefix(prefix), number, modified, values.get("ETag", "")[:200])


def _modified(date: str) -> int:
    try:
        return nanoseconds(datetime.fromisoformat(date))
    except (ValueError, OverflowError):
        return 0
