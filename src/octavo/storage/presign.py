"""Amazon's query signature (SigV4). obstore signs too, but cannot name the file that the browser saves."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from urllib.parse import quote, urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """A pair of S3 keys."""

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
    """The URL with a signature over method, host, path and query, good for some seconds from `now` (UTC)."""
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
