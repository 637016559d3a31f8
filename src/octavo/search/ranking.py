"""Ranking of chunks: BM25 for keywords, the minimum similarity for semantic search, and fusion of several rankings.

All functions are pure. The counts are computed in the database.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, log10, prod
from typing import NamedTuple, TypeVar

from octavo.core.texts import primary_language
from octavo.language.embedding import LANGUAGES, NAME

# Most candidate chunks per language; the other chunks contain only common words.
MOST_CANDIDATES = 1500
# If an owner has at most this many chunks, all are scored without the index, which covers all owners.
FEW = 1500
# Weight of a word that a chunk uses three times or more, relative to a single use.
OFTEN = 1.8
MOST_TERMS = 24
# A lookup that matches this share of the chunks takes long, and is hardly better than arbitrary chunks.
BROWSED_SHARE = 0.25
# Reciprocal rank fusion. Other values hardly change the results on the Cranfield collection (decision 19).
FUSION_RANK = 10
TEXT_WEIGHT, VECTOR_WEIGHT, FIELD_WEIGHT = 1.0, 1.0, 0.5
# Vectors of a model that does not know the language of a document count half (decision 31).
FOREIGN_SHARE = 0.5

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the query as a search term in one language.

    `word` is the word as typed. `found_in` is the number of the account's chunks that contain the term. `often` is a
    database query for the chunks that contain it three times or more. `often_in` is the number of these chunks, set for
    common words only. If the account has no chunks in this language (`chunks` is 0), the term matches only titles, tags
    and names.
    """

    config: str
    query: str
    often: str
    chunks: int
    average: float
    found_in: int
    often_in: int
    word: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A term and its weight. `average` is the average length of a chunk in the term's language."""

    config: str
    query: str
    weight: float
    average: float


class IndexLookup(NamedTuple):
    """An index query, and the approximate score that a chunk gains by matching it.

    `share` is the expected fraction of chunks that match. It is set for common words only.
    """

    query: str
    worth: float
    share: float = 0.0

    @property
    def is_broad(self) -> bool:
        return self.share >= BROWSED_SHARE


@dataclass(frozen=True, slots=True)
class RankingPlan:
    """How chunks are found and scored.

    `lookups` find the chunks to score. There are none if no chunk contains any of the words. `terms` also contains
    words that are in no chunk, because a title may contain them. In some languages, too many chunks match to score them
    all, so only a sample is scored. `browsed` maps each of these languages to the approximate score of a matching
    chunk.
    """

    lookups: tuple[IndexLookup, ...]
    terms: tuple[WeightedTerm, ...]
    few: bool = False
    browsed: Mapping[str, float] = field(default_factory=dict[str, float])


def plan_ranking(terms: Sequence[Term], *, browses: bool = False) -> RankingPlan:
    """Choose the terms to score, and the index lookups that find the candidates.

    If `browses` is true, chunks may be scored without a lookup. It must be False if the query requires a phrase,
    because few chunks contain the phrase.
    """
    languages: dict[str, Counter[Term]] = defaultdict(Counter)
    for term in terms:
        languages[term.config][term] += 1
    rarities: dict[str, float] = {}
    for term in terms:
        if term.chunks:
            rarities[term.word] = max(rarity(term), rarities.get(term.word, 0.0))
    weighted: list[WeightedTerm] = []
    lookups: dict[str, IndexLookup] = {}
    browsed: dict[str, float] = {}
    for config, counted in languages.items():
        rarest = sorted(counted, key=lambda term: (term.found_in, term.query))[:MOST_TERMS]
        weights = {term: counted[term] * _weight(term, rarities) for term in rarest}
        chosen = choose_lookups({term: weight for term, weight in weights.items() if term.found_in})
        for one in chosen:
            # Languages can share a word. It is looked up once.
            if not (browses and one.is_broad):
                lookups[one.query] = max(one, lookups.get(one.query, one), key=lambda same: same.worth)
        if browses and (broad := [one.worth for one in chosen if one.is_broad]):
            browsed[config] = max(broad)
        weighted += [WeightedTerm(term.config, term.query, weights[term], term.average) for term in rarest]
    return RankingPlan(tuple(lookups.values()), tuple(weighted), has_few(terms), browsed)


def _weight(term: Term, rarities: Mapping[str, float]) -> float:
    """Return the weight of a term.

    If the account has no chunks in the term's language, the weight of the same word in another language is used.
    """
    return rarity(term) if term.chunks else rarities.get(term.word, rarity(term))


def has_few(terms: Iterable[Term]) -> bool:
    """Whether the account has only a few chunks, counted across all languages."""
    return sum({term.config: term.chunks for term in terms}.values()) <= FEW


