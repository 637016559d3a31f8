"""Describes how two contradicting statements differ: in a number, a date, a negation or a few words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter

from octavo.connect.english_words import Quantity, as_root, is_content_word, is_negation, word_set
from octavo.connect.statements import WORD, Statement

WORDING = "wording"
_MOST_WORDS = 4
_CONTEXT = 4
_SHORT = 3
_AFTER_NEGATION = 3
# From this similarity on, the words in the same place of two sentences stand for each other.
_LEAST_ALIKE = 0.5
_EXCLUDING = word_set(
    "incapable excluded excludes barred banned prohibited forbidden avoids avoided anything only exclusively"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two statements. `kind` is number, date, negation or wording."""

    kind: str
    explanation: str


def describe_difference(one: Statement, other: Statement) -> Difference:
    if figures := _own_figures(one, other):
        return Difference("number", _both(*figures))
    dates = sorted(one.dates - other.dates), sorted(other.dates - one.dates)
    if all(dates):
        return Difference("date", _both(*(_as_written(s, d[0]) for s, d in zip((one, other), dates, strict=True))))
    if (denied := _denial(one)) != (also := _denial(other)) and not (denied and also):
        return Difference("negation", f"One sentence contains a negation: “{denied or also}”.")
    for mine, theirs in _replaced(one, other):
        return Difference(WORDING, _both(mine, theirs))
    if words := _only_in_shorter(one, other):
        return Difference(WORDING, f"Only one sentence says “{words}”.")
    return Difference(WORDING, "The two statements cannot both be true.")


def _both(mine: str, theirs: str) -> str:
    return f"One says “{mine}”, the other “{theirs}”."


def _own_figures(one: Statement, other: Statement) -> tuple[str, str] | None:
    """Return one number from each statement that the other statement does not contain, or None.

    Both numbers must measure the same thing. If there are several, those with the most similar neighbouring words are
    chosen.
    """
    pairs = [
        (_common_context(one, mine, other, theirs), mine, theirs)
        for mine in _not_in(one, other)
        for theirs in _not_in(other, one)
        if mine.kind == theirs.kind
    ]
    if not pairs:
        return None
    _, mine, theirs = max(pairs, key=lambda pair: pair[0])
    return _slice(one, mine.place, mine.end), _slice(other, theirs.place, theirs.end)


def _not_in(one: Statement, other: Statement) -> Iterator[Quantity]:
    for figure in one.quantities:
        is_shared = any(figure.agrees(theirs) for theirs in other.quantities)
        if not is_shared and one.words[figure.place] not in one.dates:
            yield figure


def _common_context(one: Statement, mine: Quantity, other: Statement, theirs: Quantity) -> int:
    """Count the words that appear next to both numbers."""
    around = [
        set(statement.words[max(figure.place - _CONTEXT, 0) : figure.end + _CONTEXT])
        for statement, figure in ((one, mine), (other, theirs))
    ]
    return len(around[0] & around[1])


def _denial(statement: Statement) -> str:
    """Return the first negation and the words after it, or an empty string if there is no negation."""
    words = enumerate(statement.words)
    place = next((place for place, word in words if is_negation(word) or word in _EXCLUDING), None)
    return "" if place is None else _slice(statement, place, place + _AFTER_NEGATION)


def _replaced(one: Statement, other: Statement) -> Iterator[tuple[str, str]]:
    """Compare two similar statements and yield the short texts in which they differ, shortest first, as pairs of the
    text in `one` and in `other`.
    """
    matcher = SequenceMatcher(None, one.words, other.words, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return
    short = [
        (last - first + end - start, first, last, start, end)
        for kind, first, last, start, end in matcher.get_opcodes()
        if kind == "replace"
        and max(last - first, end - start) <= _MOST_WORDS
        and any(map(is_content_word, one.words[first:last]))
        and any(map(is_content_word, other.words[start:end]))
    ]
    for _, first, last, start, end in sorted(short):
        yield _slice(one, first, last), _slice(other, start, end)


def _only_in_shorter(one: Statement, other: Statement) -> str:
    """Return the longest sequence of words that is only in the shorter statement. Names are ignored."""
    short, long = sorted((one, other), key=lambda statement: len(statement.words))
    known = set(map(as_root, long.words))
    is_new = [as_root(word) not in known and word not in short.names for word in short.words]
    runs = [(key, [place for place, _ in group]) for key, group in groupby(enumerate(is_new), key=itemgetter(1))]
    new = [places for key, places in runs if key and places[0] and any(len(short.words[p]) > _SHORT for p in places)]
    longest = max(new, key=len, default=None)
    return _slice(short, longest[0], longest[0] + min(len(longest), _MOST_WORDS)) if longest else ""


def _slice(statement: Statement, first: int, last: int) -> str:
    """Return the words of a statement from `first` to `last`, in their original spelling."""
    words = list(WORD.finditer(statement.text))[first:last]
    return statement.text[words[0].start() : words[-1].end()]


def _as_written(statement: Statement, date: str) -> str:
    """Return the complete date that contains this part of a date. For example, "March" returns "12 March 2024"."""
    is_date = [word in statement.dates or word.removesuffix("s") in statement.dates for word in statement.words]
    place = next(place for place, word in enumerate(statement.words) if date in {word, word.removesuffix("s")})
    first, last = place, place + 1
    while first and is_date[first - 1]:
        first -= 1
    while last < len(is_date) and is_date[last]:
        last += 1
    return _slice(statement, first, last)
