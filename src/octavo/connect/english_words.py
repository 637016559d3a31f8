"""Analyses the words and numbers in English sentences: content words, roots, weights, negations, and numbers with
units.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from octavo.language.vocabulary import STOPWORDS, rarity, root, stem

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ONES = {word: value for value, word in enumerate(_ONES)}
TENS = {word: 10 * (place + 2) for place, word in enumerate(_TENS)}
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12}
# Unit: (kind, factor). Quantities of one kind are compared in one unit.
UNITS: dict[str, tuple[str, float]] = {
    "mm": ("length", 1), "millimetre": ("length", 1), "millimeter": ("length", 1), "cm": ("length", 10),
    "centimetre": ("length", 10), "centimeter": ("length", 10), "m": ("length", 1e3), "metre": ("length", 1e3),
    "meter": ("length", 1e3), "km": ("length", 1e6), "kilometre": ("length", 1e6), "kilometer": ("length", 1e6),
    "mile": ("length", 1609344), "foot": ("length", 304.8), "feet": ("length", 304.8), "inch": ("length", 25.4),
    "g": ("mass", 1), "gram": ("mass", 1), "kg": ("mass", 1e3), "kilogram": ("mass", 1e3), "kilo": ("mass", 1e3),
    "tonne": ("mass", 1e6), "ton": ("mass", 1e6), "t": ("mass", 1e6), "pound": ("mass", 453.6),
    "second": ("time", 1), "minute": ("time", 60), "min": ("time", 60), "hour": ("time", 3600), "h": ("time", 3600),
    "day": ("time", 86400), "week": ("time", 604800), "month": ("time", 2629800), "year": ("time", 31557600),
    "%": ("share", 1), "percent": ("share", 1), "cent": ("share", 1), "litre": ("volume", 1), "liter": ("volume", 1),
    "l": ("volume", 1), "degree": ("degree", 1), "°c": ("degree", 1), "hectare": ("area", 1), "acre": ("area", 0.4047),
    "mw": ("power", 1), "megawatt": ("power", 1), "gw": ("power", 1e3), "gigawatt": ("power", 1e3),
    "kw": ("power", 1e-3), "kilowatt": ("power", 1e-3), "bar": ("pressure", 1), "eur": ("euro", 1), "euro": ("euro", 1),
    "usd": ("dollar", 1), "dollar": ("dollar", 1), "gbp": ("sterling", 1),
}  # fmt: skip
CURRENCIES = {"$": "dollar", "€": "euro", "£": "sterling"}
_AT_LEAST = (
    "at least", "more than", "over", "above", "no fewer than", "no less than", "not less than", "exceeding", "exceeds",
    "exceeded", "upwards of", "beyond", "minimum of",
)  # fmt: skip
_AT_MOST = (
    "at most",
    "fewer than",
    "less than",
    "under",
    "below",
    "up to",
    "no more than",
    "not more than",
    "maximum of",
    "within",
)
_ABOUT = (
    "about",
    "around",
    "roughly",
    "approximately",
    "nearly",
    "almost",
    "some",
    "circa",
    "ca",
    "estimated",
    "approx",
)
# "Roughly forty" is compatible with 44.
_ABOUT_SHARE = 0.15
# From here on, a number that ends in zeros may be rounded.
_ROUND_FROM, _ROUNDED_SHARE = 1000, 0.05
_MONEY = frozenset({"euro", "dollar", "sterling"})
_REACH = 4
_DIGITS = re.compile(r"[$€£]?\d+(?:,\d{3})*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, stored as a range of possible values from `low` to `high`.

    For example, "at least 5" has no upper limit. `words[place:end]` are the words from which it was read. `kind` is the
    property that the unit measures, such as length. It is empty if there is no unit.
    """

    low: float
    high: float
    kind: str
    place: int
    end: int

    def agrees(self, other: Quantity) -> bool:
        """Whether both quantities can be true at the same time.

        Two limits, such as "within 14 days" and "within 30 days", agree only if they are equal.
        """
        if self.kind != other.kind:
            return False
        if (
            inf in {self.high, -self.low}
            and (self.low == -inf) is (other.low == -inf)
            and (self.high == inf) is (other.high == inf)
        ):
            return (self.low, self.high) == (other.low, other.high)
        return self.low <= other.high and other.low <= self.high


def read_quantities(words: Sequence[str]) -> Iterator[Quantity]:
    """Read all numbers in a sentence. The words must be in lower case."""
    place = 0
    while place < len(words):
        value, end = _read_number(words, place)
        if value is None:
            place += 1
            continue
        kind, factor, after = _read_unit(words, place, end)
        low, high = _range(words, place, value, kind)
        yield Quantity(low * factor, high * factor, kind, place, after)
        place = after


def _range(words: Sequence[str], place: int, value: float, kind: str) -> tuple[float, float]:
    before = " ".join(words[max(place - _REACH, 0) : place])
    bound = max((one for one in (*_AT_LEAST, *_AT_MOST) if before.endswith(one)), key=len, default="")
    if bound:
        return (value, inf) if bound in _AT_LEAST else (-inf, value)
    share = _ABOUT_SHARE if before.endswith(_ABOUT) else 0.0 if kind in _MONEY else _rounded_share(value)
    return value * (1 - share), value * (1 + share)


def _rounded_share(value: float) -> float:
    """Return the fraction by which a number may differ from the exact value because it is rounded.

    For example, 40,000 may be rounded from 41,300. The result is 0 for numbers such as 40 and 41,300, which are treated
    as exact.
    """
    digits = str(int(value))
    zeros = len(digits) - len(digits.rstrip("0"))
    rounded = value >= _ROUND_FROM and value == int(value) and zeros >= max(2, len(digits) - 2)
    return _ROUNDED_SHARE if rounded else 0.0


