"""Identifiers and secret tokens.

Identifiers are UUIDs of version 7, so that rows created at about the same time are close together in an index. Tokens
are shown once and stored only as hashes, so that a leaked database dump does not contain them.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from uuid import UUID

_SEQUENCE_BITS = 74
TOKEN_BYTES = 32
_lock = threading.Lock()
_last = 0


def new_id() -> UUID:
    """Return a new id, greater than all earlier ids of this process, even if the clock stops or goes back.

    The time in the id is used only for sorting, never as a timestamp.
    """
    global _last  # noqa: PLW0603 - the order applies to the whole process
    fresh = time.time_ns() // 1_000_000 << _SEQUENCE_BITS | int.from_bytes(os.urandom(9)) << 1
    with _lock:
        _last = fresh if fresh > _last else _last + 1 + (int.from_bytes(os.urandom(4)) << 1)
        value = _last
    milliseconds, sequence = value >> _SEQUENCE_BITS, value & ((1 << _SEQUENCE_BITS) - 1)
    high, low = sequence >> 62, sequence & ((1 << 62) - 1)
    return UUID(int=milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(token: str) -> bytes:
    """Return the SHA-256 hash of a token. A fast hash is safe, because tokens are long and random."""
    return hashlib.sha256(token.encode()).digest()
