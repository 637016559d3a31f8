"""What cannot both be true: clauses of two passages that speak of the same, and deny, oppose, count or date it.

Rules find it, so it is only possible until a model or a person confirms it. They would rather miss one than cry wolf:
what is doubted, asked, planned, said of a part, of another time or of somebody else is passed over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from octavo.connect.claims import Claim
from octavo.connect.contract import Engine, Found, Pair, Status
from octavo.connect.evidence import Readings, quote_of
from octavo.connect.roots import as_root, weigh
from octavo.connect.similarity import shared_concepts
from octavo.connect.wording import ANTONYMS, NO_DENIALS, PREFIXES, SCOPES, SIBLINGS
from octavo.language.tone import polarity_of
from octavo.language.words import root

# Share of the words' weight that two clauses must have in common, of the shorter and of the longer one.
LEAST_OF_SHORTER, LEAST_OF_LONGER = 0.6, 0.4
SAME_CLAIM = 0.85
LEAST_SHARED = 2
# Of a word that another one may be the denial of.
LEAST_LETTERS = 3
# Share of what is denied that the other side need not speak of.
MOST_DENIED_BESIDE = 0.2
# How far passages and clauses must lean to either side.
LEAST_TONE, LEAST_CLAUSE_TONE = 0.2, 0.4


@dataclass(frozen=True, slots=True)
class Clash:
    kind: str
    strength: float
    mine: Claim
    theirs: Claim
    words: str


def find_contradictions(pairs: Iterable[Pair], readings: Readings) -> list[Found]:
    """The strongest of each pair of passages."""
    found = (
        contradict(pair, readings)
        for pair in pairs
        if readings.is_understood(pair.source) and readings.is_understood(pair.target)
    )
    return [one for one in found if one]


def contradict(pair: Pair, readings: Readings) -> Found | None:
    mine, theirs = readings.claims(pair.source), readings.claims(pair.target)
    clashes = [
        clash
        for clash in (*_clashes(pair, readings), *_opposite_tones(pair, mine, theirs))
        if not _said_on_both_sides(clash, mine, theirs)
    ]
    if not clashes:
        return None
    best = max(clashes, key=lambda clash: clash.strength)
    spans = quote_of(pair.source, best.mine), quote_of(pair.target, best.theirs)
    detail = {"kind": best.kind}
    return Found(
        Engine.CONTRADICTION, pair, round(best.strength, 3), *spans, best.words, Status.POSSIBLE, detail=detail
    )


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two clauses of two passages that share words. `known` is what both passages speak of, anywhere."""

    one: Claim
    other: Claim
    shared: frozenset[str]
    opposed: tuple[tuple[str, str], ...]
    overlap: float
    known: frozenset[str]

    @property
    def spoken_of(self) -> frozenset[str]:
        """Words that both passages know."""
        return self.shared | self.known | _flat(self.opposed)


def _clashes(pair: Pair, readings: Readings) -> Iterator[Clash]:
    """Only clauses that share a word are looked at; which do is known before."""
    mine, theirs = readings.claims(pair.source), readings.claims(pair.target)
    my_places, their_places = readings.places(pair.source), readings.places(pair.target)
    known = frozenset(my_places.keys() & their_places.keys())
    meeting = dict[int, set[int]]()
    for word in known:
        for place in my_places[word]:
            meeting.setdefault(place, set()).update(their_places[word])
    for place in sorted(meeting):
        for other in sorted(meeting[place]):
            if met := _meet(mine[place], theirs[other], known):
                yield from _clash_of(met)


def _meet(one: Claim, other: Claim, known: frozenset[str]) -> Meeting | None:
    """If they speak of the same. What a clause says more, but the other passage says elsewhere, does not part them."""
    if one.hedged or other.hedged:
        return None
    shared = one.roots & other.roots
    opposed = tuple(_opposites(one.roots - shared, other.roots - shared))
    if len(shared) + len(opposed) < LEAST_SHARED or _other_scope(one, other):
        return None
    weight = sum(map(weigh, shared)) + sum(weigh(word) + weigh(against) for word, against in opposed) / 2
    weights = [weight + sum(map(weigh, claim.roots - shared - known - _flat(opposed))) for claim in (one, other)]
    shorter, longer = sorted(weights)
    if weight < LEAST_OF_SHORTER * shorter or weight < LEAST_OF_LONGER * longer:
        return None
    return Meeting(one, other, shared, opposed, min((weight / shorter + weight / longer) / 2, 1.0), known)


