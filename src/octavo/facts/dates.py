"""Reads dates in several languages and returns them as ISO 8601, such as 2024-08-15."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from functools import lru_cache

from octavo.facts.words import Notation, TypedMatch, fold
from octavo.language.findings import MONTH_NUMBERS, MONTHS

_NUMBERS = {fold(name): number for name, number in MONTH_NUMBERS.items()}
_NAMES = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_ANY_YEAR = r"(?P<year>(?:19|20)\d\d|\d\d)"
_BETWEEN = r"(?:\s*[.,/-]\s*|\s+)(?:de\s+|del\s+)?"
_ORDINAL = r"(?:st|nd|rd|th|er|o)?(?:\s+day)?(?:\s+of)?"
_SHAPES = [
    re.compile(pattern)
    for pattern in (
        rf"(?<![\d-]){_YEAR}\s?[-./]\s?(?P<month>\d\d?)\s?[-./]\s?(?P<day>\d\d?)(?!\d)",
        rf"(?<![\d.])(?P<day>\d\d?){_ORDINAL}{_BETWEEN}(?P<name>{_NAMES})\b{_BETWEEN}{_YEAR}(?!\d)",
        rf"\b(?P<name>{_NAMES})\b[.,]?\s+(?P<day>\d\d?)(?:st|nd|rd|th)?\s?,?\s*{_YEAR}(?!\d)",
        rf"(?<![\d.])(?P<day>\d\d?)\s?\.\s?(?P<month>\d\d?)\s?\.\s?{_ANY_YEAR}(?!\.?\d)",
        rf"(?<![\d/-])(?P<either>\d\d?)\s?(?P<mark>[/-])\s?(?P<other>\d\d?)\s?(?P=mark)\s?{_ANY_YEAR}(?![\d/-])",
    )
]
# 2020\ub144 4\uc6d4 2\uc77c and 2020\u5e744\u67082\u65e5. These letters must not be folded.
_EASTERN = re.compile(
    rf"(?<!\d){_YEAR}\s?[\u5e74\ub144]\s?(?P<month>\d\d?)\s?[\u6708\uc6d4]\s?(?P<day>\d\d?)\s?[\u65e5\uc77c]"
)
_SLASHED = re.compile(r"(?<![\d/.-])(\d\d?)([/-])(\d\d?)\2(?:19|20)?\d\d(?![\d/-])")
_MOST_MONTH = 12
_CENTURY = 2000
_SHORT = 100


def find_dates(text: str, notation: Notation) -> list[TypedMatch]:
    """Find dates, in the order in which they appear.

    If several date formats match at the same position, the one that comes first in `_SHAPES` is used.
    """
    found: list[TypedMatch] = []
    folded = fold(text)
    shapes = [(_EASTERN, text), *((shape, folded) for shape in _SHAPES)]
    for match in (match for shape, within in shapes for match in shape.finditer(within)):
        if any(one.start < match.end() and match.start() < one.end for one in found):
            continue
        if day := _day(match.groupdict(), notation):
            found.append(TypedMatch(day, *match.span()))
    return sorted(found, key=lambda one: one.start)


def read_date(text: str, notation: Notation) -> str | None:
    """Read a text as a date. Returns None if it contains no date.

    The date formats in `notation` are tried first and must match the whole text.
    """
    for form in notation.date_formats:
        try:
            return datetime.strptime(_in_english(text), form).date().isoformat()  # noqa: DTZ007 - a date has no time zone
        except (ValueError, re.error):  # a format that contains the same part twice is an invalid pattern
            continue
    found = find_dates(text, notation)
    return found[0].value if found else None


@lru_cache(maxsize=256)
def _in_english(text: str) -> str:
    """Replace month names with their English names, which date formats expect."""
    english = [line.split()[0] for line in MONTHS.strip().splitlines()]
    return re.sub(rf"\b({_NAMES})\b", lambda found: english[_NUMBERS[found[1]] - 1], fold(" ".join(text.split())))


def writes_month_first(texts: Iterable[str]) -> bool | None:
    """Whether the dates in these texts start with the month, as in 12/31/2024.

    The first unambiguous date decides. Returns None if all dates are ambiguous.
    """
    for text in texts:
        for first, _, second in _SLASHED.findall(text):
            if int(first) > _MOST_MONTH >= int(second):
                return False
            if int(second) > _MOST_MONTH >= int(first):
                return True
    return None


def _day(parts: dict[str, str | None], notation: Notation) -> str | None:
    year = int(parts["year"] or 0)
    year += _CENTURY if year < _SHORT else 0
    for month, day in _meanings(parts, notation):
        try:
            return date(year, month, day).isoformat()
        except ValueError:
            continue
    return None


def _meanings(parts: dict[str, str | None], notation: Notation) -> Iterator[tuple[int, int]]:
    if either := parts.get("either"):
        first, second = int(either), int(parts["other"] or 0)
        yield (first, second) if notation.month_first else (second, first)
        yield (second, first) if notation.month_first else (first, second)
    elif name := parts.get("name"):
        yield _NUMBERS[name], int(parts["day"] or 0)
    else:
        yield int(parts["month"] or 0), int(parts["day"] or 0)


_MONTH = re.compile(rf"(?<![\w.])(?P<name>{_NAMES})\b\.?,?\s+(?:de\s+|del\s+)?{_YEAR}(?!\d)")
_ABBREVIATION = 3


def find_months(text: str, notation: Notation) -> list[TypedMatch]:
    """Find months without a day, such as May 2017, and return them as 2017-05. `find_dates` finds full dates."""
    folded = fold(text)
    days = find_dates(text, notation)
    return [
        TypedMatch(f"{match['year']}-{_NUMBERS[match['name']]:02}", *match.span())
        for match in _MONTH.finditer(folded)
        if len(match["name"]) >= _ABBREVIATION
        and not any(day.start < match.end() and match.start() < day.end for day in days)
    ]


def is_ambiguous(text: str) -> bool:
    """Whether the day and month of a date can be confused, as in 3/4/2024."""
    found = _SLASHED.search(fold(text))
    return bool(found) and int(found[1]) <= _MOST_MONTH and int(found[3]) <= _MOST_MONTH and found[1] != found[3]


_DAY_LINE = rf"(?:\d\d?{_ORDINAL}\.?\s*)?(?:{_NAMES})\b\.?(?:\s+\d\d?(?:st|nd|rd|th)?)?,?\s*(?:de\s+)?(?:19|20)\d\d"
# A whole line that contains only a date and perhaps a place, such as "Lindbeck, 14 October 2024". In folded text.
DATE_LINE = re.compile(
    rf"(?:[^\d.]{{0,45}}[\s,(]+|(?:rev\w*|version|v)\.?\s*[\d.]+\W*)?"
    rf"(?:{_DAY_LINE}|\d\d?\s?[./-]\s?\d\d?\s?[./-]\s?(?:\d\d|(?:19|20)\d\d)|(?:19|20)\d\d[-./]\d\d?[-./]\d\d?)"
    r"(?:\W+(?:\d\d?[:.]\d\d(?::\d\d)?\s*(?:am|pm|uhr|h)?)?[^\w\d]*)?"
)
