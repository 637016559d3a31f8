"""Signed links to our own web server, for buckets that cannot sign. Secret and time come from the caller."""

from __future__ import annotations

import hmac
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from octavo.storage.errors import LinkRefused

PATH = "/objects/"

_SECONDS = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Link:
    """What a signed link allows, until the second `expires`."""

    method: str
    key: str
    expires: int
    filename: str
    content_type: str


def sign_link(secret: bytes, link: Link) -> str:
    """Path and query; every field is covered by the signature."""
    query = {
        "expires": str(link.expires),
        "filename": link.filename,
        "content_type": link.content_type,
        "signature": _signature(secret, link),
    }
    return f"{PATH}{quote(link.key)}?{urlencode(query, quote_via=quote)}"


def verify_link(secret: bytes, method: str, key: str, query: Mapping[str, str], *, now: float) -> Link:
    """Old and altered are refused alike, so that nothing is learned from trying."""
    expires = query.get("expires", "")
    if not _SECONDS.fullmatch(expires):  # int() would also read signs, underscores and foreign digits
        raise LinkRefused
    link = Link(method, key, int(expires), query.get("filename", ""), query.get("content_type", ""))
    genuine = hmac.compare_digest(_signature(secret, link).encode(), query.get("signature", "").encode())
    if not genuine or link.expires <= now:
        raise LinkRefused
    return link


def attachment_header(filename: str) -> str:
    """`Content-Disposition` that makes a browser save, never show (RFC 6266): plain name, then full name."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()") else "_" for c in filename)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"


def _signature(secret: bytes, link: Link) -> str:
    # JSON keeps the fields apart: no two links have the same text.
    text = json.dumps([link.method, link.key, link.expires, link.filename, link.content_type])
    return urlsafe_b64encode(hmac.digest(secret, text.encode(), "sha256")).rstrip(b"=").decode()
