"""Finds contradictions: pairs statements about the same thing from two chunks, and lets the octavo-small model judge
them. Only English texts are supported.

The model is small, and texts about different subjects can mislead it. A pair is therefore judged only if both sentences
are about the same thing: they share many of their important words and do not contain different names. The model must
find a contradiction in both directions.

This module also describes how two contradicting statements differ: in a number, a date, a negation or a few words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter

from octavo.connect.english_words import SCOPES, Quantity, as_root, is_content_word, is_negation, weigh, word_set
from octavo.connect.evidence import ChunkPair, DetectedConnection, SentenceCache, shorten
from octavo.connect.statements import WORD, Statement
from octavo.language import small_model
from octavo.records.search import Engine, Status

WORDING = "wording"
_MOST_WORDS = 4
_CONTEXT = 4
_SHORT = 3
_AFTER_NEGATION = 3
# If two sentences are at least this similar, different words in the same position replace each other.
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
    """Return one number from each statement. Neither of the two numbers is in the other statement.

    Both numbers must measure the same thing. If there are several such pairs, the pair with the most similar
    neighbouring words is chosen. Returns None if there is no such pair.
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
    """Count the words that appear near both numbers."""
    around = [
        set(statement.words[max(figure.place - _CONTEXT, 0) : figure.end + _CONTEXT])
        for statement, figure in ((one, mine), (other, theirs))
    ]
    return len(around[0] & around[1])


def _denial(statement: Statement) -> str:
    """Return the first negation and the words after it. Returns an empty string if there is no negation."""
    words = enumerate(statement.words)
    place = next((place for place, word in words if is_negation(word) or word in _EXCLUDING), None)
    return "" if place is None else _slice(statement, place, place + _AFTER_NEGATION)