def _clash_of(meeting: Meeting) -> Iterator[Clash]:
    clash = next((clash for check in (_dates, _numbers, _negation_or_antonym) if (clash := check(meeting))), None)
    if clash:
        yield clash


# What clashes --------------------------------------------------------------------------------------------------------


def _negation_or_antonym(meeting: Meeting) -> Clash | None:
    """One denial more on one side, or a word against its opposite; both together agree again."""
    one, other, opposed = meeting.one, meeting.other, meeting.opposed
    if one.formerly is not other.formerly or (one.negated is other.negated) is (len(opposed) % 2 == 0):
        return None
    if opposed and one.negated is other.negated:
        (word, against), *_ = opposed
        if one.negated or one.partial or other.partial or _about_another(meeting, word, against):
            return None
        word, against = _as_written(one, other, frozenset({word}))[0], _as_written(other, one, frozenset({against}))[0]
        return Clash("antonym", 0.55 + 0.35 * meeting.overlap, one, other, f"One says “{word}”, the other “{against}”.")
    denier = one if one.negated else other
    if (one.partial or other.partial) and not denier.denies_all:
        return None
    reached = denier.denied & meeting.spoken_of
    # Who denies that somebody dances on the road does not deny that he dances.
    if denier.first_denied not in meeting.shared | _flat(opposed) or _weight(
        denier.denied - reached
    ) > MOST_DENIED_BESIDE * _weight(denier.denied):
        return None
    about = ", ".join(_as_written(one, other, denier.denied & meeting.shared))
    return Clash("negation", 0.6 + 0.35 * meeting.overlap, one, other, f"One denies what the other says: {about}.")


def _numbers(meeting: Meeting) -> Clash | None:
    one, other = meeting.one, meeting.other
    if meeting.opposed or one.negated is not other.negated or one.formerly is not other.formerly:
        return None
    for mine in one.quantities:
        rivals = [theirs for theirs in other.quantities if theirs.of == mine.of]
        if not rivals or not all(mine.conflicts(theirs) for theirs in rivals):
            continue
        theirs = rivals[0]
        agrees = any(theirs.of == again.of and not theirs.conflicts(again) for again in one.quantities)
        if not agrees and not _about_another(meeting, mine.place, theirs.place):
            said = f"{_words_at(one, mine.place, mine.last)} or {_words_at(other, theirs.place, theirs.last)}"
            return Clash("number", 0.6 + 0.35 * meeting.overlap, one, other, f"The numbers differ: {said}.")
    return None


def _dates(meeting: Meeting) -> Clash | None:
    one, other = meeting.one, meeting.other
    if meeting.opposed or one.negated is not other.negated or not one.moments or not other.moments:
        return None
    if not all(mine.conflicts(theirs) for mine in one.moments for theirs in other.moments):
        return None
    if _about_another(meeting, one.moments[0].place, other.moments[0].place):
        return None
    return Clash("date", 0.6 + 0.35 * meeting.overlap, one, other, "The dates differ.")


def _opposite_tones(pair: Pair, mine: Sequence[Claim], theirs: Sequence[Claim]) -> Iterator[Clash]:
    """Both speak of a concept, one well and the other ill, as passages and in the clauses that name it."""
    if not _opposed(pair.source.polarity or 0.0, pair.target.polarity or 0.0, LEAST_TONE):
        return
    concepts = {concept: frozenset(map(as_root, concept.lower().split())) for concept in shared_concepts(pair)}
    for concept, roots in concepts.items():
        for one in (claim for claim in mine if roots <= claim.roots):
            for other in (claim for claim in theirs if roots <= claim.roots):
                if _judge_oppositely(one, other):
                    yield Clash("polarity", 0.5, one, other, f"One speaks well of {concept}, the other does not.")


