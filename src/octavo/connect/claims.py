"""A passage as what it claims: clauses with their words, and what they deny, count, date and leave open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from octavo.connect.quantities import (
    MONTHS,
    ONES,
    SCALES,
    TENS,
    WEEKDAYS,
    Moment,
    Quantity,
    places_of,
    read_moments,
    read_quantities,
)
from octavo.connect.roots import as_root, weigh
from octavo.connect.wording import FORMERLY, HEDGES, NEGATORS, NOT_DENYING, PARTIAL, words
from octavo.language.sentences import split
from octavo.language.stopwords import STOPWORDS

_CLAUSE = re.compile(
    r"[;:]\s|,\s+(?=(?:and|but|while|whereas|although|though|yet|so)\s)"
    r"|\s(?=(?:but|whereas|although|though)\s)|\s[\u2013\u2014-]\s"
)
_WORD = re.compile(r"[$€£]?\d+(?:[.,]\d+)*|[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|%|°[cC]")
_STOPWORDS = STOPWORDS["en"] - {"no", "not"}
_LEAST_WORDS, MOST_WORDS = 3, 60
# Denials that are this close cancel each other: not impossible, never fails.
_DOUBLE = 3
_DENY_ALL = frozenset({"no", "none", "nobody", "nothing", "never", "neither", "nor", "nowhere"})
# Words of grammar and of speech that say nothing about what is claimed.
_USED_TO = ("used", "to")
_EMPTY = words(
    """
    there is are was were be been being has have had do does did it its this that these those which who also very too
    however moreover therefore thus still yet such according say says said state states stated report reports
    """
)


@dataclass(frozen=True, slots=True)
class Claim:
    """`start` and `end` are the sentence that it stands in: this is what is quoted.

    `roots` are the words that carry it, `denied` those of them that a negation reaches.
    """

    start: int
    end: int
    words: tuple[str, ...]
    roots: frozenset[str]
    order: tuple[str, ...]
    denied: frozenset[str]
    first_denied: str
    negated: bool
    denies_all: bool
    hedged: bool
    formerly: bool
    partial: bool
    names: frozenset[str]
    quantities: tuple[Quantity, ...]
    moments: tuple[Moment, ...]

    @property
    def weight(self) -> float:
        return sum(map(weigh, self.roots))

    def before(self, place: int | str) -> frozenset[str]:
        """What stands before a word, which is given by its place or its root."""
        if isinstance(place, str):
            place = next((at for at, word in enumerate(self.words) if as_root(word) == place), 0)
        return frozenset(as_root(word) for word in self.words[:place] if _carries(word))


def read_claims(text: str) -> list[Claim]:
    """All that a passage claims, in order; headings, questions and what is too short are left out."""
    return [claim for start, end in split(text) for claim in _of_sentence(text, start, end)]


def _of_sentence(text: str, start: int, end: int) -> Iterator[Claim]:
    sentence = text[start:end]
    if sentence.endswith("?") or sentence.startswith(("#", "|", "```")):
        return
    for clause in _clauses(sentence):
        tokens = _WORD.findall(clause)
        if _LEAST_WORDS <= len(tokens) <= MOST_WORDS:
            yield _claim(tokens, start, end)


def _clauses(sentence: str) -> list[str]:
    return [part for part in _CLAUSE.split(sentence) if part]


def _claim(tokens: Sequence[str], start: int, end: int) -> Claim:
    low = tuple(map(_lowered, tokens))
    moments = tuple(read_moments(low))
    quantities = tuple(read_quantities(low, frozenset(places_of(moments, low))))
    order = tuple(map(as_root, filter(_carries, low)))
    denials, denied = _denials(low) if any(map(_denies, low)) else ([], [])
    bag = frozenset(low)
    return Claim(
        start, end, low, frozenset(order), order, frozenset(denied), denied[0] if denied else "",
        negated=bool(denials) and _deny(denials), denies_all=any(low[place] in _DENY_ALL for place in denials),
        hedged=not bag.isdisjoint(HEDGES), partial=not bag.isdisjoint(PARTIAL),
        formerly=not bag.isdisjoint(FORMERLY) or ("used" in bag and _USED_TO in pairwise(low)),
        names=frozenset(_names(tokens)), quantities=quantities, moments=moments,
    )  # fmt: skip


@lru_cache(maxsize=50_000)
def _lowered(token: str) -> str:
    return token.lower().replace("\u2019", "'")


@lru_cache(maxsize=50_000)
def _carries(word: str) -> bool:
    if not word[0].isalpha() or len(word) == 1:
        return False
    if _denies(word) or word in HEDGES or word in _EMPTY:
        return False
    return (
        word not in _STOPWORDS
        and word not in MONTHS
        and not all(part in ONES or part in TENS or part in SCALES for part in word.split("-"))
    )


@lru_cache(maxsize=50_000)
def _denies(word: str) -> bool:
    return word in NEGATORS or word.endswith("n't")


def _denials(words: Sequence[str]) -> tuple[list[int], list[str]]:
    """Where it is denied, and the words that come after that."""
    places, denied = list[int](), list[str]()
    for place, word in enumerate(words):
        if not _denies(word):
            continue
        following = words[place + 1] if place + 1 < len(words) else ""
        if following in NOT_DENYING.get("not" if word.endswith("n't") else word, frozenset()):
            continue
        places.append(place)
        denied.extend(as_root(one) for one in words[place + 1 :] if _carries(one))
    return places, denied


def _deny(places: Sequence[int]) -> bool:
    """Whether it is denied after all."""
    cancelled = sum(later - earlier <= _DOUBLE for earlier, later in pairwise(places))
    return len(places) - 2 * cancelled > 0


def _dates(token: str) -> bool:
    low = token.lower()
    return low in MONTHS or low.removesuffix("s") in WEEKDAYS


def _names(tokens: Sequence[str]) -> Iterator[str]:
    """Words in capitals that do not begin the clause: people, places, products."""
    for place, token in enumerate(tokens):
        if token[0].isupper() and (place > 0 or (token.isupper() and len(token) > 1)) and not _dates(token):
            low = token.lower().removesuffix("'s").removesuffix("\u2019s")
            if low not in _STOPWORDS and low not in _EMPTY:
                yield low
