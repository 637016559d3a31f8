"""How passages are ranked: BM25 by words, and one order out of several. Pure; the counting is done by the database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple, TypeVar

# So many passages are looked at for a language at most; the rest of them only mention a common word.
MOST_CANDIDATES = 1500
# An owner with so few has all of them weighed, without asking an index that knows everybody's.
FEW = 1500
# What a word is worth to a passage that uses it three times or more, of what it is worth once.
OFTEN = 1.8
MOST_TERMS = 24
# Reciprocal rank fusion. Other values hardly change what is found in the Cranfield collection (decision 19).
FUSION_RANK = 10
TEXT_WEIGHT, VECTOR_WEIGHT, TITLE_WEIGHT = 1.0, 1.0, 0.5

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Term:
    """A word as one language reads it: how to find it, and in how many of the owner's passages it is.

    `often` finds the passages that use it three times or more, which are `often_in`; counted for common words only.
    """

    config: str
    query: str
    often: str
    passages: int
    average: float
    found_in: int
    often_in: int


@dataclass(frozen=True, slots=True)
class Weighed:
    """A term and what it is worth; `average` is the length of a passage of its language."""

    config: str
    query: str
    weight: float
    average: float


class LookedFor(NamedTuple):
    """What is looked for in the index, and how much it promises of a passage."""

    query: str
    worth: float


@dataclass(frozen=True, slots=True)
class Plan:
    """`looked_for` finds every passage worth weighing; it is empty where no passage has a word.

    Terms that no passage has are among them: a title may.
    """

    looked_for: tuple[LookedFor, ...]
    terms: tuple[Weighed, ...]
    few: bool = False


def plan(terms: Sequence[Term]) -> Plan:
    """What to weigh."""
    languages: dict[str, Counter[Term]] = defaultdict(Counter)
    for term in terms:
        languages[term.config][term] += 1
    weighed: list[Weighed] = []
    looked_for: dict[LookedFor, None] = {}
    for counted in languages.values():
        rarest = sorted(counted, key=lambda term: (term.found_in, term.query))[:MOST_TERMS]
        weights = {term: counted[term] * rarity(term) for term in rarest}
        looked_for |= dict.fromkeys(choose({term: weight for term, weight in weights.items() if term.found_in}))
        weighed += [Weighed(term.config, term.query, weights[term], term.average) for term in rarest]
    return Plan(tuple(looked_for), tuple(weighed), has_few(terms))


def has_few(terms: Iterable[Term]) -> bool:
    """If the owner whose terms these are has few passages, in all languages together."""
    return sum({term.config: term.passages for term in terms}.values()) <= FEW


def rarity(term: Term) -> float:
    """The weight of a word in BM25: rare ones tell more."""
    return log(1 + (term.passages - term.found_in + 0.5) / (term.found_in + 0.5))


def choose(weights: Mapping[Term, float]) -> list[LookedFor]:
    """All passages with a rare word; of those with a common one, who uses it often, and who has all the words.

    Rare words come first in `weights`.
    """
    room = MOST_CANDIDATES
    chosen: list[LookedFor] = []
    common: list[Term] = []
    for term, weight in weights.items():
        if term.found_in <= room:
            chosen += [LookedFor(term.query, weight), LookedFor(term.often, (OFTEN - 1) * weight)]
            room -= term.found_in
        else:
            common.append(term)
    if common and len(weights) > 1:
        everything = " & ".join(term.query for term in weights)
        chosen.append(LookedFor(everything, sum(weights[term] for term in common)))
    # The rarest of the common words decides the most, and is taken even where it is used often by many, or by nobody.
    for place, term in enumerate(common):
        if term.often_in and (place == 0 or term.often_in <= room):
            chosen.append(LookedFor(term.often, OFTEN * weights[term]))
            room -= term.often_in
        elif place == 0:
            chosen.append(LookedFor(term.query, weights[term]))
    return chosen


def fuse(rankings: Iterable[tuple[float, Sequence[Key]]]) -> dict[Key, float]:
    """One order out of several, each with its weight: who stands high in one or well in many comes first.

    Scores are between 0 and 1; 1 is first everywhere.
    """
    given = [(weight, ranking) for weight, ranking in rankings if ranking]
    total = sum(weight for weight, _ in given)
    scores: dict[Key, float] = defaultdict(float)
    for weight, ranking in given:
        for place, key in enumerate(ranking):
            scores[key] += weight / total * (FUSION_RANK + 1) / (FUSION_RANK + 1 + place)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def spread(ordered: Iterable[Key], group_of: Mapping[Key, Hashable], most_of_one: int | None, limit: int) -> list[Key]:
    """The first of them, with no more than so many of one group."""
    taken: Counter[Hashable] = Counter()
    chosen: list[Key] = []
    for key in ordered:
        if len(chosen) == limit:
            break
        if most_of_one is None or taken[group_of[key]] < most_of_one:
            taken[group_of[key]] += 1
            chosen.append(key)
    return chosen
