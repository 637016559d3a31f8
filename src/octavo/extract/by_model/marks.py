"""The line that a model is asked to write before each page, so that pages can be found again in its answer."""

from __future__ import annotations

import re

_MARK = re.compile(r"^[ \t]*<!--[ \t]*page[ \t]+(\d{1,9})[ \t]*-->[ \t]*$", re.MULTILINE | re.IGNORECASE)


def mark(page: int) -> str:
    return f"<!-- page {page} -->"


def find_marks(markdown: str) -> dict[int, int]:
    """The marked pages and where they begin."""
    places: dict[int, int] = {}
    for found in _MARK.finditer(markdown):
        places.setdefault(int(found[1]), found.start())
    return places
