"""Amounts of money and other numbers, as people write them: 1,234.56 and 1.234,56 and 1 234,56 and 1'234.56."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from octavo.convert.types.found import Found, Habits

# Groups of three, or of two as in India; a space divides groups only where three digits follow.
_NUMBER = re.compile(
    r"(?<![\w.,/:-])(?P<sign>[-\u2212\u2013(]\s?)?(?:(?:[A-Z]{3}|[^\w\s.,:;()%/'\"#*|-]{1,2}|Rs\.?|kr\.?)\s?)?"
    r"(?P<minus>[-\u2212]\s?)?"
    r"(?P<digits>\d{1,3}(?:[ \u00a0\u202f'\u2019]\d{3})+(?:[.,]\d{1,4})?"
    r"|\d{1,3}(?:[.,]\d{2,3})+(?:[.,]\d{1,4})?|\d+(?:[.,]\d{1,4})?)"
    r"(?P<after>-)?(?!\w*\d)(?!\s?%)(?![.,/:-]\d)"
)
_GROUP = 3
_DIGITS_OF_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}-\d\d-\d\d")


def find_amounts(text: str, habits: Habits) -> list[Found]:
    """Only what may be money: numbers with a fraction, or whole. Dates, shares and parts of words are none."""
    dates = [found.span() for found in _DIGITS_OF_DATE.finditer(text)]
    found: list[Found] = []
    for match in _NUMBER.finditer(text):
        if any(start < match.end() and match.start() < end for start, end in dates):
            continue
        value = read_number(match["digits"], habits.decimal)
        if value is None:
            continue
        negative = match["sign"] or match["minus"] or match["after"]
        found.append(Found(f"-{value}" if negative and Decimal(value) else value, match.start("digits"), match.end()))
    return found


def read_number(digits: str, decimal: str | None = None) -> str | None:
    """In one form: a point before the fraction, nothing between groups."""
    digits = re.sub(r"[\s\u00a0\u202f'\u2019]", "", digits)
    point = _decimal_mark(digits, decimal)
    whole, _, fraction = digits.rpartition(point) if point else (digits, "", "")
    plain = re.sub(r"[.,]", "", whole or "0") + (f".{fraction}" if fraction else "")
    try:
        return str(Decimal(plain))
    except InvalidOperation:
        return None


def _decimal_mark(digits: str, usual: str | None) -> str | None:
    """The last mark begins a fraction, unless it comes several times or three digits follow it and nothing says so."""
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        return None
    mark, after = digits[last], len(digits) - last - 1
    if digits.count(mark) > 1:
        return None
    other = "," if mark == "." else "."
    if other in digits or after != _GROUP:
        return mark
    return mark if usual == mark else None


def usual_decimal(texts: Iterable[str]) -> str | None:
    """The mark that stands before two last digits most often."""
    marks = Counter(mark for text in texts for mark in re.findall(r"\d([.,])\d\d(?![\d.,])", text))
    return marks.most_common(1)[0][0] if marks else None
