"""Finds numbers and dates in a sentence and the values that each is compatible with. English only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import floor, inf, log10

from octavo.connect.english_words import APPROXIMATIONS, as_root, word_set

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
ONES = {word: value for value, word in enumerate(_ONES)}
TENS = {word: 10 * (place + 2) for place, word in enumerate(_TENS)}
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12}
MONTHS = {word: number for number, word in enumerate(_MONTHS, start=1)}
WEEKDAYS = frozenset({"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"})
# Unit: (dimension, factor). Quantities of one dimension are compared in one unit.
UNITS: dict[str, tuple[str, float]] = {
    "mm": ("length", 1), "millimetre": ("length", 1), "millimeter": ("length", 1), "cm": ("length", 10),
    "centimetre": ("length", 10), "centimeter": ("length", 10), "m": ("length", 1e3), "metre": ("length", 1e3),
    "meter": ("length", 1e3), "km": ("length", 1e6), "kilometre": ("length", 1e6), "kilometer": ("length", 1e6),
    "g": ("mass", 1), "gram": ("mass", 1), "kg": ("mass", 1e3), "kilogram": ("mass", 1e3), "kilo": ("mass", 1e3),
    "tonne": ("mass", 1e6), "t": ("mass", 1e6), "minute": ("time", 60), "min": ("time", 60), "second": ("time", 1),
    "hour": ("time", 3600), "h": ("time", 3600), "day": ("time", 86400), "week": ("time", 604800), "%": ("share", 1),
    "percent": ("share", 1), "litre": ("volume", 1), "liter": ("volume", 1), "l": ("volume", 1),
    "degree": ("degree", 1), "°c": ("degree", 1), "mw": ("power", 1), "megawatt": ("power", 1), "gw": ("power", 1e3),
    "gigawatt": ("power", 1e3), "kw": ("power", 1e-3), "kilowatt": ("power", 1e-3),
}  # fmt: skip
CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound"}
AT_LEAST = (
    "at least", "more than", "over", "above", "no fewer than", "no less than", "not less than", "exceeding", "exceeds",
    "exceeded", "upwards of", "beyond", "minimum of",
)  # fmt: skip
AT_MOST = (
    "at most", "fewer than", "less than", "under", "below", "up to", "no more than", "not more than", "maximum of",
    "within",
)  # fmt: skip
JUST_BELOW = ("almost", "nearly")
# "Roughly forty" is compatible with 44.
ABOUT_SHARE = 0.15
# From here on, a number that ends in zeros may be rounded.
ROUND_FROM = 1000
FIRST_YEAR, LAST_YEAR = 1000, 2100
_NUMBER = re.compile(r"[$€£]?\d+(?:,\d{3})+(?:\.\d+)?|[$€£]?\d+(?:\.\d+)?")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
_REACH = 4
_LAST_DAY = 31
_YEAR_DIGITS = 4
_RANGE = {"to", "and", "-", "\u2013"}

Token = tuple[str, int, int]
YEAR_AFTER = word_set("in since from of by until till during before after late early year around about between and to")
BOUNDS = word_set("since from until till before after by between to")
ARTICLES = word_set("its their the his her our")
STOPS = word_set(
    "of in on at the a an and or to by for from with as is are was were be been that which who than per it he she they"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit.

    `of` is the thing that is counted or measured; `place` and `last` are the indexes of its first and last word.
    """

    low: float
    high: float
    of: str
    place: int
    last: int

    def conflicts(self, other: Quantity) -> bool:
        return self.of == other.of and (self.low > other.high or other.low > self.high)


@dataclass(frozen=True, slots=True)
class DateMention:
    """A date. Missing parts are compatible with any value.

    `bound`: whether it follows "since", "before" or a similar word.
    """

    year: int | None
    month: int | None
    day: int | None
    place: int
    bound: bool = False
    weekday: str | None = None

    def conflicts(self, other: DateMention) -> bool:
        if self.bound or other.bound:
            return False
        mine = (self.year, self.month, self.day, self.weekday)
        theirs = (other.year, other.month, other.day, other.weekday)
        return any(a != b for a, b in zip(mine, theirs, strict=True) if a is not None and b is not None)


