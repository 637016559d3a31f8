"""Where an S3 bucket is, and what to tell a person when it does not do what was asked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from octavo.core.errors import StorageFailed

_REFUSED = {"401", "403"}


@dataclass(frozen=True, slots=True)
class S3Address:
    """A bucket, the part of it that is ours, and the server; without an endpoint that is Amazon."""

    bucket: str
    prefix: str
    endpoint: str | None
    region: str

    @property
    def virtual_hosted(self) -> bool:
        """Amazon wants the bucket in the host name, where a dot breaks the certificate; others in the path."""
        return self.endpoint is None and "." not in self.bucket

    @property
    def bucket_url(self) -> str:
        """Where the keys of the bucket begin."""
        if self.virtual_hosted:
            return f"https://{self.bucket}.s3.{self.region}.amazonaws.com"
        return f"{self.server_url}/{self.bucket}"

    @property
    def server_url(self) -> str:
        """The server without the bucket."""
        return (self.endpoint or f"https://s3.{self.region}.amazonaws.com").rstrip("/")

    def object_url(self, key: str) -> str:
        """The address of one object."""
        return "/".join(part for part in (self.bucket_url, self.prefix, key) if part)


def is_missing_bucket(error: Exception) -> bool:
    """The server has the same status for a bucket and for an object that is not there."""
    return _code(error) == "NoSuchBucket"


def explain(error: Exception, address: S3Address) -> StorageFailed:
    """The server's own words are left out, because they repeat access keys; its code says enough."""
    status = _found(r"status code: (\d{3})", error)
    answer = f"{status} {_code(error)}".strip()
    if is_missing_bucket(error):
        line = f"{address.server_url} has no bucket {address.bucket}: make it, or change OCTAVO_STORAGE_URL."
    elif "169.254." in str(error):
        line = "No S3 keys were found: set OCTAVO_S3_ACCESS_KEY and OCTAVO_S3_SECRET_KEY."
    elif status in _REFUSED:
        line = (
            f"{address.server_url} refused ({answer}): check OCTAVO_S3_ACCESS_KEY, OCTAVO_S3_SECRET_KEY and "
            f"OCTAVO_S3_REGION, and that they may read, write, list and delete in {address.bucket}."
        )
    elif status:
        line = f"{address.server_url} answered {answer}: check OCTAVO_S3_ENDPOINT, and the log of that server."
    else:
        line = f"{address.server_url} does not answer: check OCTAVO_S3_ENDPOINT and the network."
    return StorageFailed(line)


def _code(error: Exception) -> str:
    return _found(r"<Code>(\w{1,64})</Code>", error)


def _found(pattern: str, error: Exception) -> str:
    match = re.search(pattern, str(error))
    return match[1] if match else ""
