"""The contradiction engine: finds clauses of two chunks about the same thing that cannot both be true.

They differ in a negation, an antonym, a number, a date or their tone. Rules only find possible contradictions; a model
or a person confirms them. Precision matters more than recall. Questions, uncertain or planned statements, statements
that are true only in some cases, and pairs about different times or subjects are skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from octavo.connect.claims import Claim
from octavo.connect.engine_types import ChunkPair, DetectedConnection
from octavo.connect.english_words import ANTONYMS, NOT_NEGATED, PREFIXES, SCOPES, SIBLINGS, as_root, weigh
from octavo.connect.evidence import ClaimCache, quote_of
from octavo.connect.similarity import shared_concepts
from octavo.language.tone import polarity_of
from octavo.language.vocabulary import root
from octavo.records.search import Engine, Status

# Minimum share of word weight that two clauses have in common, relative to the lighter and to the heavier one.
LEAST_OF_SHORTER, LEAST_OF_LONGER = 0.6, 0.4
SAME_CLAIM = 0.85
LEAST_SHARED = 2
# Minimum length of a word that a prefix can negate.
LEAST_LETTERS = 3
# Maximum share of the denied words that the other chunk does not mention.
MOST_DENIED_ELSEWHERE = 0.2
# Minimum absolute polarity of chunks and of clauses.
LEAST_TONE, LEAST_CLAUSE_TONE = 0.2, 0.4
# A date among the first words applies to the whole clause.
OPENING = 2


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two claims that cannot both be true."""

    kind: str
    strength: float
    mine: Claim
    theirs: Claim
    explanation: str


def find_contradictions(pairs: Iterable[ChunkPair], claim_cache: ClaimCache) -> list[DetectedConnection]:
    """The strongest contradiction of each pair of chunks."""
    found = (
        contradict(pair, claim_cache)
        for pair in pairs
        if claim_cache.is_supported(pair.source) and claim_cache.is_supported(pair.target)
    )
    return [one for one in found if one]


def contradict(pair: ChunkPair, claim_cache: ClaimCache) -> DetectedConnection | None:
    mine, theirs = claim_cache.claims(pair.source), claim_cache.claims(pair.target)
    conflicts = [
        conflict
        for conflict in (*_conflicts(pair, claim_cache), *_opposite_tones(pair, mine, theirs))
        if not _is_claimed_by_both(conflict, mine, theirs)
    ]
    if not conflicts:
        return None
    best = max(conflicts, key=lambda conflict: conflict.strength)
    spans = quote_of(pair.source, best.mine), quote_of(pair.target, best.theirs)
    detail = {"kind": best.kind}
    return DetectedConnection(
        Engine.CONTRADICTION, pair, round(best.strength, 3), *spans, best.explanation, Status.POSSIBLE, detail=detail
    )


@dataclass(frozen=True, slots=True)
class ClausePair:
    """Two clauses about the same thing. `known` contains the words that occur in both chunks, in any clause."""

    one: Claim
    other: Claim
    shared: frozenset[str]
    opposed: tuple[tuple[str, str], ...]
    overlap: float
    known: frozenset[str]

    @property
    def common_words(self) -> frozenset[str]:
        """Words that occur in both chunks, and words of one clause whose antonym is in the other clause."""
        return self.shared | self.known | _words_of(self.opposed)


def _conflicts(pair: ChunkPair, claim_cache: ClaimCache) -> Iterator[Conflict]:
    """Find conflicts between clauses that share a word.

    An index by word makes it unnecessary to compare every clause with every other.
    """
    mine, theirs = claim_cache.claims(pair.source), claim_cache.claims(pair.target)
    my_places, their_places = claim_cache.places(pair.source), claim_cache.places(pair.target)
    known = frozenset(my_places.keys() & their_places.keys())
    candidates = dict[int, set[int]]()
    for word in known:
        for place in my_places[word]:
            candidates.setdefault(place, set()).update(their_places[word])
    for place in sorted(candidates):
        for other in sorted(candidates[place]):
            if clauses := _match_clauses(mine[place], theirs[other], known):
                yield from _conflict_of(clauses)


def _match_clauses(one: Claim, other: Claim, known: frozenset[str]) -> ClausePair | None:
    """Pair two clauses if they are about the same thing.

    A word that only one of the clauses contains does not reduce their overlap if the other chunk contains the word
    elsewhere.
    """
    if one.hedged or other.hedged:
        return None
    shared = one.roots & other.roots
    opposed = tuple(_opposites(one.roots - shared, other.roots - shared))
    if len(shared) + len(opposed) < LEAST_SHARED or _other_scope(one, other):
        return None
    weight = sum(map(weigh, shared)) + sum(weigh(word) + weigh(against) for word, against in opposed) / 2
    weights = [weight + sum(map(weigh, claim.roots - shared - known - _words_of(opposed))) for claim in (one, other)]
    shorter, longer = sorted(weights)
    if weight < LEAST_OF_SHORTER * shorter or weight < LEAST_OF_LONGER * longer:
        return None
    return ClausePair(one, other, shared, opposed, min((weight / shorter + weight / longer) / 2, 1.0), known)


