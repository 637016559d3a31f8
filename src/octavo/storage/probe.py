"""The health check of any bucket: what a document needs, done with a few bytes."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from octavo.core.errors import AlreadyStored, StorageFailed
from octavo.storage.bucket import Bucket

# Ordinary objects, so that the sweep of objects without rows finds those that a killed process left.
_FOLDER = "probes"


async def probe(bucket: Bucket) -> None:
    """Write, copy, read back, and be refused a second write, which some S3 servers wrongly accept."""
    content = uuid4().bytes
    written, copied = (f"{_FOLDER}/{uuid4().hex}" for _ in range(2))
    await bucket.put(written, content)
    try:
        await bucket.copy(written, copied)
        if await bucket.read(copied) != content:
            raise StorageFailed("The bucket gives back other bytes than were written.")
        await _expect_refusal(bucket, written, copied)
    finally:
        await bucket.delete([written, copied])


async def _expect_refusal(bucket: Bucket, written: str, copied: str) -> None:
    attempts = partial(bucket.put, written, b"second"), partial(bucket.copy, written, copied)
    for attempt in attempts:
        try:
            await attempt()
        except AlreadyStored:
            continue
        raise StorageFailed("The bucket lets an object be replaced: its server must support `If-None-Match: *`.")
