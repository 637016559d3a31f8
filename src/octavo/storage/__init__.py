"""Storage for files. A bucket is either a folder on this machine or an S3 bucket.

Other code uses only the `Bucket` interface.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from octavo.core.errors import BadSetting
from octavo.storage.bucket import (
    Bucket,
    ObjectInfo,
    ObjectStream,
    Stored,
    check_prefix,
    copy_to_file,
    find_damage,
    read_checked,
    replace_damaged,
)
from octavo.storage.local import LocalBucket
from octavo.storage.s3 import S3Bucket
from octavo.storage.s3_client import AccessKeys, Link, S3Address, attachment_header
from octavo.storage.writing import BadKey, Body, LinkRefused, ObjectDamaged, ObjectMissing

__all__ = [
    "BadKey",
    "Body",
    "Bucket",
    "Link",
    "LinkRefused",
    "ObjectDamaged",
    "ObjectInfo",
    "ObjectMissing",
    "ObjectStream",
    "Stored",
    "attachment_header",
    "copy_to_file",
    "find_damage",
    "open_bucket",
    "read_checked",
    "replace_damaged",
]


def open_bucket(
    url: str,
    *,
    endpoint: str | None = None,
    region: str = "us-east-1",
    access_key: str | None = None,
    secret_key: str | None = None,
) -> Bucket:
    """Open the bucket at `file:///folder` or `s3://bucket/prefix`, without connecting yet.

    The other arguments are only for S3.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return LocalBucket.open(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        address = S3Address(parts.netloc, check_prefix(parts.path.strip("/")), endpoint, region)
        return S3Bucket(address, _access_keys(access_key, secret_key))
    raise BadSetting("OCTAVO_STORAGE_URL must look like s3://bucket/prefix or file:///folder.")


def _access_keys(access_key: str | None, secret_key: str | None) -> AccessKeys | None:
    if access_key and secret_key:
        return AccessKeys(access_key, secret_key)
    if access_key or secret_key:
        raise BadSetting("OCTAVO_S3_ACCESS_KEY and OCTAVO_S3_SECRET_KEY must be set together.")
    return None