def rarity(term: Term) -> float:
    """Return the inverse document frequency of a term, as in BM25. Rare words weigh more."""
    return log(1 + (term.chunks - term.found_in + 0.5) / (term.found_in + 0.5))


def choose_lookups(weights: Mapping[Term, float]) -> list[IndexLookup]:
    """Choose the index lookups.

    For a rare word, they find all chunks that contain it. For a common word, they find only the chunks that use it
    often or that contain all words of the query. `weights` must list rare words first.
    """
    left = MOST_CANDIDATES
    chosen: list[IndexLookup] = []
    common: list[Term] = []
    for term, weight in weights.items():
        if term.found_in <= left:
            chosen += [IndexLookup(term.query, weight), IndexLookup(term.often, (OFTEN - 1) * weight)]
            left -= term.found_in
        else:
            common.append(term)
    if common and len(weights) > 1:
        everything = " & ".join(term.query for term in weights)
        share = prod(term.found_in / term.chunks for term in weights)
        chosen.append(IndexLookup(everything, sum(weights[term] for term in common), share))
    # The rarest common word matters most, so it is looked up even if many chunks, or none, use it often.
    for place, term in enumerate(common):
        if term.often_in and (place == 0 or term.often_in <= left):
            chosen.append(IndexLookup(term.often, OFTEN * weights[term], term.often_in / term.chunks))
            left -= term.often_in
        elif place == 0:
            chosen.append(IndexLookup(term.query, weights[term], term.found_in / term.chunks))
    return chosen


def essential_terms(terms: Sequence[WeightedTerm], share: float) -> list[WeightedTerm]:
    """Return the smallest set of terms such that every matching text contains at least one of them.

    A text matches if its terms have at least `share` of the total weight of the terms in one language. Words that occur
    in many chunks are usually not in the set.
    """
    chosen: list[WeightedTerm] = []
    for config in dict.fromkeys(term.config for term in terms):
        same = sorted((term for term in terms if term.config == config), key=lambda term: term.weight)
        total, left_out = sum(term.weight for term in same), 0.0
        for term in same:
            if left_out + term.weight < 0.999 * share * total:
                left_out += term.weight
            else:
                chosen.append(term)
    return chosen


def fuse(rankings: Iterable[tuple[float, Mapping[Key, float] | Sequence[Key]]]) -> dict[Key, float]:
    """Merge several rankings, each with a weight, into one.

    Keys that rank very high in one ranking, or well in several, come first. In a ranking that is a sequence, each key
    gets the whole weight. In a mapping, each key gets the given fraction of the weight. Scores are between 0 and 1. A
    score of 1 means first in every ranking.
    """
    used = [(weight, ranking) for weight, ranking in rankings if ranking]
    total = sum(weight for weight, _ in used)
    scores: dict[Key, float] = defaultdict(float)
    for weight, ranking in used:
        for place, key in enumerate(ranking):
            share = ranking[key] if isinstance(ranking, Mapping) else 1.0
            scores[key] += weight * share / total * (FUSION_RANK + 1) / (FUSION_RANK + 1 + place)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def vector_share(model: str, language: str | None) -> float:
    """Return the weight of a model's vectors for a document in this language.

    It is 1 if the model supports the language, and lower otherwise.
    """
    is_known = model != NAME or language is None or primary_language(language) in LANGUAGES
    return 1.0 if is_known else FOREIGN_SHARE


def spread(ordered: Iterable[Key], group_of: Mapping[Key, Hashable], most_of_one: int | None, limit: int) -> list[Key]:
    """Return the first `limit` keys, but at most `most_of_one` from the same group, such as a document."""
    taken: Counter[Hashable] = Counter()
    chosen: list[Key] = []
    for key in ordered:
        if len(chosen) == limit:
            break
        if most_of_one is None or taken[group_of[key]] < most_of_one:
            taken[group_of[key]] += 1
            chosen.append(key)
    return chosen


@dataclass(frozen=True, slots=True)
class SimilarityThreshold:
    """The minimum similarity that an answer must have.

    It grows with the number of chunks: it is `one` for a single chunk and increases by `tenfold` whenever the number of
    chunks is multiplied by ten, up to `most`.
    """

    one: float
    tenfold: float
    most: float

    def least(self, chunks: int) -> float:
        """Return the minimum similarity for the nearest chunk to count as an answer, given the number of chunks."""
        return min(self.one + self.tenfold * log10(max(chunks, 1)), self.most)


MEASURED: Mapping[str, SimilarityThreshold] = {NAME: SimilarityThreshold(0.20, 0.06, 0.34)}
# No limit for models that were not measured: a wrong one would hide hits in other languages.
UNMEASURED = SimilarityThreshold(0.0, 0.0, 0.0)


def least_similarity(model: str, chunks: int) -> float:
    return MEASURED.get(model, UNMEASURED).least(chunks)
