"""Names what differs between two contradicting statements: a number, a date, a negation or a few words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from octavo.connect.english_words import is_negation
from octavo.connect.statements import WORD, Statement

_MOST_WORDS = 4
_AFTER_NEGATION = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """`kind` is number, date, negation or wording."""

    kind: str
    explanation: str


def describe_difference(one: Statement, other: Statement) -> Difference:
    if (mine := _own_figure(one, other)) and (theirs := _own_figure(other, one)):
        return Difference("number", _both(mine, theirs))
    dates = sorted(one.dates - other.dates), sorted(other.dates - one.dates)
    if all(dates):
        return Difference("date", _both(*(_as_written(s, d[0]) for s, d in zip((one, other), dates, strict=True))))
    if (denied := _denial(one)) != (also := _denial(other)) and not (denied and also):
        return Difference("negation", f"One denies it: “{denied or also}”.")
    for mine, theirs in _replaced(one, other):
        return Difference("wording", _both(mine, theirs))
    return Difference("wording", "The two statements exclude each other.")


def _both(mine: str, theirs: str) -> str:
    return f"One says “{mine}”, the other “{theirs}”."


def _own_figure(one: Statement, other: Statement) -> str:
    """The first number of a statement, with its unit, that the other one does not have."""
    for figure in one.quantities:
        is_shared = any(figure.agrees(theirs) for theirs in other.quantities)
        if not is_shared and one.words[figure.place] not in one.dates:
            return _slice(one, figure.place, figure.end)
    return ""


def _denial(statement: Statement) -> str:
    """The first negation with the words that it denies."""
    place = next((place for place, word in enumerate(statement.words) if is_negation(word)), None)
    return "" if place is None else _slice(statement, place, place + _AFTER_NEGATION)


def _replaced(one: Statement, other: Statement) -> Iterator[tuple[str, str]]:
    """Short parts of both statements that stand in the same place, shortest first."""
    spans = SequenceMatcher(None, one.words, other.words, autojunk=False).get_opcodes()
    short = [
        (last - first + end - start, first, last, start, end)
        for kind, first, last, start, end in spans
        if kind == "replace" and max(last - first, end - start) <= _MOST_WORDS
    ]
    for _, first, last, start, end in sorted(short):
        yield _slice(one, first, last), _slice(other, start, end)


def _slice(statement: Statement, first: int, last: int) -> str:
    """Words of a statement as they are written."""
    words = list(WORD.finditer(statement.text))[first:last]
    return statement.text[words[0].start() : words[-1].end()]


def _as_written(statement: Statement, date: str) -> str:
    place = next(place for place, word in enumerate(statement.words) if word.removesuffix("s") == date)
    return _slice(statement, place, place + 1)
