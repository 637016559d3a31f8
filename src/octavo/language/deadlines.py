"""Finds dates, periods and deadlines in English and German."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo.language.dates import find_spans
from octavo.language.findings import Finding, Statement

DATES, PERIODS = "Dates", "Periods and deadlines"
_COUNT = (
    r"(?:\d{1,4}(?:[.,]\d)?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|thirty|sixty|ninety"
    r"|einer?|einem|einen|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|vierzehn|dreißig|sechzig|neunzig)"
)
_LONG = (
    r"(?:(?:business|working|calendar|banking) )?(?:days?|weeks?|months?|years?|quarters?)"
    r"|(?:arbeits|werk|bank|kalender)?tage?n?|wochen?|monate?n?s?|jahre?n?s?|quartale?n?s?"
)
_SHORT = rf"(?:{_LONG}|hours?|minutes?|stunden?|minuten?)"
_LIMIT = (
    r"within|no later than|not later than|at the latest|at least|every|after|for|up to|innerhalb(?: von)?|binnen"
    r"|spätestens|mindestens|alle|nach|für|bis zu|seit|vor"
)
# "Each month", a weekday of a period, and German adjectives need no number.
_REPEATED = (
    r"\b(?:(?:the )?(?:first|last|second|third|\d{1,2}(?:st|nd|rd|th)) (?:(?:business|working|calendar) )?"
    r"(?:day|week|monday|tuesday|wednesday|thursday|friday) of (?:each|every|the) (?:calendar )?(?:month|quarter"
    r"|year|week)"
    r"|(?:each|every) (?:calendar )?(?:day|week|month|quarter|year)"
    r"|(?:zum|am) (?:ersten|zweiten|dritten|fünften|letzten|\d{1,2}\.) (?:(?:werk|arbeits|bank)?tag )?(?:eines"
    r"|jedes|des) (?:jeden )?"
    r"(?:kalender)?(?:monats|quartals|jahres)"
    r"|(?:zum|am) (?:monats|quartals|jahres)ende|jeden (?:tag|monat)|jedes (?:jahr|quartal)|jede woche)\b"
)
_PERIOD = re.compile(
    rf"{_REPEATED}|\b(?:{_LIMIT})\s+(?:(?:the|a|an|den|die|der)\s+)?{_COUNT}(?:\s*\([^()]{{1,20}}\))?[\s-]{_SHORT}\b"
    rf"|(?<![\w.,])(?:{_COUNT})(?:\s*\([^()]{{1,20}}\))?[\s-](?:{_LONG})\b"
    r"|\b(?:Q[1-4]|FY|fiscal year|Geschäftsjahr|(?:first|second|third|fourth) quarter(?: of)?)[ /-]?(?:19|20)\d\d\b",
    re.IGNORECASE,
)
_MONTHS = (
    r"January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Januar|Jänner|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
)
_YEAR = re.compile(
    r"\b(?:in|since|from|until|by|during|before|after|of|seit|ab|bis|im jahre?|vor|nach|anno)\s(?P<year>1[6-9]\d\d"
    r"|20\d\d)\b"
    r"(?![-/.,]?\d|\s?(?:%|[A-Z]{3}\b|€|\$|euros?|dollars?|pages?|seiten?|words?|people))",
    re.IGNORECASE,
)
# A day without a year. Abbreviations such as "mar" are too often something else.
_DAY = re.compile(
    rf"(?<![\d.])\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of)? (?:{_MONTHS})\b|\b(?:{_MONTHS}) \d{{1,2}}(?:st|nd|rd"
    rf"|th)?(?![\d.,:]*\d|\s?%)"
)
_AGE = re.compile(r"[\s-]+(?:old|alt|of age)\b", re.IGNORECASE)


def find_deadlines(statement: Statement, language: str | None) -> Iterator[Finding]:
    text = statement.text
    dates = [(start, end) for _, start, end in find_spans(text, language)]
    others = [match.span() for match in _DAY.finditer(text)] + [match.span("year") for match in _YEAR.finditer(text)]
    taken = dates + [one for one in others if not any(_overlap(one, other) for other in dates)]
    periods = [
        match.span()
        for match in _PERIOD.finditer(text)
        if not _AGE.match(text, match.end()) and not any(_overlap(match.span(), other) for other in taken)
    ]
    found = [(span, DATES) for span in taken] + [(span, PERIODS) for span in periods]
    for (start, end), group in sorted(found):
        yield Finding(group, " ".join(text[start:end].split()), statement, start, end)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]
