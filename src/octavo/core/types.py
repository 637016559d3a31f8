"""Types that all packages share: JSON values, extraction modes, the states of a job, ids and secret tokens.

The transitions between the states of a job are defined here, in SQL and in a diagram in the documentation. A test
checks that they agree.

Ids are version 7 UUIDs, so that rows created at about the same time are close together in an index. Tokens are shown
once and stored only as hashes, so that a leaked database dump does not contain them.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
import threading
import time
from datetime import date
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


class Extraction(StrEnum):
    """How a document's text is produced.

    `PLAIN`: the text is extracted from the file. `CLEAN`: a model cleans up the extracted text. `PAGES`: a model reads
    images of the pages; for formats without pages, it cleans up the text instead.
    """

    PLAIN = "plain"
    CLEAN = "clean"
    PAGES = "pages"


class Lane(StrEnum):
    """The two lanes of the queue.

    Bulk jobs run after interactive jobs, but interactive jobs never block them completely.
    """

    INTERACTIVE = "interactive"
    BULK = "bulk"


class JobStatus(StrEnum):
    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETE = "complete"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    PAUSED = "paused"
    CANCELLED = "cancelled"


JOB_TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.QUEUED: frozenset({JobStatus.PROCESSING, JobStatus.FAILED, JobStatus.PAUSED, JobStatus.CANCELLED}),
    JobStatus.PROCESSING: frozenset(
        {
            JobStatus.COMPLETE,
            JobStatus.QUEUED,
            JobStatus.FAILED,
            JobStatus.DEAD_LETTER,
            JobStatus.PAUSED,
            JobStatus.CANCELLED,
        }
    ),
    JobStatus.COMPLETE: frozenset(),
    JobStatus.FAILED: frozenset({JobStatus.QUEUED}),
    JobStatus.DEAD_LETTER: frozenset({JobStatus.QUEUED, JobStatus.CANCELLED}),
    JobStatus.PAUSED: frozenset({JobStatus.QUEUED, JobStatus.FAILED, JobStatus.CANCELLED}),
    JobStatus.CANCELLED: frozenset({JobStatus.QUEUED}),
}
# A job in one of these states changes only on request.
RESTING = frozenset(
    {JobStatus.COMPLETE, JobStatus.FAILED, JobStatus.DEAD_LETTER, JobStatus.PAUSED, JobStatus.CANCELLED}
)


def first_day(text: str | None) -> date | None:
    """Convert a date, month or year in ISO 8601 format to its first day, for example 2017-05 to 2017-05-01.

    Returns None if the text is not in this format.
    """
    if not text or not re.fullmatch(r"\d{4}(-\d\d){0,2}", text):
        return None
    try:
        return date.fromisoformat(f"{text}-01-01"[:10])
    except ValueError:
        return None


_SEQUENCE_BITS = 74
TOKEN_BYTES = 32
_lock = threading.Lock()
_last = 0


def new_id() -> UUID:
    """Return a new id. It is greater than all earlier ids of this process, even if the clock stops or goes back.

    The time in an id is used only for sorting, never as a timestamp.
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


def pkce_challenge(verifier: str) -> str:
    """Return the S256 code challenge for a PKCE code verifier (RFC 7636)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def hash_token(token: str) -> bytes:
    """Return the SHA-256 hash of a token. A fast hash is safe, because tokens are long and random."""
    return hashlib.sha256(token.encode()).digest()