def _judge_oppositely(one: Claim, other: Claim) -> bool:
    if one.hedged or other.hedged or one.formerly is not other.formerly or _other_scope(one, other):
        return False
    if len(one.roots & other.roots) < LEAST_SHARED or one.partial is not other.partial:
        return False
    return _opposed(polarity_of(" ".join(one.words)), polarity_of(" ".join(other.words)), LEAST_CLAUSE_TONE)


def _opposed(one: float, other: float, least: float) -> bool:
    return min(abs(one), abs(other)) >= least and one * other < 0


# What only seems to ---------------------------------------------------------------------------------------------------


def _other_scope(one: Claim, other: Claim) -> bool:
    """They speak of different things, or of the same thing at different times."""
    only_mine, only_theirs = one.names - other.names, other.names - one.names
    if only_mine and only_theirs:
        return True
    mine, theirs = one.roots - other.roots, other.roots - one.roots
    if any(not _apart_from(word).isdisjoint(theirs) for word in mine):
        return True
    opens = [claim.moments[0] for claim in (one, other) if claim.moments and claim.moments[0].place <= OPENING]
    return len(opens) == 1


# A date among the first words says when all of it was so.
OPENING = 2


def _about_another(meeting: Meeting, mine: int | str, theirs: int | str) -> bool:
    """Before what they disagree about, one of them names something that the other passage never speaks of."""
    sides = ((meeting.one, mine), (meeting.other, theirs))
    return any(claim.before(place) - meeting.known - _flat(meeting.opposed) for claim, place in sides)


def _said_on_both_sides(clash: Clash, mine: Sequence[Claim], theirs: Sequence[Claim]) -> bool:
    """The other passage says it too, elsewhere, so the two do not disagree about it."""
    return any(_same(clash.mine, one) for one in theirs) or any(_same(clash.theirs, one) for one in mine)


def _same(one: Claim, other: Claim) -> bool:
    if one.negated is not other.negated or one.denied != other.denied:
        return False
    if any(mine.conflicts(theirs) for mine in one.moments for theirs in other.moments):
        return False
    numbers = {(q.low, q.of) for q in one.quantities} == {(q.low, q.of) for q in other.quantities}
    shared = one.roots & other.roots
    return numbers and sum(map(weigh, shared)) >= SAME_CLAIM * max(one.weight, other.weight)


# Words ----------------------------------------------------------------------------------------------------------------


def _both_ways(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """By its root, what each word is paired with."""
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
    """Its antonyms, and what it denies or is denied by with a syllable before it."""
    longer = {prefix + word for prefix in PREFIXES} - _no_denials() if len(word) >= LEAST_LETTERS else set[str]()
    denied = {word.removeprefix(prefix) for prefix in PREFIXES if word.startswith(prefix)}
    shorter = set[str]() if word in _no_denials() else {one for one in denied if len(one) >= LEAST_LETTERS}
    return _antonyms().get(word, frozenset()) | longer | shorter


@lru_cache(maxsize=1)
def _no_denials() -> frozenset[str]:
    return frozenset(root(word) for word in NO_DENIALS)


@lru_cache(maxsize=50_000)
def _apart_from(word: str) -> frozenset[str]:
    siblings = frozenset[str]().union(*(kind for kind in SIBLINGS if word in kind))
    return _scopes().get(word, frozenset()) | siblings


def _weight(roots: Iterable[str]) -> float:
    return sum(map(weigh, roots))


def _flat(pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    return frozenset(word for pair in pairs for word in pair)


def _as_written(one: Claim, other: Claim, roots: frozenset[str]) -> list[str]:
    written = {as_root(word): word for claim in (other, one) for word in claim.words}
    order = dict.fromkeys((*one.order, *other.order))
    return [written[word] for word in order if word in roots and word in written][:3]


def _words_at(claim: Claim, first: int, last: int) -> str:
    return " ".join(claim.words[first : last + 1])
