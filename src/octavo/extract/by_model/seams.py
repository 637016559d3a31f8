"""Joins a model's overlapping answers into one text without duplicates.

Two answers never agree exactly on the pages they share, so they are compared word by word, ignoring case, markup and
line breaks. Word sequences that occur exactly once in each answer show where the answers match. The seam is the
position at which the text of one answer ends and the text of the next begins. It is placed in the middle of the
matching text, because the start of an answer lacks context and its end may be cut off.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from octavo.extract.by_model.sections import CallLimits, PageRange, find_page_markers, halve_call, plan_calls

_RUNS = (6, 4)  # words; long sequences are more reliable, short ones find more in a poor answer
_LEAST_CONFIDENCE = 0.12
_FEW_WORDS = 20
_MOST_SHIFT = 120  # extra words that one answer can have between two matching places
_NEAR = 12
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """A model's answer for a range of pages."""

    pages: PageRange
    markdown: str


@dataclass(frozen=True, slots=True)
class Seam:
    """The position at which two answers are joined: `before[:end] + after[start:]`.

    `at_block` is true if a block starts at that position in both answers.
    """

    end: int
    start: int
    at_block: bool


@dataclass(frozen=True, slots=True)
class StitchedText:
    """The joined text.

    `seams` contains one entry for each pair of neighbouring answers with shared pages: the position at which the two
    answers were joined. The entry is None if the answers do not match. Both answers are then kept in full.
    """

    markdown: str
    seams: tuple[Seam | None, ...]


def stitch(answers: Sequence[PageAnswer]) -> StitchedText:
    """Join the answers for consecutive page ranges into one text, in page order.

    Text that two answers share is written once, if a matching position is found.
    """
    if not answers:
        return StitchedText("", ())
    kept: list[str] = []
    seams: list[Seam | None] = []
    rest = answers[0].markdown
    for before, after in pairwise(answers):
        shared = after.pages.first <= before.pages.last
        seam = _find_seam(rest, before.pages, after) if shared else None
        seams += [seam] if shared else []
        if seam is None:
            kept += [rest.rstrip(), _BETWEEN]
            rest = after.markdown
        else:
            kept += [rest[: seam.end].rstrip(), _BETWEEN] if seam.at_block else [rest[: seam.end]]
            rest = after.markdown[seam.start :]
    return StitchedText("".join([*kept, rest]), tuple(seams))


def _find_seam(rest: str, pages: PageRange, after: PageAnswer) -> Seam | None:
    """Find the position at which to join two answers, searching only the pages that both contain.

    If there is no such position, both texts are searched in full, because page markers can be wrong.
    """
    begin = max((place for page, place in find_page_markers(rest).items() if page <= after.pages.first), default=0)
    end = min((place for page, place in find_page_markers(after.markdown).items() if page > pages.last), default=None)
    found = find_seam(rest[begin:], after.markdown[:end])
    if found:
        return replace(found, end=found.end + begin)
    return find_seam(rest, after.markdown, moved=True)


def find_seam(before: str, after: str, *, moved: bool = False) -> Seam | None:
    """Find where to switch from `before` to `after`, if the end of `before` matches the beginning of `after`.

    Set `moved` to true if `before` starts with pages that `after` does not contain. A match is then accepted only if
    its words come later in `before` than in `after`. Any other match is only a phrase with which every answer starts.
    Returns None if no reliable match is found.
    """
    left, right = index_words(before), index_words(after)
    for size in _RUNS:
        stretches = _stretches(left.words, right.words, size)
        proven = [
            (_confidence(pairs, len(left.words)), pairs) for pairs in stretches if not moved or _shift(pairs[0]) > 0
        ]
        confidence, pairs = max(proven, default=(0.0, ()))
        if confidence >= _LEAST_CONFIDENCE:
            return _seam(pairs, left, right)
    return None


Pair = tuple[int, int]


def _stretches(left: Sequence[str], right: Sequence[str], size: int) -> Iterator[tuple[Pair, ...]]:
    """Find the stretches of text that both texts contain.

    Yields, for each stretch, the index of each of its words in the left text and in the right text.
    """
    runs = sorted(_shared_sequences(left, right, size), key=_shift)
    begin = 0
    for end in range(1, len(runs) + 1):
        if end == len(runs) or _shift(runs[end]) - _shift(runs[end - 1]) > _MOST_SHIFT:
            yield tuple(_words_of(_longest_increasing(sorted(runs[begin:end])), size))
            begin = end


def _shared_sequences(left: Sequence[str], right: Sequence[str], size: int) -> list[Pair]:
    """Find the sequences of `size` words that occur exactly once in each of two texts.

    Returns the position of each in both texts.
    """
    right_places = _unique_sequences(right, size)
    return [(place, right_places[run]) for run, place in _unique_sequences(left, size).items() if run in right_places]


def common_places(before: str, after: str) -> list[Pair]:
    """Find the words that two versions of a text share, in order.

    Returns the offset of each shared word in `before` and in `after`.
    """
    left, right = index_words(before), index_words(after)
    size = _RUNS[-1]
    runs = _longest_increasing(sorted(_shared_sequences(left.words, right.words, size)))
    return [(left.starts[one], right.starts[other]) for one, other in _words_of(runs, size)]


def _shift(pair: Pair) -> int:
    return pair[0] - pair[1]


def _unique_sequences(words: Sequence[str], size: int) -> dict[tuple[str, ...], int]:
    places: dict[tuple[str, ...], int] = {}
    for place, run in enumerate(zip(*(words[shift:] for shift in range(size)), strict=False)):
        places[run] = -1 if run in places else place
    return {run: place for run, place in places.items() if place >= 0}


