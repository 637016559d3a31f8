"""Signs links to our own web server, and links to S3 (SigV4)."""

from __future__ import annotations

import hmac
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from urllib.parse import quote, urlencode, urlsplit

from octavo.storage.errors import LinkRefused

PATH = "/objects/"

_SECONDS = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Link:
    """The contents of a signed link, such as key and expiry. `expires` is a Unix time in seconds."""

    method: str
    key: str
    expires: int
    filename: str
    content_type: str


def sign_link(secret: bytes, link: Link) -> str:
    """Create the path and query of a signed link. The signature covers every field."""
    query = {
        "expires": str(link.expires),
        "filename": link.filename,
        "content_type": link.content_type,
        "signature": _signature(secret, link),
    }
    return f"{PATH}{quote(link.key)}?{urlencode(query, quote_via=quote)}"


def verify_link(secret: bytes, method: str, key: str, query: Mapping[str, str], *, now: float) -> Link:
    """Check the signature and the expiry time of a link.

    Both failures raise the same error, so that the error does not reveal which check failed.
    """
    expires = query.get("expires", "")
    if not _SECONDS.fullmatch(expires):  # int() would also accept signs, underscores and other digits
        raise LinkRefused
    link = Link(method, key, int(expires), query.get("filename", ""), query.get("content_type", ""))
    genuine = hmac.compare_digest(_signature(secret, link).encode(), query.get("signature", "").encode())
    if not genuine or link.expires <= now:
        raise LinkRefused
    return link


def attachment_header(filename: str) -> str:
    """Return a `Content-Disposition` header that makes browsers save the file (RFC 6266).

    The header contains the file name twice: in ASCII and in full.
    """
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()") else "_" for c in filename)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"


def _signature(secret: bytes, link: Link) -> str:
    # JSON keeps the fields apart unambiguously.
    text = json.dumps([link.method, link.key, link.expires, link.filename, link.content_type])
    return urlsafe_b64encode(hmac.digest(secret, text.encode(), "sha256")).rstrip(b"=").decode()


_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """The access key and the secret key for S3."""

    access_key: str
    secret_key: str = field(repr=False)


def presign(
    method: str,
    url: str,
    query: Mapping[str, str],
    keys: AccessKeys,
    *,
    region: str,
    seconds: int,
    now: datetime,
) -> str:
    """Sign a URL for S3.

    The signature covers method, host, path and query, and is valid for `seconds` from `now` (UTC).

    The library obstore can also sign URLs, but cannot set the file name for the browser.
    """
    parts = urlsplit(url)
    path = quote(parts.path)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    signed = {
        **query,
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.access_key}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
    }
    text = "&".join(f"{name}={value}" for name, value in sorted((_encode(n), _encode(v)) for n, v in signed.items()))
    request = f"{method}\n{path}\n{text}\nhost:{parts.netloc}\n\nhost\nUNSIGNED-PAYLOAD"
    to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    signature = hmac.digest(_signing_key(keys, scope), to_sign.encode(), "sha256").hex()
    return f"{parts.scheme}://{parts.netloc}{path}?{text}&X-Amz-Signature={signature}"


def _signing_key(keys: AccessKeys, scope: str) -> bytes:
    key = b"AWS4" + keys.secret_key.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _encode(text: str) -> str:
    return quote(text, safe="")
