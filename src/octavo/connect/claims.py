"""Splits a chunk into claims: clauses with their words, negations, quantities, dates and hedges. English only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from octavo.connect.english_words import (
    FORMERLY,
    HEDGES,
    NEGATION_EXCEPTIONS,
    NEGATIONS,
    PARTIAL,
    as_root,
    weigh,
    word_set,
)
from octavo.connect.quantities import (
    MONTHS,
    ONES,
    SCALES,
    TENS,
    WEEKDAYS,
    DateMention,
    Quantity,
    date_word_indexes,
    read_dates,
    read_quantities,
)
from octavo.language.sentences import split_sentences
from octavo.language.vocabulary import STOPWORDS

_CLAUSE = re.compile(
    r"[;:]\s|,\s+(?=(?:and|but|while|whereas|although|though|yet|so)\s)"
    r"|\s(?=(?:but|whereas|although|though)\s)|\s[\u2013\u2014-]\s"
)
_WORD = re.compile(r"[$€£]?\d+(?:[.,]\d+)*|[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|%|°[cC]")
_STOPWORDS = STOPWORDS["en"] - {"no", "not"}
_LEAST_WORDS, MOST_WORDS = 3, 60
# Two negations this close cancel each other: "not impossible", "never fails".
_DOUBLE = 3
_DENY_ALL = frozenset({"no", "none", "nobody", "nothing", "never", "neither", "nor", "nowhere"})
_USED_TO = ("used", "to")
# Function words and reporting verbs that add nothing to a claim.
_EMPTY = word_set(
    """
    there is are was were be been being has have had do does did it its this that these those which who also very too
    however moreover therefore thus still yet such according say says said state states stated report reports
    """
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One clause. `start` and `end` delimit the whole sentence around it, which is quoted as evidence.

    `roots` are the roots of its content words; `denied` are the roots of those that follow a negation.
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
    dates: tuple[DateMention, ...]

    @property
    def weight(self) -> float:
        return sum(map(weigh, self.roots))

    def before(self, place: int | str) -> frozenset[str]:
        """Roots of the content words before a given word. The word is given by its index or its root."""
        if isinstance(place, str):
            place = next((at for at, word in enumerate(self.words) if as_root(word) == place), 0)
        return frozenset(as_root(word) for word in self.words[:place] if _is_content_word(word))


def read_claims(text: str) -> list[Claim]:
    """Read all claims of a chunk, in order. Headings, questions, tables and very short or long clauses are skipped."""
    return [claim for start, end in split_sentences(text) for claim in _of_sentence(text, start, end)]


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
    low = tuple(map(_normalise, tokens))
    dates = tuple(read_dates(low))
    quantities = tuple(read_quantities(low, frozenset(date_word_indexes(dates, low))))
    order = tuple(map(as_root, filter(_is_content_word, low)))
    negations, denied = _find_negations(low) if any(map(_is_negation, low)) else ([], [])
    bag = frozenset(low)
    return Claim(
        start, end, low, frozenset(order), order, frozenset(denied), denied[0] if denied else "",
        negated=bool(negations) and _is_negative(negations),
        denies_all=any(low[place] in _DENY_ALL for place in negations),
        hedged=not bag.isdisjoint(HEDGES), partial=not bag.isdisjoint(PARTIAL),
        formerly=not bag.isdisjoint(FORMERLY) or ("used" in bag and _USED_TO in pairwise(low)),
        names=frozenset(_names(tokens)), quantities=quantities, dates=dates,
    )  # fmt: skip


@lru_cache(maxsize=50_000)
def _normalise(token: str) -> str:
    return token.lower().replace("\u2019", "'")


@lru_cache(maxsize=50_000)
def _is_content_word(word: str) -> bool:
    if not word[0].isalpha() or len(word) == 1:
        return False
    if _is_negation(word) or word in HEDGES or word in _EMPTY:
        return False
    return (
        word not in _STOPWORDS
        and word not in MONTHS
        and not all(part in ONES or part in TENS or part in SCALES for part in word.split("-"))
    )


@lru_cache(maxsize=50_000)
def _is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")


def _find_negations(words: Sequence[str]) -> tuple[list[int], list[str]]:
    """Indexes of the negations, and the roots of the content words after them."""
    places, denied = list[int](), list[str]()
    for place, word in enumerate(words):
        if not _is_negation(word):
            continue
        following = words[place + 1] if place + 1 < len(words) else ""
        if following in NEGATION_EXCEPTIONS.get("not" if word.endswith("n't") else word, frozenset()):
            continue
        places.append(place)
        denied.extend(as_root(one) for one in words[place + 1 :] if _is_content_word(one))
    return places, denied


def _is_negative(places: Sequence[int]) -> bool:
    """Whether the clause is negative once double negations cancel out."""
    cancelled = sum(later - earlier <= _DOUBLE for earlier, later in pairwise(places))
    return len(places) - 2 * cancelled > 0


def _is_date_word(token: str) -> bool:
    low = token.lower()
    return low in MONTHS or low.removesuffix("s") in WEEKDAYS


def _names(tokens: Sequence[str]) -> Iterator[str]:
    """Capitalised words that are not at the beginning of the clause: names of people, places and products."""
    for place, token in enumerate(tokens):
        if token[0].isupper() and (place > 0 or (token.isupper() and len(token) > 1)) and not _is_date_word(token):
            low = token.lower().removesuffix("'s").removesuffix("\u2019s")
            if low not in _STOPWORDS and low not in _EMPTY:
                yield low
