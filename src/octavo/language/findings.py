"""Defines findings: values that rules found in a text, with the words that support them.

Also finds dates in a text, in several languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from octavo.language.insights import ChunkText
from octavo.language.markdown_segments import SegmentKind, blank_markup, split_segments, split_sentences

MAX_QUOTE = 300
# A line break inside prose, after a full line. After a short line, as in an address, a new statement starts.
_WRAPPED = re.compile(r"(?<=[^\n]{60})\n(?=[^\n\s|#>-])")
_UNFINISHED = re.compile(r"\b(?:Nr|Abs|Art|Ziff|Prof|Dr|Str|Mio|Mrd|ca|bzw|z\. ?B)\.$")
_DAY = re.compile(r"(?<![\d.,/-])\d{1,2}\.$")
_GERMAN_MONTH = re.compile(r"(?:Jan|Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)\w*\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, heading, table row or list item. In `text`, markup is replaced with spaces."""

    chunk: int
    start: int
    text: str
    kind: SegmentKind

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Finding:
    """A value that a rule found.

    `group` is the heading under which it is listed, such as "People". `start` and `end` are the offsets of the value in
    the statement.
    """

    group: str
    value: str
    statement: Statement
    start: int
    end: int

    @property
    def quote(self) -> str:
        """The statement without markup or line breaks. A long statement is shortened to the words around the value."""
        text = self.statement.text
        if len(text) > MAX_QUOTE:
            text = text[_space_before(text, self.start) : _space_after(text, self.end, self.start)]
        return " ".join(text.replace("|", " ").split())


def read_statements(chunks: Sequence[ChunkText]) -> Iterator[Statement]:
    """Yield the statements in all chunks, in text order."""
    for place, chunk in enumerate(chunks):
        text = _WRAPPED.sub(" ", blank_markup(chunk.content))
        for part in split_segments(chunk.content):
            whole = part.part in {SegmentKind.CELLS, SegmentKind.HEADING}
            spans = [(part.start, part.end)] if whole else _split(text, part.start, part.end)
            yield from (Statement(place, start, text[start:end], part.part) for start, end in spans)


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split a text into sentences. The splitter breaks German text after “14.” and “Nr.”; such parts are rejoined."""
    held: tuple[int, int] | None = None
    for first, last in split_sentences(text, start, end):
        if held and _continues(text[held[0] : held[1]], text[first:last]):
            held = held[0], last
            continue
        if held:
            yield held
        held = first, last
    if held:
        yield held


def _continues(before: str, after: str) -> bool:
    return bool(_UNFINISHED.search(before) or (_DAY.search(before) and _GERMAN_MONTH.match(after)))


def merge_repeated(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Return one list of findings for each distinct combination of group and value.

    The lists are sorted by the first occurrence of their value.
    """
    merged: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        merged.setdefault((one.group, " ".join(one.value.casefold().split())), []).append(one)
    return list(merged.values())


def _space_before(text: str, place: int) -> int:
    least = max(0, place - MAX_QUOTE // 3)
    return text.find(" ", least, place) + 1 if least and " " in text[least:place] else least


def _space_after(text: str, place: int, start: int) -> int:
    most = max(place, min(len(text), start + MAX_QUOTE * 2 // 3))
    space = text.rfind(" ", place, most)
    return space if most < len(text) and space > place else most


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
    """Yield the possible (month, day) pairs of a date, most likely first.

    If the order of day and month is unclear, as in 3/4 in English, the first pair is (0, 0): only the year is certain.
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
