"""The syntax of keys. Names that begin with a dot are reserved for use by the buckets."""

from __future__ import annotations

import re

from octavo.storage.errors import BadKey

MOST_CHARACTERS = 512

# The folder for unfinished writes and for claims (locks on keys). Old entries were left by processes that died.
UNFINISHED = ".unfinished"

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


def check_key(key: str) -> str:
    """Raise `BadKey` if a key is invalid, which is a bug, because the server creates all keys."""
    if len(key) > MOST_CHARACTERS or not _KEY.fullmatch(key):
        raise BadKey(repr(key[:MOST_CHARACTERS]))
    return key


def check_prefix(prefix: str) -> str:
    """Check a prefix, which must be empty or consist of complete segments."""
    return check_key(prefix) if prefix else prefix


def segments(key: str) -> tuple[str, ...]:
    """Split a key into its segments."""
    return tuple(check_key(key).split("/"))