def _longest_increasing(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the longest subsequence of pairs in which the second value always increases.

    `pairs` must be sorted by the first value.
    """
    ends: list[int] = []  # the lowest right position that ends a subsequence of this length
    last: list[int] = []  # and the index of that pair
    before: list[int] = []
    for number, (_, right) in enumerate(pairs):
        length = bisect_left(ends, right)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [right]
        last[length : length + 1] = [number]
    sequence: list[Pair] = []
    number = last[-1] if last else -1
    while number >= 0:
        sequence.append(pairs[number])
        number = before[number]
    return sequence[::-1]


def _words_of(runs: Iterable[Pair], size: int) -> Iterator[Pair]:
    """Convert matching word sequences to pairs of matching words.

    Sequences may overlap, but no word is yielded twice.
    """
    last = (-1, -1)
    for left, right in runs:
        for pair in zip(range(left, left + size), range(right, right + size), strict=True):
            if pair[0] > last[0] and pair[1] > last[1]:
                yield pair
                last = pair


def _confidence(pairs: Sequence[Pair], left_words: int) -> float:
    """Return the confidence that the matching words belong to a real overlap.

    In a real overlap, the last words of the left text match the first words of the right text. The confidence is the
    fraction of these words that match. It is lowered if few words match, because short phrases also match by chance.
    """
    end_left, end_right = pairs[-1]
    agreement = len(pairs) / (end_right + left_words - end_left)
    return agreement * len(pairs) / (len(pairs) + _FEW_WORDS)


def _seam(pairs: Sequence[Pair], left: WordIndex, right: WordIndex) -> Seam:
    """Choose where to join two texts, preferably at the start of a block.

    A join inside a block can damage it, for example because models often format the same table differently.
    """
    middle = (pairs[0][0] + pairs[-1][0]) / 2
    blocks = [pair for pair in pairs if pair[0] in left.blocks and pair[1] in right.blocks]
    chosen = _best_candidate(blocks or pairs, pairs, middle)
    if blocks:
        return Seam(left.blocks[chosen[0]], right.blocks[chosen[1]], at_block=True)
    return Seam(left.starts[chosen[0]], right.starts[chosen[1]], at_block=False)


def _best_candidate(candidates: Sequence[Pair], pairs: Sequence[Pair], middle: float) -> Pair:
    """Choose the candidate nearest to `middle` for which at least half of the surrounding words match.

    If there is no such candidate, choose the nearest one.
    """
    places = [left for left, _ in pairs]

    def doubt(pair: Pair) -> tuple[bool, float]:
        around = bisect_left(places, pair[0] + _NEAR) - bisect_left(places, pair[0] - _NEAR)
        return around < _NEAR, abs(pair[0] - middle)

    return min(candidates, key=doubt)


# Scripts without spaces are compared character by character.
_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_NO_SPACES}]|[^\\W_{_NO_SPACES}]+")
_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class WordIndex:
    """The words of a text.

    `starts` contains the offset of each word. `blocks` maps the index of each block's first word to the offset of the
    line on which the block begins.
    """

    words: Sequence[str]
    starts: Sequence[int]
    blocks: Mapping[int, int]


def index_words(markdown: str) -> WordIndex:
    found = [(_folded(match.group()), match.start()) for match in _WORD.finditer(markdown)]
    starts = [start for _, start in found]
    blocks: dict[int, int] = {}
    for line, end in _block_lines(markdown):
        number = bisect_left(starts, line)
        if number < len(starts) and starts[number] < end:
            blocks[number] = line
    return WordIndex([word for word, _ in found], starts, blocks)


def _folded(word: str) -> str:
    return word.lower() if word.isascii() else unicodedata.normalize("NFKC", word).casefold()


def _block_lines(markdown: str) -> Iterator[tuple[int, int]]:
    """Find the lines at which blocks begin: headings, and lines after an empty line, but not in fenced code.

    Yields the start and end of each line.
    """
    fence, after_blank = "", True
    for match in _LINE.finditer(markdown):
        line = match.group()
        marks = _FENCE.match(line)
        if not fence and (after_blank or line.startswith("#")):
            yield match.span()
        if marks and not fence:
            fence = marks[1]
        elif marks and marks[1].startswith(fence):
            fence = ""
        after_blank = not line.strip()


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer to one call. `whole` is false if the model stopped at its output limit."""

    markdown: str
    whole: bool = True


class PageReader(Protocol):
    """A model that reads pages and writes a marker line before the text of each page."""

    async def read(self, pages: PageRange) -> Answer: ...


@dataclass(frozen=True, slots=True)
class PagesText:
    """The text of all pages. `missing` lists the pages without a marker: the model skipped them, or they are blank."""

    markdown: str
    seams: tuple[Seam | None, ...]
    missing: tuple[int, ...]


async def read_pages(reader: PageReader, tokens: Sequence[int], limits: CallLimits | None = None) -> PagesText:
    """Read all pages with a model. `tokens` contains the estimated output tokens of each page.

    Raises `TokenLimit` if the answer for a single page exceeds the model's output limit.
    """
    limits = limits or CallLimits()
    answers: list[PageAnswer] = []
    pending = plan_calls(tokens, limits)[::-1]
    while pending:
        pages = pending.pop()
        answer = await reader.read(pages)
        if not answer.whole:
            pending += halve_call(pages, limits)[::-1]
            continue
        answers.append(PageAnswer(pages, answer.markdown))
    joined = stitch(answers)
    marked = find_page_markers(joined.markdown)
    missing = tuple(number for number in range(1, len(tokens) + 1) if number not in marked)
    return PagesText(joined.markdown, joined.seams, missing)
