"""The grammar of keys. Names that begin with a dot are left to the buckets themselves."""

from __future__ import annotations

import re

from octavo.storage.errors import BadKey

MOST_CHARACTERS = 512

# Parts that are being written, and claims on keys; whatever is old in here was left by a process that died.
UNFINISHED = ".unfinished"

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


def check_key(key: str) -> str:
    """Keys are made by the server, so a bad one is a mistake of ours."""
    if len(key) > MOST_CHARACTERS or not _KEY.fullmatch(key):
        raise BadKey(repr(key[:MOST_CHARACTERS]))
    return key


def check_prefix(prefix: str) -> str:
    """Nothing, or the whole first segments of keys."""
    return check_key(prefix) if prefix else prefix


def segments(key: str) -> tuple[str, ...]:
    """The names along the way to an object."""
    return tuple(check_key(key).split("/"))
