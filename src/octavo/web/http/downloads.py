"""Serves files as streamed downloads: always as attachments, and with support for byte ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from http import HTTPStatus

from fastapi.responses import StreamingResponse

from octavo.core.errors import BadInput
from octavo.core.http import read_http_date
from octavo.storage import ObjectStream, attachment_header

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_NAME = r"[A-Za-z0-9!#$&^_.+-]+"
_MEDIA_TYPE = re.compile(rf"{_NAME}/{_NAME}(?: *;[ -~]*)?")
UNKNOWN_TYPE = "application/octet-stream"


class RangeNotSatisfiable(BadInput):
    """The requested range is outside the file."""

    code = "RANGE_NOT_SATISFIABLE"
    status = 416

    def __init__(self, size: int) -> None:
        self.headers = {"content-range": f"bytes */{size}"}
        super().__init__(f"The file size is {size:,} bytes.")


def attachment(
    stream: ObjectStream, filename: str, content_type: str, headers: Mapping[str, str] | None = None
) -> StreamingResponse:
    """Return a response that browsers save as a file and never display."""
    size = stream.info.bytes
    all_headers = {
        "content-length": str(stream.end - stream.start),
        "content-disposition": attachment_header(filename),
        "content-security-policy": "sandbox",
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
        "accept-ranges": "bytes",
        "last-modified": format_datetime(stream.info.last_modified.astimezone(UTC), usegmt=True),
        **(headers or {}),
    }
    partial = (stream.start, stream.end) != (0, size)
    if partial:
        all_headers["content-range"] = f"bytes {stream.start}-{stream.end - 1}/{size}"
    status = HTTPStatus.PARTIAL_CONTENT if partial else HTTPStatus.OK
    # The stored type was not checked, and some strings are not allowed in a header.
    media_type = content_type if _MEDIA_TYPE.fullmatch(content_type) else UNKNOWN_TYPE
    return StreamingResponse(stream, status, headers=all_headers, media_type=media_type)


def is_known(etag: str, if_none_match: str | None) -> bool:
    """Whether If-None-Match contains this ETag. If so, the client already has the current file."""
    known = [one.strip().removeprefix("W/") for one in (if_none_match or "").split(",")]
    return etag in known or "*" in known


def names_a_date(if_range: str | None) -> bool:
    return bool(if_range) and not if_range.strip().startswith(('"', "W/"))


def is_still(if_range: str | None, etag: str, modified: datetime | None) -> bool:
    """Whether the file is still the one that the client has, judging by the ETag or date in the If-Range header.

    Weak ETags and unreadable values do not match.
    """
    if not if_range:
        return True
    if not names_a_date(if_range):
        return if_range.strip() == etag
    return modified is not None and read_http_date(if_range) == modified.replace(microsecond=0)


def read_range(header: str | None, size: int) -> tuple[int, int]:
    """Read a Range header and return the requested byte range as start and end (exclusive).

    If the header is missing or is not a single valid range, returns the range of the whole file.
    Raises `RangeNotSatisfiable` if the range contains no bytes of the file.
    """
    found = _RANGE.fullmatch(header.strip()) if header else None
    if not found or found.groups() == ("", ""):
        return 0, size
    first, last = found.groups()
    if first == "":
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
    if start >= end:
        raise RangeNotSatisfiable(size)
    return start, end