def _replaced(one: Statement, other: Statement) -> Iterator[tuple[str, str]]:
    """Yield the short texts in which two similar statements differ, shortest first.

    Each difference is a pair: the text in `one`, and the text in `other`.
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
    """Return the complete date that contains this part of a date. For example, returns "12 March 2024" for "March"."""
    is_date = [word in statement.dates or word.removesuffix("s") in statement.dates for word in statement.words]
    place = next(place for place, word in enumerate(statement.words) if date in {word, word.removesuffix("s")})
    first, last = place, place + 1
    while first and is_date[first - 1]:
        first -= 1
    while last < len(is_date) and is_date[last]:
        last += 1
    return _slice(statement, first, last)


# Minimum share of the word weight that two statements have in common, relative to the lighter and to the heavier one.
LEAST_OF_SHORTER, LEAST_OF_LONGER = 0.35, 0.25
LEAST_SHARED = 2
# Sentences with at least this overlap are the same, except for the contradicting words.
NEARLY_SAME = 0.8
# Minimum similarity of chunks that have names, but none in common.
SAME_SUBJECT = 0.7
# Statement pairs judged per document: 5 s of one core, measured in docs/decisions/0030-contradictions.md.
MOST_JUDGED = 600
# A pair is judged in the other direction only if the first one is at least this likely a contradiction.
LEAST_FORWARD = 0.5
# The maximum number of contradictions for a pair of chunks, and for one sentence.
MOST_PER_PAIR, MOST_PER_STATEMENT = 5, 3
# Higher than the threshold of the model alone: see docs/decisions/0030-contradictions.md.
THRESHOLD = max(0.9, small_model.CONTRADICTION_THRESHOLD)
# In two nearly identical sentences, the model can mistake synonyms for a contradiction.
THRESHOLD_OF_WORDING = 0.98


@dataclass(frozen=True, slots=True)
class StatementPair:
    """Two statements about the same thing.

    `overlap` is the share of words that they have in common, from 0 to 1. Rare words count more.
    """

    pair: ChunkPair
    mine: Statement
    theirs: Statement
    overlap: float


def find_candidates(pairs: Iterable[ChunkPair], sentences: SentenceCache) -> list[StatementPair]:
    """For each pair of chunks, find statements that may contradict each other, one from each chunk."""
    return [
        candidate
        for pair in pairs
        if sentences.is_supported(pair.source) and sentences.is_supported(pair.target)
        for candidate in _candidates_of(pair, sentences)
        if _name_the_same(candidate, sentences)
    ]


def _name_the_same(one: StatementPair, sentences: SentenceCache) -> bool:
    """Whether the two chunks can be about the same thing.

    They must share a name or be very similar, or one of them must contain no names. Otherwise, "The notice period is 30
    days" in one contract would contradict another contract with a different notice period.
    """
    mine = sentences.names(one.pair.source) - one.mine.values
    theirs = sentences.names(one.pair.target) - one.theirs.values
    return not mine or not theirs or not mine.isdisjoint(theirs) or one.pair.similarity >= SAME_SUBJECT


def _candidates_of(pair: ChunkPair, sentences: SentenceCache) -> Iterator[StatementPair]:
    """Yield the pairs of statements, one from each chunk, that share words.

    An index by word avoids comparing every statement with every other.
    """
    mine, theirs = sentences.statements(pair.source), sentences.statements(pair.target)
    my_places, their_places = sentences.places(pair.source), sentences.places(pair.target)
    weights = defaultdict[tuple[int, int], float](float)
    for word in my_places.keys() & their_places.keys():
        for one in my_places[word]:
            for other in their_places[word]:
                weights[one, other] += weigh(word)
    for (one, other), weight in weights.items():
        if overlap := overlap_of(mine[one], theirs[other], weight):
            yield StatementPair(pair, mine[one], theirs[other], overlap)


def overlap_of(one: Statement, other: Statement, shared_weight: float) -> float:
    """Return the share of words that two statements have in common, from 0 to 1. Rare words count more.

    Returns 0 if the statements are not about the same thing.
    """
    mine, theirs = (sum(map(weigh, statement.roots)) for statement in (one, other))
    if shared_weight < LEAST_OF_SHORTER * min(mine, theirs) or shared_weight < LEAST_OF_LONGER * max(mine, theirs):
        return 0.0
    overlap = shared_weight / max(mine + theirs - shared_weight, 1e-9)
    same = one.letters == other.letters
    return 0.0 if same or not are_comparable(one, other, overlap) else overlap


def are_comparable(one: Statement, other: Statement, overlap: float) -> bool:
    """Whether two statements that share words are about the same thing and the same time.

    Statements that differ only in compatible numbers are not comparable, because they cannot contradict each other.
    """
    figures = _figures(one), _figures(other)
    measure_the_same = not {figure.kind for figure in figures[0]}.isdisjoint(figure.kind for figure in figures[1])
    if len(one.roots & other.roots) + measure_the_same < LEAST_SHARED:
        return False
    if _have_other_labels(one, other) or _have_other_scopes(one, other):
        return False
    if (one.names - other.names) and (other.names - one.names) and not _only_values_differ(one, other):
        return False
    if one.dates and other.dates and not one.dates & other.dates:
        return overlap >= NEARLY_SAME and _agree(*figures)
    only_numbers_differ = _agree(*figures) and _numbers(one) != _numbers(other) and _is_denied(one) is _is_denied(other)
    return not only_numbers_differ


def _only_values_differ(one: Statement, other: Statement) -> bool:
    """Whether two statements differ only in a name after "is" or "by", such as "The director is Anna Berg" and "The
    director is Karl Lind".
    """
    mine, theirs = (statement.roots - set(map(as_root, statement.values)) for statement in (one, other))
    is_value = one.names - other.names <= one.values and other.names - one.names <= other.values
    return is_value and mine == theirs and len(mine) >= LEAST_SHARED and _agree(_figures(one), _figures(other))


def _have_other_labels(one: Statement, other: Statement) -> bool:
    """Whether the statements contain the same name with different numbers, such as TREC 2002 and TREC 2003."""
    mine, theirs = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for numbers, statement in ((mine, one), (theirs, other)):
        for name, number in statement.labels:
            numbers[name].add(number)
    return any(mine[name].isdisjoint(theirs[name]) for name in mine.keys() & theirs.keys())


def _have_other_scopes(one: Statement, other: Statement) -> bool:
    """Whether contrasting words, such as "old" and "new", show that two statements have different subjects."""
    for scope in SCOPES:
        mine, theirs = scope.intersection(one.words), scope.intersection(other.words)
        if mine and theirs and mine != theirs:
            return True
    return False


def _figures(statement: Statement) -> list[Quantity]:
    """Return the numbers in a statement that are not part of a date."""
    return [one for one in statement.quantities if statement.words[one.place] not in statement.dates]


def _agree(mine: Sequence[Quantity], theirs: Sequence[Quantity]) -> bool:
    """Whether each number in one statement is compatible with a number in the other statement."""
    return all(any(one.agrees(other) for other in theirs) for one in mine) and all(
        any(one.agrees(other) for other in mine) for one in theirs
    )


def _numbers(statement: Statement) -> list[str]:
    return [word for one in _figures(statement) for word in statement.words[one.place : one.end]]


def judge_candidates(candidates: Iterable[StatementPair]) -> list[DetectedConnection]:
    """Let the model judge the most promising pairs. Returns the contradictions, strongest first.

    Pairs with the same words are judged only once, even if they occur in many chunks.
    """
    by_words = defaultdict[tuple[str, str], list[StatementPair]](list)
    for one in candidates:
        by_words[_words_of(one)].append(one)
    chosen = sorted(by_words, key=lambda words: (-_promise(by_words[words][0]), words))[:MOST_JUDGED]
    strengths = _judge([by_words[words][0] for words in chosen])
    judged = sorted(zip(strengths, chosen, strict=True), key=lambda both: (-both[0], both[1]))
    likely = ((one, strength) for strength, words in judged if strength >= THRESHOLD for one in by_words[words])
    return list(_keep(found for one, strength in likely if (found := connect(one, strength))))


def _judge(pairs: Sequence[StatementPair]) -> list[float]:
    """Return the probability that each pair is a contradiction.

    The model judges a pair in both directions. If the first direction shows no contradiction, the result is 0, and the
    second direction is not judged.
    """
    if not pairs:
        return []  # the model is loaded only if it is needed
    texts = [(one.mine.text, one.theirs.text) for one in pairs]
    return small_model.offline_small_model().contradiction_strengths(texts, LEAST_FORWARD)


def _words_of(one: StatementPair) -> tuple[str, str]:
    first, second = sorted((one.mine.letters, one.theirs.letters))
    return first, second


def _promise(one: StatementPair) -> float:
    numbers = not _agree(_figures(one.mine), _figures(one.theirs))
    denied = _is_denied(one.mine) is not _is_denied(one.theirs)
    return one.overlap + 0.2 * (numbers or denied)


def _is_denied(statement: Statement) -> bool:
    return sum(map(is_negation, statement.words)) % 2 == 1


def connect(one: StatementPair, strength: float) -> DetectedConnection | None:
    """Build the connection for a contradiction, with both quotes and the difference between them.

    Returns None if the statements differ only slightly in wording and the model is not sure.
    """
    difference = describe_difference(one.mine, one.theirs)
    if difference.kind == WORDING and one.overlap >= NEARLY_SAME and strength < THRESHOLD_OF_WORDING:
        return None
    return DetectedConnection(
        Engine.CONTRADICTION,
        one.pair,
        round(strength, 3),
        shorten(one.pair.source.content, one.mine.start, one.mine.end),
        shorten(one.pair.target.content, one.theirs.start, one.theirs.end),
        difference.explanation,
        Status.POSSIBLE,
        detail={"kind": difference.kind},
    )


def _keep(found: Iterable[DetectedConnection]) -> Iterator[DetectedConnection]:
    """Yield the contradictions to keep.

    Drops repetitions, and limits the number for each pair of chunks and each sentence.
    """
    kept: Counter[object] = Counter()
    for one in found:
        source, target = one.pair.source, one.pair.target
        pair, sides = (source.id, target.id), ((source.id, one.source_span), (target.id, one.target_span))
        repeated = source.document_id, target.document_id, one.quotes
        few = kept[pair] < MOST_PER_PAIR and all(kept[side] < MOST_PER_STATEMENT for side in sides)
        if few and not kept[repeated]:
            kept.update((pair, repeated, *sides))
            yield one
