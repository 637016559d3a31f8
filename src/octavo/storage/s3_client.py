"""How obstore is set up for S3: failures in seconds, and an endpoint that the environment cannot change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.store import S3Store

from octavo.storage.presign import AccessKeys
from octavo.storage.s3_address import S3Address

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential

_CONNECT_TIMEOUT = timedelta(seconds=3)
_RETRIES: RetryConfig = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=10),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=2), "base": 2},
}


def open_store(address: S3Address, keys: AccessKeys | None, *, timeout: timedelta) -> S3Store:
    """`timeout` is for one request with its body, so a body is never more than one part."""
    url = address.bucket_url if address.virtual_hosted else address.server_url
    config: S3Config = {
        # Both, because variables in the environment would win over the one that is not given.
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
    """A provider, because to keys given plainly obstore adds a session token from the environment."""

    keys: AccessKeys

    def __call__(self) -> S3Credential:
        return {
            "access_key_id": self.keys.access_key,
            "secret_access_key": self.keys.secret_key,
            "token": None,
            "expires_at": None,
        }
