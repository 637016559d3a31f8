"""Finds the date of a document among the dates in its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

_MONTHS = """
january jan januar jänner januari janvier gennaio gen enero ene janeiro
february feb februar februari février fév fevrier febbraio febrero fevereiro fev
march mar märz maerz maart mars marzo março marco mrz mrt
april apr avril aprile abril avr abr
may mai mei maggio mayo maio mag
june jun juni juin giugno junio junho giu
july jul juli juillet luglio julio julho lug juil
august aug augustus août aout agosto ago
september sep sept septembre settembre septiembre setembro set
october oct oktober octobre ottobre octubre outubro okt ott out
november nov novembre noviembre novembro
december dec dezember décembre decembre dicembre diciembre dezembro dez dic déc
"""
_MONTH_NUMBERS = {name: number for number, line in enumerate(_MONTHS.strip().splitlines(), 1) for name in line.split()}
_NAMES = "|".join(sorted(_MONTH_NUMBERS, key=len, reverse=True))
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
# Labels of the document's own date, and labels of any date.
_DOCUMENT_LABEL = re.compile(
    r"((invoice|bill|billing|issue|publication|report|letter) date|date of issue|dated|published|issued|rechnungsdatum"
    r"|ausstellungsdatum|date de facture|facture n.{0,20} du|factuurdatum|data fattura|fecha de factura)[^\n\d]{0,25}$",
    re.IGNORECASE,
)
_ANY_LABEL = re.compile(
    r"(\bdate|posted|updated|sent|datum|vom\b|\bden\b|\bdu\b|\ble\b|fecha|\bdata\b)[^\n\d]{0,25}$", re.IGNORECASE
)
_OTHER_LABEL = re.compile(
    r"\b(due|deadline|expir\w*|until|till|before|born|birth|since|between|from|delivery|payable|fällig|bis|seit|geboren"
    r"|échéance|jusqu\w*|hasta|vencimiento|scadenza|entro|vervaldatum|tot)[^\n\d]{0,20}$",
    re.IGNORECASE,
)
# The date of a document is near its beginning.
_HEAD = 4000
_CONTEXT = 40


@dataclass(frozen=True, slots=True)
class DateMatch:
    """A date in a text. `iso` is a year, month or day in ISO 8601.

    `label` is higher if the words before the date clearly mark it as the document's date.
    """

    iso: str
    start: int
    label: int


def find_date(text: str, claimed: str | None = None, language: str | None = None) -> str | None:
    """Find the document's date: a date labelled as such, else `claimed` (the metadata), else the most precise date."""
    found = list(find_dates(text[:_HEAD], language))
    best = max(found, key=lambda one: (one.label, len(one.iso), -one.start), default=None)
    if best and (best.label or not claimed):
        return best.iso
    return claimed


def find_dates(text: str, language: str | None = None) -> Sequence[DateMatch]:
    """All dates that can be the document's date, in text order. If several patterns match, the first one wins."""
    found: list[DateMatch] = []
    for iso, start, _ in find_spans(text, language):
        before = text[max(start - _CONTEXT, 0) : start]
        if not _OTHER_LABEL.search(before):
            label = 2 if _DOCUMENT_LABEL.search(before) else 1 if _ANY_LABEL.search(before) else 0
            found.append(DateMatch(iso, start, label))
    return found


def find_spans(text: str, language: str | None = None) -> list[tuple[str, int, int]]:
    """All dates in text order, as ISO 8601 with their start and end."""
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
    """Possible pairs of month and day. In English 3/4 is ambiguous, so only the year is certain."""
    if parts.get("either"):
        first, second = int(parts["either"] or 0), int(parts["other"] or 0)
        if language == "en" and first != second and max(first, second) <= 12:  # noqa: PLR2004 - months
            yield 0, 0
        yield second, first
        yield first, second
    elif name := parts.get("name"):
        yield _MONTH_NUMBERS[name.lower()], int(parts.get("day") or 0)
    else:
        yield int(parts.get("month") or 0), int(parts.get("day") or 0)