def read_dates(words: Sequence[str]) -> list[DateMention]:
    """Find weekdays, months, and numbers that look like years. The words must be in lower case."""
    if not any(map(_may_be_date, words)):
        return []
    found: list[DateMention] = []
    taken: set[int] = set()
    for place, word in enumerate(words):
        if word in MONTHS and (word != "may" or _has_date_context(words, place)):
            before, after = _number_at(words, place - 1), _number_at(words, place + 1)
            day = next((int(one) for one in (before, after) if one is not None and 1 <= one <= _LAST_DAY), None)
            year_at = next((at for at in range(place + 1, place + 4) if _is_year(words, at)), None)
            found.append(
                DateMention(int(words[year_at]) if year_at else None, MONTHS[word], day, place, _bounded(words, place))
            )
            taken.update(range(place - 1, (year_at or place + 1) + 1))
    for place in range(len(words)):
        if words[place].removesuffix("s") in WEEKDAYS:
            found.append(DateMention(None, None, None, place, _bounded(words, place), words[place].removesuffix("s")))
        elif place not in taken and _is_year(words, place) and _follows_year_word(words, place):
            found.append(DateMention(int(words[place]), None, None, place, _bounded(words, place)))
    return found


@lru_cache(maxsize=50_000)
def _may_be_date(word: str) -> bool:
    """A cheap check for whether a word can be part of a date. It rules out most words."""
    return word in MONTHS or word.removesuffix("s") in WEEKDAYS or _is_year((word,), 0)


def _has_date_context(words: Sequence[str], place: int) -> bool:
    around = [_number_at(words, place - 1), _number_at(words, place + 1)]
    return any(one is not None for one in around) or (place > 0 and words[place - 1] in {"in", "since", "of", "by"})


def _number_at(words: Sequence[str], place: int) -> float | None:
    """The number at an index, which can be an ordinal such as "4th"; None if there is none."""
    word = _ORDINAL.sub("", words[place]) if 0 <= place < len(words) else ""
    return float(word) if word.isdecimal() else None


def _is_year(words: Sequence[str], place: int) -> bool:
    word = words[place] if place < len(words) else ""
    return len(word) == _YEAR_DIGITS and word.isdecimal() and FIRST_YEAR <= int(word) <= LAST_YEAR


def _follows_year_word(words: Sequence[str], place: int) -> bool:
    following = words[place + 1] if place + 1 < len(words) else ""
    return (place > 0 and words[place - 1] in YEAR_AFTER) or (place == 0 and not following)


def _bounded(words: Sequence[str], place: int) -> bool:
    return not BOUNDS.isdisjoint(words[max(place - 2, 0) : place])


def read_quantities(words: Sequence[str], skip: frozenset[int]) -> list[Quantity]:
    """Read all numbers with their units, except those at the indexes in `skip`, which belong to dates."""
    if not any(map(_may_be_number, words)):
        return []
    found: list[Quantity] = []
    place = 0
    while place < len(words):
        may_be = place not in skip and _may_be_number(words[place])
        value, after, money = _read_number(words, place) if may_be else (None, place, "")
        if value is None:
            place += 1
            continue
        high, after = _read_end(words, place, after, value)
        unit, after = _read_unit(words, after, money)
        if unit:
            kind, size = UNITS.get(unit, (unit, 1.0))
            least, most = _range(words, place, value, high)
            found.append(Quantity(least * size, most * size, kind, place, after - 1))
        place = max(after, place + 1)
    return found


@lru_cache(maxsize=50_000)
def _may_be_number(word: str) -> bool:
    """A cheap check for whether a number can start with this word. It rules out most words."""
    return not word[0].isalpha() or word.split("-", maxsplit=1)[0] in {*ONES, *TENS}


