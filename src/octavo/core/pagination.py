"""Cursor pagination: each page of results starts after the last item of the previous page."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar
from uuid import UUID

from octavo.core.errors import BadInput

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: list[Item]
    next_cursor: str | None


def make_cursor(at: datetime, item: UUID) -> str:
    """Make a cursor that points to the last item of a page. Clients cannot interpret it; they only send it back."""
    return make_text_cursor(at.isoformat(), item)


def read_cursor(cursor: str) -> tuple[datetime, UUID]:
    at, item = read_text_cursor(cursor)
    try:
        return datetime.fromisoformat(at).astimezone(UTC), item
    except (ValueError, OverflowError):
        raise _refusal() from None


def make_text_cursor(text: str, item: UUID) -> str:
    """Make a cursor for a list that is sorted by a text field."""
    return urlsafe_b64encode(f"{item} {text}".encode()).decode().rstrip("=")


def read_text_cursor(cursor: str) -> tuple[str, UUID]:
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        item, _, text = urlsafe_b64decode(padded).decode().partition(" ")
        if "\0" in text:
            raise _refusal()
        return text, UUID(item)
    except (ValueError, binascii.Error):
        raise _refusal() from None


def _refusal() -> BadInput:
    return BadInput("Invalid cursor. Use the next_cursor of the previous page.")
