"""How passages are ranked: BM25 by words, and one order out of several. Pure; the counting is done by the database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TypeVar

# So many passages are weighed for a language at most; the rest of them only mention a common word.
MOST_CANDIDATES = 1500
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


@dataclass(frozen=True, slots=True)
class Plan:
    """`candidates` is a query that finds every passage worth weighing; it is empty where no passage has a word.

    Terms that no passage has are among them: a title may.
    """

    candidates: str
    terms: tuple[Weighed, ...]


def plan(terms: Iterable[Term]) -> Plan:
    """What to weigh."""
    languages: dict[str, Counter[Term]] = defaultdict(Counter)
    for term in terms:
        languages[term.config][term] += 1
    weighed: list[Weighed] = []
    candidates: dict[str, None] = {}
    for counted in languages.values():
        rarest = sorted(counted, key=lambda term: (term.found_in, term.query))[:MOST_TERMS]
        candidates |= dict.fromkeys(choose([term for term in rarest if term.found_in]))
        weighed += [Weighed(term.config, term.query, counted[term] * rarity(term), term.average) for term in rarest]
    return Plan(" | ".join(candidates), tuple(weighed))


def rarity(term: Term) -> float:
    """The weight of a word in BM25: rare ones tell more."""
    return log(1 + (term.passages - term.found_in + 0.5) / (term.found_in + 0.5))


def choose(terms: Sequence[Term]) -> list[str]:
    """All passages with a rare word; of those with a common one, who uses it often, and who has all the words."""
    if terms and terms[0].passages <= MOST_CANDIDATES:
        return [term.query for term in terms]
    room = MOST_CANDIDATES
    chosen: list[str] = []
    common: list[Term] = []
    for term in terms:
        if term.found_in <= room:
            chosen.append(term.query)
            room -= term.found_in
        else:
            common.append(term)
    if common and len(terms) > 1:
        chosen.append(f"({' & '.join(term.query for term in terms)})")
    # The rarest of the common words decides the most, and is taken even where it is used often by many, or by nobody.
    for place, term in enumerate(common):
        if place == 0 or 0 < term.often_in <= room:
            chosen.append(term.often if term.often_in else term.query)
            room -= term.often_in
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
