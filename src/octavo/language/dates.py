"""Finds dates in a text, in several languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

# The names of the months, one month per line, with the English name first. People also type them without accents.
MONTHS = """
january jan januar jänner janner januari janvier janv gennaio gen enero ene janeiro styczeń styczen stycznia ledna
february feb febuary februar februari février fevrier fév fev febr févr fevr febbraio febrero fevereiro lutego února
march mar märz marz maerz maart mars marzo março marco mrz mrt marca března brezna
april apr avril avr aprile abril abr kwietnia dubna
may mai mei maj maggio mag mayo maio maja května kvetna
june jun juni juin giugno giu junio junho czerwca června cervna
july jul juli juillet juil luglio lug julio julho lipca července cervence
august aug augustus août aout agosto ago augusti sierpnia srpna
september sep sept septembre settembre set septiembre setembro września wrzesnia září zari
october oct oktober okt octobre ottobre ott octubre outubro out października pazdziernika října rijna
november nov novembre noviembre novembro listopada listopadu
december dec dezember dez décembre decembre déc dicembre dic diciembre dezembro grudnia prosince
"""
MONTH_NUMBERS = {name: number for number, line in enumerate(MONTHS.strip().splitlines(), 1) for name in line.split()}
_NAMES = "|".join(sorted(MONTH_NUMBERS, key=len, reverse=True))
_YEAR = r"(?P<year>1[4-9]\d\d|20\d\d)"
_BETWEEN = r"[\s.,]{1,3}(?:de\s|del\s)?"
_PATTERNS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<![\d-]){_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)(?!\d)",
        rf"(?<![\d-]){_YEAR}/(?P<month>\d\d)/(?P<day>\d\d)(?!\d)",
        rf"(?<![\d.])(?P<day>\d\d?)(?:st|nd|rd|th|er|\.)?(?:\sof)?{_BETWEEN}(?P<name>{_NAMES})\b{_BETWEEN}{_YEAR}(?!\d)",
        rf"\b(?P<name>{_NAMES})\b\.?\s(?P<day>\d\d?)(?:st|nd|rd|th)?\s?,?\s{_YEAR}(?!\d)",
        rf"(?<![\d.])(?P<day>\d\d?)\.\s?(?P<month>\d\d?)\.\s?{_YEAR}(?!\.?\d)",
        rf"(?<![\d/-])(?P<either>\d\d?)(?P<mark>[/-])(?P<other>\d\d?)(?P=mark){_YEAR}(?!\d)",
        rf"\b(?P<name>{_NAMES})\b\.?,?\s{_YEAR}(?!\d)",
        rf"(?:©|\(c\)|copyright)\s{{0,3}}(?:©\s?)?{_YEAR}(?!\d)",
    )
]


def find_spans(text: str, language: str | None = None) -> list[tuple[str, int, int]]:
    """Find all dates, in text order. Returns each date in ISO 8601 format with its start and end offsets."""
    found: list[tuple[str, int, int]] = []
    for match in (match for pattern in _PATTERNS for match in pattern.finditer(text)):
        iso = _iso(match.groupdict(), language)
        if iso and not any(start < match.end() and match.start() < end for _, start, end in found):
            found.append((iso, match.start(), match.end()))
    return sorted(found, key=lambda one: one[1])


def _iso(parts: dict[str, str | None], language: str | None) -> str | None:
    year = int(parts["year"] or 0)
    for month, day in _meanings(parts, language):
        if not month:
            return f"{year:04}"
        if not day:
            return f"{year:04}-{month:02}"
        try:
            return date(year, month, day).isoformat()
        except ValueError:
            continue
    return None


def _meanings(parts: dict[str, str | None], language: str | None) -> Iterator[tuple[int, int]]:
    """Yield the possible (month, day) pairs of a date.

    If the order is unclear, as in 3/4 in English, the first pair is (0, 0), because only the year is certain.
    """
    if parts.get("either"):
        first, second = int(parts["either"] or 0), int(parts["other"] or 0)
        if language == "en" and first != second and max(first, second) <= 12:  # noqa: PLR2004 - months
            yield 0, 0
        yield second, first
        yield first, second
    elif name := parts.get("name"):
        yield MONTH_NUMBERS[name.lower()], int(parts.get("day") or 0)
    else:
        yield int(parts.get("month") or 0), int(parts.get("day") or 0)