def _read_number(words: Sequence[str], place: int) -> tuple[float | None, int]:
    if _DIGITS.fullmatch(words[place]):
        value, end = float(words[place].lstrip("$€£").replace(",", "")), place + 1
    else:
        value, end = _read_number_words(words, place)
    while value is not None and end < len(words) and words[end] in SCALES:
        value, end = value * SCALES[words[end]], end + 1
    return value, end


def _read_number_words(words: Sequence[str], place: int) -> tuple[float | None, int]:
    """Read a number written in words, such as "twenty-one". Returns the number and the index after it.

    The number is None if the words are not a number. A single "one" does not count as a number, because it is usually a
    pronoun.
    """
    total, end = 0, place
    while end < len(words) and all(part in ONES or part in TENS for part in words[end].split("-")):
        total += sum(ONES.get(part, 0) + TENS.get(part, 0) for part in words[end].split("-"))
        end += 1
    alone = end == place + 1 and words[place] == "one"
    return (None, place) if end == place or alone else (float(total), end)


def _read_unit(words: Sequence[str], place: int, end: int) -> tuple[str, float, int]:
    """Read the unit of a number.

    Returns the property that the unit measures (such as length), the conversion factor, and the index after the unit.
    If there is no known unit, the first value is empty.
    """
    if kind := CURRENCIES.get(words[place][:1]):
        return kind, 1.0, end
    following = [*words[end : end + 2], "", ""]
    if following[:2] == ["per", "cent"]:
        return "share", 1.0, end + 2
    for word in (following[0], following[0].removesuffix("s")):
        if word in UNITS:
            return *UNITS[word], end + 1
    return "", 1.0, end


# Words ----------------------------------------------------------------------------------------------------------------


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def word_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Parse a comma-separated list of word pairs such as "sold sell, bought buy" into tuples."""
    both = [pair.split() for pair in text.split(",")]
    return tuple((one, other) for one, other in both)


NUMBER_WORDS = frozenset({*ONES, *TENS, *SCALES})
NEGATIONS = word_set(
    """
    not no never none nobody nothing nowhere neither nor without cannot hardly scarcely barely fails failed lacks lacked
    refuses refused denies denied unable impossible
    """
)
# Different words in the same row refer to different things: the old bridge is not the new bridge.
_SCOPES = """
    old new former current
    north south east west northern southern eastern western central
    first second third fourth fifth last next
    spring summer autumn winter
    morning afternoon evening night
    upper lower
    inner outer
    men women man woman boys girls boy girl male female
    imports exports import export
    minimum maximum
    weekdays weekends weekday weekend
    gross net
    draft final
    public private
    primary secondary tertiary
    adults children adult child
    domestic foreign
    urban rural
"""
SCOPES = tuple(word_set(line) for line in _SCOPES.strip().splitlines())
# Function words and reporting verbs that add nothing to a statement.
_EMPTY = word_set(
    """
    there is are was were be been being has have had do does did it its this that these those which who also very too
    however moreover therefore thus still yet such according say says said state states stated report reports
    """
)
# Irregular forms, each followed by its base form.
_IRREGULAR = """
    rang ring, rung ring, rose rise, risen rise, fell fall, fallen fall, grew grow, grown grow, shrank shrink,
    lost lose, won win, broke break, broken break, sold sell, bought buy, left leave, took take, taken take,
    gave give, given give, began begin, begun begin, built build, sent send, spent spend, paid pay, said say,
    told tell, made make, held hold, kept keep, met meet, led lead, fed feed, found find, went go, gone go, came
    come, saw see, seen see, knew know, known know, wrote write, written write, drove drive, driven drive, ate
    eat, eaten eat, drank drink, drunk drink, sang sing, sung sing, swam swim, ran run, stole steal, stolen
    steal, chose choose, chosen choose, struck strike, thought think, taught teach, caught catch, stood stand,
    understood understand, became become, flew fly, flown fly, froze freeze, frozen freeze, hid hide, hidden
    hide, bore bear, forbade forbid, forbidden forbid, showed show, shown show, wore wear, worn wear, sank sink,
    sunk sink, slept sleep, meant mean, men man, women woman, children child, people person, feet foot, teeth
    tooth, mice mouse, geese goose, lives life
"""
IRREGULAR = dict(word_pairs(_IRREGULAR))
_SHORT = 3


@lru_cache(maxsize=50_000)
def weigh(one: str) -> float:
    """Return the weight of a word. Rare words weigh more, because they reveal more about the subject of a sentence."""
    return 0.25 + rarity(one)


@lru_cache(maxsize=50_000)
def as_root(word: str) -> str:
    """Return the root that all forms of a word share. For example, "said", "saying" and "says" have the same root."""
    one = root(stem(IRREGULAR.get(word, word)))
    doubled = len(one) > _SHORT and one[-1] == one[-2] and one[-1] not in "aeiouls"
    return one[:-1] if doubled else one


@lru_cache(maxsize=50_000)
def is_content_word(word: str) -> bool:
    """Whether a lower-case word reveals something about the subject. Numbers, stop words and negations do not."""
    if not word[0].isalpha() or len(word) == 1 or is_negation(word) or word in _EMPTY or word in STOPWORDS["en"]:
        return False
    return not all(part in NUMBER_WORDS for part in word.split("-"))


@lru_cache(maxsize=50_000)
def is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")