def _conflict_of(clauses: ClausePair) -> Iterator[Conflict]:
    conflict = next(
        (conflict for check in (_dates, _numbers, _negation_or_antonym) if (conflict := check(clauses))), None
    )
    if conflict:
        yield conflict


# Types of conflict ---------------------------------------------------------------------------------------------------


def _negation_or_antonym(clauses: ClausePair) -> Conflict | None:
    """A conflict if exactly one clause is negated, or if the clauses contain antonyms.

    If both apply, they cancel out.
    """
    one, other, opposed = clauses.one, clauses.other, clauses.opposed
    if one.formerly is not other.formerly or (one.negated is other.negated) is (len(opposed) % 2 == 0):
        return None
    if opposed and one.negated is other.negated:
        (word, against), *_ = opposed
        if one.negated or one.partial or other.partial or _about_another(clauses, word, against):
            return None
        word, against = _as_written(one, other, frozenset({word}))[0], _as_written(other, one, frozenset({against}))[0]
        return Conflict(
            "antonym", 0.55 + 0.35 * clauses.overlap, one, other, f"One says “{word}”, the other “{against}”."
        )
    denier = one if one.negated else other
    if (one.partial or other.partial) and not denier.denies_all:
        return None
    reached = denier.denied & clauses.common_words
    # The denied words must be in both chunks: denying that a man dances on the road does not deny that he dances.
    if denier.first_denied not in clauses.shared | _words_of(opposed) or _weight(
        denier.denied - reached
    ) > MOST_DENIED_ELSEWHERE * _weight(denier.denied):
        return None
    about = ", ".join(_as_written(one, other, denier.denied & clauses.shared))
    return Conflict(
        "negation", 0.6 + 0.35 * clauses.overlap, one, other, f"One passage denies what the other says: {about}."
    )


def _numbers(clauses: ClausePair) -> Conflict | None:
    one, other = clauses.one, clauses.other
    if clauses.opposed or one.negated is not other.negated or one.formerly is not other.formerly:
        return None
    for mine in one.quantities:
        rivals = [theirs for theirs in other.quantities if theirs.of == mine.of]
        if not rivals or not all(mine.conflicts(theirs) for theirs in rivals):
            continue
        theirs = rivals[0]
        agrees = any(theirs.of == again.of and not theirs.conflicts(again) for again in one.quantities)
        if not agrees and not _about_another(clauses, mine.place, theirs.place):
            values = f"{_words_at(one, mine.place, mine.last)} or {_words_at(other, theirs.place, theirs.last)}"
            return Conflict("number", 0.6 + 0.35 * clauses.overlap, one, other, f"The numbers differ: {values}.")
    return None


def _dates(clauses: ClausePair) -> Conflict | None:
    one, other = clauses.one, clauses.other
    if clauses.opposed or one.negated is not other.negated or not one.dates or not other.dates:
        return None
    if not all(mine.conflicts(theirs) for mine in one.dates for theirs in other.dates):
        return None
    if _about_another(clauses, one.dates[0].place, other.dates[0].place):
        return None
    return Conflict("date", 0.6 + 0.35 * clauses.overlap, one, other, "The dates differ.")


def _opposite_tones(pair: ChunkPair, mine: Sequence[Claim], theirs: Sequence[Claim]) -> Iterator[Conflict]:
    """Find clauses about the same concept with opposite tones, if the tones of their chunks are opposite, too."""
    if not are_opposed(pair.source.polarity or 0.0, pair.target.polarity or 0.0, LEAST_TONE):
        return
    concepts = {concept: frozenset(map(as_root, concept.lower().split())) for concept in shared_concepts(pair)}
    for concept, roots in concepts.items():
        for one in (claim for claim in mine if roots <= claim.roots):
            for other in (claim for claim in theirs if roots <= claim.roots):
                if _judge_oppositely(one, other):
                    why = f"One passage is positive about {concept}, the other is not."
                    yield Conflict("polarity", 0.5, one, other, why)


def _judge_oppositely(one: Claim, other: Claim) -> bool:
    if one.hedged or other.hedged or one.formerly is not other.formerly or _other_scope(one, other):
        return False
    if len(one.roots & other.roots) < LEAST_SHARED or one.partial is not other.partial:
        return False
    return are_opposed(polarity_of(" ".join(one.words)), polarity_of(" ".join(other.words)), LEAST_CLAUSE_TONE)


