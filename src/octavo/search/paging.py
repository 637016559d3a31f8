"""What was found, page by page: hits have no key of their own to go on behind, so a cursor says how many were shown."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from uuid import UUID

from octavo.core.errors import BadInput
from octavo.database import Database
from octavo.search.contract import DEFAULT_LIMIT, Embeds, Filters, Found, Mode
from octavo.search.steps import find

# As many as the ways of looking can find together; behind that there is nothing.
MOST_SHOWN = 1000


async def find_page(
    database: Database,
    embeds: Embeds,
    owner: UUID,
    query: str,
    *,
    cursor: str | None = None,
    mode: Mode = "hybrid",
    limit: int = DEFAULT_LIMIT,
    filters: Filters | None = None,
    most_of_one: int | None = None,
) -> Found:
    """The hits behind those that were shown, as they are now."""
    shown = read_shown(cursor) if cursor else 0
    wanted = shown + limit
    found = await find(
        database, embeds, owner, query, mode=mode, limit=wanted + 1, filters=filters, most_of_one=most_of_one
    )
    more = make_shown(wanted) if len(found.items) > wanted and wanted < MOST_SHOWN else None
    return replace(found, items=found.items[shown:wanted], next_cursor=more)


def make_shown(shown: int) -> str:
    return urlsafe_b64encode(f"shown {shown}".encode()).decode().rstrip("=")


def read_shown(cursor: str) -> int:
    try:
        word, _, number = urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)).decode().partition(" ")
    except (ValueError, binascii.Error):
        word, number = "", ""
    if word != "shown" or not number.isdecimal() or not number.isascii() or not 0 < int(number[:9]) < MOST_SHOWN:
        raise BadInput("The cursor is none that a list answered as next_cursor.")
    return int(number)