def _read_end(words: Sequence[str], place: int, after: int, value: float) -> tuple[float, int]:
    """The end of a range such as "ten to twelve" or "between ten and twelve"; without a range, the number itself."""
    joint = words[after] if after + 1 < len(words) else ""
    if joint in _RANGE and (joint != "and" or "between" in words[max(place - 2, 0) : place]):
        other, later, _ = _read_number(words, after + 1)
        if other is not None and other > value:
            return other, later
    return value, after


def _read_number(words: Sequence[str], place: int) -> tuple[float | None, int, str]:
    """The value of the number at an index, the index after it, and its currency if it has a currency sign."""
    word = words[place]
    money = CURRENCIES.get(word[:1], "")
    if match := _NUMBER.fullmatch(word):
        value, place = float(match.group().lstrip("$€£").replace(",", "")), place + 1
    else:
        value, place = _read_number_words(words, place)
        if value is None:
            return None, place, ""
    while place < len(words) and words[place] in SCALES:
        value, place = value * SCALES[words[place]], place + 1
    return value, place, money


def _read_number_words(words: Sequence[str], place: int) -> tuple[float | None, int]:
    """Read a number in words: forty thousand, twenty-one, three hundred and five.

    "One" alone is not read, because it is usually a pronoun.
    """
    total, current, start = 0.0, 0.0, place
    while place < len(words):
        parts = words[place].split("-")
        if all(part in ONES or part in TENS for part in parts):
            current += sum(ONES.get(part, 0) + TENS.get(part, 0) for part in parts)
        elif words[place] in SCALES and place > start:
            scale = SCALES[words[place]]
            current = max(current, 1) * scale
            if scale >= ROUND_FROM:
                total, current = total + current, 0.0
        elif not (words[place] == "and" and place > start and words[place - 1] in SCALES and place + 1 < len(words)
                  and words[place + 1].split("-")[0] in {*ONES, *TENS}):  # fmt: skip
            break
        place += 1
    if place == start or (place == start + 1 and words[start] == "one"):
        return None, start
    return total + current, place


def _read_unit(words: Sequence[str], place: int, money: str) -> tuple[str, int]:
    """The unit of a number: its currency, a known unit (possibly after an adjective), or the next word."""
    if money:
        return money, place
    following = [*words[place : place + 4], "", "", "", ""]
    if following[:2] == ["per", "cent"]:
        return "percent", place + 2
    if following[0] == "of" and following[1] in ARTICLES:
        place, following = place + 2, following[2:]
    for offset in range(2):
        if unit := as_unit(following[offset]):
            return unit, place + offset + 1
    first = following[0]
    return (as_root(first), place + 1) if first.isalpha() and first not in STOPS else ("", place)


@lru_cache(maxsize=10_000)
def as_unit(word: str) -> str:
    return next((one for one in (word, word.removesuffix("s")) if one in UNITS), "")


def _range(words: Sequence[str], place: int, low: float, high: float) -> tuple[float, float]:
    before = " ".join(words[max(place - _REACH, 0) : place])
    if before.endswith(AT_LEAST):
        return low, inf
    if before.endswith(AT_MOST):
        return -inf, high
    if before.endswith(JUST_BELOW):
        return low * (1 - ABOUT_SHARE), high
    if any(word in APPROXIMATIONS for word in words[max(place - 2, 0) : place]):
        return low * (1 - ABOUT_SHARE), high * (1 + ABOUT_SHARE)
    step = _round_step(low) if low == high else 0.0
    return low - step / 2, high + step / 2


def _round_step(value: float) -> float:
    """The rounding step of a number. 40,000 may mean 35,000 to 45,000; 40 and 41,300 are exact."""
    if value < ROUND_FROM or value != int(value):
        return 0.0
    zeros = len(str(int(value))) - len(str(int(value)).rstrip("0"))
    digits = floor(log10(value)) + 1
    return float(10**zeros) if zeros >= max(2, digits - 2) else 0.0


def date_word_indexes(dates: Sequence[DateMention], words: Sequence[str]) -> Iterator[int]:
    """Indexes of the words that belong to a date."""
    for date in dates:
        yield date.place
        for at in range(max(date.place - 1, 0), min(date.place + 4, len(words))):
            if _number_at(words, at) is not None:
                yield at
