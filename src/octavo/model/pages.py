"""Lists in pages: newest first, each page beginning behind the last item of the one before."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar
from uuid import UUID

from octavo.model.errors import BadInput

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: list[Item]
    next_cursor: str | None


def make_cursor(at: datetime, item: UUID) -> str:
    """Where a page ended, opaque to those who send it back."""
    return urlsafe_b64encode(f"{at.isoformat()} {item}".encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[datetime, UUID]:
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        at, _, item = urlsafe_b64decode(padded).decode().partition(" ")
        return datetime.fromisoformat(at).astimezone(UTC), UUID(item)
    except (ValueError, OverflowError, binascii.Error):
        raise BadInput("The cursor is none that a list answered as next_cursor.") from None
