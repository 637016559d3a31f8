"""The address of an S3 bucket, the client that accesses it, and messages that explain S3 errors.

Also signs links to our own web server, and links to S3 (SigV4).
"""

from __future__ import annotations

import hmac
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

from obstore.store import S3Store

from octavo.core.errors import StorageFailed
from octavo.storage.writing import LinkRefused, StorageUnavailable

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential


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

    The signature covers method, host, path and query, and is valid for `seconds` from `now` (UTC). The path of `url` is
    not encoded yet: it can contain any character, such as `?` and `#`.

    The obstore library can also sign URLs, but cannot set the file name for the browser.
    """
    server, _, key = url.partition("://")[2].partition("/")
    path = quote(f"/{key}")
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
    request = f"{method}\n{path}\n{text}\nhost:{server}\n\nhost\nUNSIGNED-PAYLOAD"
    to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    signature = hmac.digest(_signing_key(keys, scope), to_sign.encode(), "sha256").hex()
    return f"{url.partition('://')[0]}://{server}{path}?{text}&X-Amz-Signature={signature}"


def sign_headers(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    keys: AccessKeys,
    *,
    region: str,
    service: str,
    now: datetime,
) -> dict[str, str]:
    """Sign a request to an Amazon service other than S3. Returns its headers with the signature.

    The signature covers the headers and the body. The path of the URL is encoded again for the signature, as these
    services require.
    """
    parts, stamp = urlsplit(url), now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    signed = {**headers, "host": parts.netloc, "x-amz-date": stamp}
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{signed[name].strip()}\n" for name in sorted(signed))
    content = sha256(body).hexdigest()
    request = f"{method}\n{quote(parts.path, safe='/~')}\n{parts.query}\n{lines}\n{names}\n{content}"
    to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    signature = hmac.digest(_signing_key(keys, scope), to_sign.encode(), "sha256").hex()
    credential = f"Credential={keys.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "x-amz-date": stamp, "authorization": f"{_ALGORITHM} {credential}"}


def _signing_key(keys: AccessKeys, scope: str) -> bytes:
    key = b"AWS4" + keys.secret_key.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _encode(text: str) -> str:
    return quote(text, safe="")


_REFUSED = {"401", "403"}


@dataclass(frozen=True, slots=True)
class S3Address:
    """The server, the bucket, and the prefix of its keys. `endpoint` is None for Amazon S3."""

    bucket: str
    prefix: str
    endpoint: str | None
    region: str

    @property
    def virtual_hosted(self) -> bool:
        """Whether the bucket name is part of the host name instead of the path.

        Amazon expects this, except for names with a dot, which do not match its TLS certificate. Other servers expect
        the name in the path.
        """
        return self.endpoint is None and "." not in self.bucket

    @property
    def bucket_url(self) -> str:
        """The base URL of all objects in the bucket."""
        if self.virtual_hosted:
            return f"https://{self.bucket}.s3.{self.region}.amazonaws.com"
        return f"{self.server_url}/{self.bucket}"

    @property
    def server_url(self) -> str:
        """The URL of the server, without the bucket."""
        return (self.endpoint or f"https://s3.{self.region}.amazonaws.com").rstrip("/")

    def object_url(self, key: str) -> str:
        """Return the URL of one object."""
        return "/".join(part for part in (self.bucket_url, self.prefix, key) if part)


def is_missing_bucket(error: object) -> bool:
    """Whether the bucket is missing, not just the object. The HTTP status is the same, but the error code differs."""
    return error_code(error) == "NoSuchBucket"


def explain(error: Exception, address: S3Address) -> StorageFailed:
    """Convert an error into a message with advice.

    The server's message is omitted, because it can contain access keys.
    """
    status = _found(r"status code: (\d{3})", error)
    answer = f"{status} {error_code(error)}".strip()
    if is_missing_bucket(error):
        line = f"{address.server_url} has no bucket {address.bucket}. Create it, or change OCTAVO_STORAGE_URL."
    elif "169.254." in str(error):
        line = "No S3 keys found. Set OCTAVO_S3_ACCESS_KEY and OCTAVO_S3_SECRET_KEY."
    elif status in _REFUSED:
        line = (
            f"{address.server_url} refused access ({answer}). Check OCTAVO_S3_ACCESS_KEY, OCTAVO_S3_SECRET_KEY and "
            f"OCTAVO_S3_REGION, and that they can read, write, list and delete in {address.bucket}."
        )
    elif status:
        line = f"{address.server_url} returned {answer}. Check OCTAVO_S3_ENDPOINT, and the log of that server."
        return StorageUnavailable(line) if status.startswith("5") else StorageFailed(line)
    else:
        line = f"{address.server_url} does not respond. Check OCTAVO_S3_ENDPOINT and the network."
    return StorageUnavailable(line)


def error_code(error: object) -> str:
    """Return the error code in an error or in the text of a response, such as `NoSuchBucket`.

    Returns an empty string if there is none.
    """
    return _found(r"<Code>(\w{1,64})</Code>", error)


def _found(pattern: str, error: object) -> str:
    match = re.search(pattern, str(error))
    return match[1] if match else ""


_CONNECT_TIMEOUT = timedelta(seconds=3)
_RETRIES: RetryConfig = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=10),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=2), "base": 2},
}


def open_store(address: S3Address, keys: AccessKeys | None, *, timeout: timedelta) -> S3Store:
    """Open the S3 client.

    `timeout` covers a whole request with its body, so callers send large objects in several requests.
    """
    url = address.bucket_url if address.virtual_hosted else address.server_url
    config: S3Config = {
        # Set both, because an environment variable would override the one that is not set.
        "endpoint": url,
        "aws_endpoint_url_s3": url,
        "region": address.region,
        "virtual_hosted_style_request": address.virtual_hosted,
        "copy_if_not_exists": "multipart",
    }
    client: ClientConfig = {
        "allow_http": url.startswith("http://"),
        "connect_timeout": _CONNECT_TIMEOUT,
        "timeout": timeout,
    }
    return S3Store(
        address.bucket,
        prefix=address.prefix or None,
        config=config,
        client_options=client,
        retry_config=_RETRIES,
        credential_provider=_FixedKeys(keys) if keys else None,
    )


@dataclass(frozen=True, slots=True)
class _FixedKeys:
    """A credential provider with fixed keys.

    If the keys were passed to obstore directly, it would add a session token from the environment.
    """

    keys: AccessKeys

    def __call__(self) -> S3Credential:
        return {
            "access_key_id": self.keys.access_key,
            "secret_access_key": self.keys.secret_key,
            "token": None,
            "expires_at": None,
        }
