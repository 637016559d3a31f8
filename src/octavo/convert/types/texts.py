"""Words as they stand, and identifiers: what a document is called by, with at least one digit in it."""

from __future__ import annotations

import re

from octavo.convert.types.dates import find_dates
from octavo.convert.types.found import Found, Habits

_IDENTIFIER = re.compile(r"(?<![\w])(?:[A-Z]{1,5}[ ](?=\d))?[^\W_](?:[\w./\-\u2013]*\w)?")
_LEAST = 2
_EDGES = " \t:;.,|-\u2013"


def find_texts(text: str, habits: Habits) -> list[Found]:
    """All of it, without what only divides."""
    del habits
    start = len(text) - len(text.lstrip(_EDGES))
    end = len(text.rstrip(" \t:;,|"))
    return [Found(text[start:end], start, end)] if start < end else []


def find_identifiers(text: str, habits: Habits) -> list[Found]:
    """Dates and percentages are none."""
    days = [(one.start, one.end) for one in find_dates(text, habits)]
    return [
        Found(match[0], *match.span())
        for match in _IDENTIFIER.finditer(text)
        if len(match[0]) >= _LEAST
        and any(map(str.isdigit, match[0]))
        and not text[match.end() :].lstrip().startswith("%")
        and not any(start < match.end() and match.start() < end for start, end in days)
    ]