def are_opposed(one: float, other: float, least: float) -> bool:
    """Whether two polarities have opposite signs and are both clear enough."""
    return min(abs(one), abs(other)) >= least and one * other < 0


# False alarms ---------------------------------------------------------------------------------------------------------


def _other_scope(one: Claim, other: Claim) -> bool:
    """Whether the claims differ in scope: they name different things, or only one of them begins with a date."""
    only_mine, only_theirs = one.names - other.names, other.names - one.names
    if only_mine and only_theirs:
        return True
    mine, theirs = one.roots - other.roots, other.roots - one.roots
    if any(not _distinct_from(word).isdisjoint(theirs) for word in mine):
        return True
    opens = [claim.dates[0] for claim in (one, other) if claim.dates and claim.dates[0].place <= OPENING]
    return len(opens) == 1


def _about_another(clauses: ClausePair, mine: int | str, theirs: int | str) -> bool:
    """Whether the part of a clause before the conflict contains a word that does not occur in the other chunk."""
    sides = ((clauses.one, mine), (clauses.other, theirs))
    return any(claim.before(place) - clauses.known - _words_of(clauses.opposed) for claim, place in sides)


def _is_claimed_by_both(conflict: Conflict, mine: Sequence[Claim], theirs: Sequence[Claim]) -> bool:
    """Whether one of the chunks makes both claims. If so, the chunks do not contradict each other."""
    return any(_same(conflict.mine, one) for one in theirs) or any(_same(conflict.theirs, one) for one in mine)


def _same(one: Claim, other: Claim) -> bool:
    if one.negated is not other.negated or one.denied != other.denied:
        return False
    if any(mine.conflicts(theirs) for mine in one.dates for theirs in other.dates):
        return False
    numbers = {(q.low, q.of) for q in one.quantities} == {(q.low, q.of) for q in other.quantities}
    shared = one.roots & other.roots
    return numbers and sum(map(weigh, shared)) >= SAME_CLAIM * max(one.weight, other.weight)


# Words ----------------------------------------------------------------------------------------------------------------


def _both_ways(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Map the root of each word to the roots of the words it is paired with."""
    paired = defaultdict[str, set[str]](set)
    for one, other in pairs:
        paired[as_root(one)].add(as_root(other))
        paired[as_root(other)].add(as_root(one))
    return {word: frozenset(others) for word, others in paired.items()}


@lru_cache(maxsize=1)
def _antonyms() -> dict[str, frozenset[str]]:
    return _both_ways(ANTONYMS)


@lru_cache(maxsize=1)
def _scopes() -> dict[str, frozenset[str]]:
    return _both_ways(SCOPES)


def _opposites(mine: frozenset[str], theirs: frozenset[str]) -> Iterator[tuple[str, str]]:
    opposed = [word for word in mine if not _opposites_of(word).isdisjoint(theirs)]
    left = set(theirs)
    for word in sorted(opposed):
        against = min(_opposites_of(word) & left, default=None)
        if against is not None:
            left.discard(against)
            yield word, against


@lru_cache(maxsize=50_000)
def _opposites_of(word: str) -> frozenset[str]:
    """The opposites of a word: its antonyms, the word with a negating prefix, and the word without such a prefix."""
    longer = {prefix + word for prefix in PREFIXES} - _not_negated() if len(word) >= LEAST_LETTERS else set[str]()
    denied = {word.removeprefix(prefix) for prefix in PREFIXES if word.startswith(prefix)}
    shorter = set[str]() if word in _not_negated() else {one for one in denied if len(one) >= LEAST_LETTERS}
    return _antonyms().get(word, frozenset()) | longer | shorter


@lru_cache(maxsize=1)
def _not_negated() -> frozenset[str]:
    return frozenset(root(word) for word in NOT_NEGATED)


@lru_cache(maxsize=50_000)
def _distinct_from(word: str) -> frozenset[str]:
    siblings = frozenset[str]().union(*(kind for kind in SIBLINGS if word in kind))
    return _scopes().get(word, frozenset()) | siblings


def _weight(roots: Iterable[str]) -> float:
    return sum(map(weigh, roots))


def _words_of(pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    return frozenset(word for pair in pairs for word in pair)


def _as_written(one: Claim, other: Claim, roots: frozenset[str]) -> list[str]:
    written = {as_root(word): word for claim in (other, one) for word in claim.words}
    order = dict.fromkeys((*one.order, *other.order))
    return [written[word] for word in order if word in roots and word in written][:3]


def _words_at(claim: Claim, first: int, last: int) -> str:
    return " ".join(claim.words[first : last + 1])
