"""Makes one text of answers that share some pages: each place of the document once, from one of the answers.

Answers never agree to the letter, so they are compared word by word, without case, marks and line ends. Runs of words
that stand once in each say where they are the same, and the seam is in the middle of those: the beginning of an answer
does not know what came before, and its end may be cut off.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from octavo.extract.by_model.page_calls import PageRange, find_marks
from octavo.extract.by_model.word_index import Wording, read_wording

_RUNS = (6, 4)  # words; long ones are surer, short ones find more in a bad answer
_LEAST_PROOF = 0.12
_FEW_WORDS = 20
_MOST_SHIFT = 120  # words that one answer may have more than the other between two places that are the same
_NEAR = 12
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Part:
    """The answer for some pages."""

    pages: PageRange
    markdown: str


@dataclass(frozen=True, slots=True)
class Seam:
    """`before[:end]` and `after[start:]` are kept. `at_block`: a block begins here in both."""

    end: int
    start: int
    at_block: bool


@dataclass(frozen=True, slots=True)
class Stitched:
    """A seam is None where two answers that should share pages do not: then all of both is kept."""

    markdown: str
    seams: tuple[Seam | None, ...]


def stitch(parts: Sequence[Part]) -> Stitched:
    """`parts` in the order of their pages. Those that share no page are set one behind the other."""
    if not parts:
        return Stitched("", ())
    kept: list[str] = []
    seams: list[Seam | None] = []
    rest = parts[0].markdown
    for before, after in pairwise(parts):
        shared = after.pages.first <= before.pages.last
        seam = _find_seam(rest, before.pages, after) if shared else None
        seams += [seam] if shared else []
        if seam is None:
            kept += [rest.rstrip(), _BETWEEN]
            rest = after.markdown
        else:
            kept += [rest[: seam.end].rstrip(), _BETWEEN] if seam.at_block else [rest[: seam.end]]
            rest = after.markdown[seam.start :]
    return Stitched("".join([*kept, rest]), tuple(seams))


def _find_seam(rest: str, pages: PageRange, after: Part) -> Seam | None:
    """First in the pages that both have, as far as the answers say where these are; a model may count them wrong."""
    begin = max((place for page, place in find_marks(rest).items() if page <= after.pages.first), default=0)
    end = min((place for page, place in find_marks(after.markdown).items() if page > pages.last), default=None)
    found = find_seam(rest[begin:], after.markdown[:end])
    if found:
        return replace(found, end=found.end + begin)
    return find_seam(rest, after.markdown, moved=True)


def find_seam(before: str, after: str, *, moved: bool = False) -> Seam | None:
    """Where to go from one text to the other, if the end of the one is the beginning of the other.

    `moved`: the one also has what comes before that; so what stands in the same place in both is only a phrase with
    which all answers begin.
    """
    left, right = read_wording(before), read_wording(after)
    for size in _RUNS:
        stretches = _stretches(left.words, right.words, size)
        proven = [(_proof(pairs, len(left.words)), pairs) for pairs in stretches if not moved or _shift(pairs[0]) > 0]
        proof, pairs = max(proven, default=(0.0, ()))
        if proof >= _LEAST_PROOF:
            return _seam(pairs, left, right)
    return None


Pair = tuple[int, int]


def _stretches(left: Sequence[str], right: Sequence[str], size: int) -> Iterator[tuple[Pair, ...]]:
    """Pairs of words that are the same, of each stretch in which both texts go on alike."""
    runs = sorted(_shared_runs(left, right, size), key=_shift)
    begin = 0
    for end in range(1, len(runs) + 1):
        if end == len(runs) or _shift(runs[end]) - _shift(runs[end - 1]) > _MOST_SHIFT:
            yield tuple(_words_of(_longest_rising(sorted(runs[begin:end])), size))
            begin = end


def _shared_runs(left: Sequence[str], right: Sequence[str], size: int) -> list[Pair]:
    """Where runs of so many words begin that stand once in each."""
    there = _once(right, size)
    return [(place, there[run]) for run, place in _once(left, size).items() if run in there]


def common_places(before: str, after: str) -> list[Pair]:
    """Where the same words begin in two texts that tell the same, in their order."""
    left, right = read_wording(before), read_wording(after)
    size = _RUNS[-1]
    runs = _longest_rising(sorted(_shared_runs(left.words, right.words, size)))
    return [(left.starts[one], right.starts[other]) for one, other in _words_of(runs, size)]


def _shift(pair: Pair) -> int:
    return pair[0] - pair[1]


def _once(words: Sequence[str], size: int) -> dict[tuple[str, ...], int]:
    places: dict[tuple[str, ...], int] = {}
    for place, run in enumerate(zip(*(words[shift:] for shift in range(size)), strict=False)):
        places[run] = -1 if run in places else place
    return {run: place for run, place in places.items() if place >= 0}


def _longest_rising(pairs: Sequence[Pair]) -> list[Pair]:
    """As many of them as can stand in one order; `pairs` are in that of the left text."""
    ends: list[int] = []  # the least right place on which a row of this length can end
    last: list[int] = []  # and which pair that is
    before: list[int] = []
    for number, (_, right) in enumerate(pairs):
        length = bisect_left(ends, right)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [right]
        last[length : length + 1] = [number]
    row: list[Pair] = []
    number = last[-1] if last else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]


def _words_of(runs: Iterable[Pair], size: int) -> Iterator[Pair]:
    """Runs may share words; each is told once."""
    told = (-1, -1)
    for left, right in runs:
        for pair in zip(range(left, left + size), range(right, right + size), strict=True):
            if pair[0] > told[0] and pair[1] > told[1]:
                yield pair
                told = pair


def _proof(pairs: Sequence[Pair], left_words: int) -> float:
    """How sure it is that this is what both share: then so is all before it on the right and behind it on the left.

    The share of that which is the same; and few words prove little, because phrases are repeated.
    """
    end_left, end_right = pairs[-1]
    agreement = len(pairs) / (end_right + left_words - end_left)
    return agreement * len(pairs) / (len(pairs) + _FEW_WORDS)


def _seam(pairs: Sequence[Pair], left: Wording, right: Wording) -> Seam:
    """At the beginning of a block where there is one, because tables and lists may look different in the two."""
    middle = (pairs[0][0] + pairs[-1][0]) / 2
    blocks = [pair for pair in pairs if pair[0] in left.blocks and pair[1] in right.blocks]
    chosen = _surest(blocks or pairs, pairs, middle)
    if blocks:
        return Seam(left.blocks[chosen[0]], right.blocks[chosen[1]], at_block=True)
    return Seam(left.starts[chosen[0]], right.starts[chosen[1]], at_block=False)


def _surest(candidates: Sequence[Pair], pairs: Sequence[Pair], middle: float) -> Pair:
    """The one nearest to the middle among those around which nearly everything is the same."""
    places = [left for left, _ in pairs]

    def doubt(pair: Pair) -> tuple[bool, float]:
        around = bisect_left(places, pair[0] + _NEAR) - bisect_left(places, pair[0] - _NEAR)
        return around < _NEAR, abs(pair[0] - middle)

    return min(candidates, key=doubt)
