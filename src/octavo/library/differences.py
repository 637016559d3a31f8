"""Finds the differences between two texts: added, removed and changed paragraphs, and the changed words in them.

Paragraphs or words that occur exactly once in each text are matched first (patience diff). The text between two matches
is compared with an algorithm that finds the fewest edits (Myers). The number of steps is limited in proportion to the
length of the texts. Text beyond this limit is reported as completely changed, which is correct but coarse.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import Literal

from octavo.core.texts import ONE_CHARACTER
from octavo.records.documents import Part

Kind = Literal["same", "removed", "added"]

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_WORD = re.compile(rf"[{ONE_CHARACTER}]|\s+|(?:(?![{ONE_CHARACTER}])\w)+|[^\w\s]")
# How often gaps are searched for further anchors. Each time, the whole text is scanned at most once.
_LEVELS = 8
_STEPS_A_CHARACTER = 2
_LEAST_STEPS = 500_000
_MOST_EDITS = 500
# If a smaller share of the text is unchanged, the words that both texts contain are ignored as coincidence.
_LEAST_SAME = 0.25


@dataclass(frozen=True, slots=True)
class Change:
    """A change: `old[old_start:old_end]` became `new[new_start:new_end]`.

    `parts` contains the unchanged, removed and added words.
    """

    old_start: int
    old_end: int
    new_start: int
    new_end: int
    parts: tuple[Part, ...]


@dataclass(slots=True)
class StepBudget:
    """The number of steps that remain for a comparison, shared by all its parts."""

    left: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A part in which two sequences differ: `old[a:b]` was replaced by `new[c:d]`."""

    a: int
    b: int
    c: int
    d: int


def compare(old: str, new: str) -> list[Change]:
    """Compare two texts. Returns the changes in text order. Use `change` to apply them to the old text."""
    steps = StepBudget(_LEAST_STEPS + _STEPS_A_CHARACTER * (len(old) + len(new)))
    before, after = split_paragraphs(old), split_paragraphs(new)
    at_old, at_new = _offsets(before), _offsets(after)
    return [
        Change(
            at_old[gap.a],
            at_old[gap.b],
            at_new[gap.c],
            at_new[gap.d],
            compare_words("".join(before[gap.a : gap.b]), "".join(after[gap.c : gap.d]), steps),
        )
        for gap in find_gaps(before, after, steps)
    ]


def change(old: str, changes: Sequence[Change]) -> str:
    """Apply changes to a text."""
    pieces, position = list[str](), 0
    for one in changes:
        pieces.append(old[position : one.old_start])
        pieces += [part.text for part in one.parts if part.kind != "removed"]
        position = one.old_end
    return "".join([*pieces, old[position:]])


def split_paragraphs(text: str) -> list[str]:
    """Split a text into paragraphs and the separators between them.

    Joined together, the parts give the original text.
    """
    pieces, position, end = list[str](), 0, len(text.rstrip())
    for between in _PARAGRAPH.finditer(text, 0, end):
        pieces += [text[position : between.start()], between.group()]
        position = between.end()
    return [piece for piece in (*pieces, text[position:end], text[end:]) if piece]


# Words -------------------------------------------------------------------------------------------------------------


def compare_words(old: str, new: str, steps: StepBudget) -> tuple[Part, ...]:
    before, after = _WORD.findall(old), _WORD.findall(new)
    enough = _LEAST_SAME * max(len(old), len(new))
    whole = tuple(_parts(removed=[old], added=[new]))
    if _letters(Counter(before) & Counter(after)) < enough:
        return whole
    parts: list[Part] = []
    position = 0
    for gap in find_gaps(before, after, steps):
        parts += _parts(same=before[position : gap.a], removed=before[gap.a : gap.b], added=after[gap.c : gap.d])
        position = gap.b
    parts += _parts(same=before[position:])
    if sum(len(part.text) for part in parts if part.kind == "same") < enough:
        return whole
    return tuple(_join(parts))


def _letters(words: Mapping[str, int]) -> int:
    return sum(len(word) * count for word, count in words.items())


def _parts(*, same: Sequence[str] = (), removed: Sequence[str] = (), added: Sequence[str] = ()) -> Iterator[Part]:
    told: tuple[tuple[Kind, Sequence[str]], ...] = (("same", same), ("removed", removed), ("added", added))
    for kind, words in told:
        if text := "".join(words):
            yield Part(kind, text)


def _join(parts: Sequence[Part]) -> Iterator[Part]:
    """Join neighbouring changed words, and the white space between them, into one change."""

    def changed(place: int) -> bool:
        part = parts[place]
        blank = part.kind == "same" and part.text.isspace() and 0 < place < len(parts) - 1
        return blank or part.kind != "same"

    for is_changed, places in groupby(range(len(parts)), changed):
        group = [parts[place] for place in places]
        if is_changed:
            removed = [part.text for part in group if part.kind != "added"]
            added = [part.text for part in group if part.kind != "removed"]
            yield from _parts(removed=removed, added=added)
        else:
            yield from group


def shorten(parts: Sequence[tuple[Kind, str]], around: int) -> Iterator[tuple[Kind, str]]:
    """Shorten long unchanged text for display: keep only `around` characters next to each change."""
    for place, (kind, text) in enumerate(parts):
        if kind == "same" and len(text) > 2 * around:
            begin, end = text[:around] if place else "", text[-around:] if place < len(parts) - 1 else ""
            yield kind, f"{begin} … {end}"
        else:
            yield kind, text


# Sequences ---------------------------------------------------------------------------------------------------------


def find_gaps(old: Sequence[str], new: Sequence[str], steps: StepBudget) -> list[Gap]:
    """Find the differences between two sequences."""
    alignment = _Alignment(old, new, steps)
    runs = sorted(alignment.run())
    ends = [(0, 0), *((a + length, c + length) for a, c, length in runs)]
    begins = [*((a, c) for a, c, _ in runs), (len(old), len(new))]
    found = (Gap(a, b, c, d) for (a, c), (b, d) in zip(ends, begins, strict=True))
    return [gap for gap in found if gap.a < gap.b or gap.c < gap.d]


class _Alignment:
    """Finds the parts that two sequences have in common, each as (position in old, position in new, length)."""

    def __init__(self, old: Sequence[str], new: Sequence[str], steps: StepBudget) -> None:
        numbers: dict[str, int] = {}
        self._old = [numbers.setdefault(one, len(numbers)) for one in old]
        self._new = [numbers.setdefault(one, len(numbers)) for one in new]
        self._steps = steps
        self._runs: list[tuple[int, int, int]] = []

    def run(self) -> list[tuple[int, int, int]]:
        gaps = [Gap(0, len(self._old), 0, len(self._new))]
        for _ in range(_LEVELS):
            gaps = [smaller for gap in gaps for smaller in self._divide(self._trim(gap))]
        for gap in map(self._trim, gaps):
            self._runs += [(gap.a + x, gap.c + y, length) for x, y, length in self._fewest_edits(gap)]
        return self._runs

    def _trim(self, gap: Gap) -> Gap:
        """Remove the elements that match at the start and end of a gap, and record them as matching runs."""
        a, b, c, d = gap.a, gap.b, gap.c, gap.d
        old, new = self._old, self._new
        while a < b and c < d and old[a] == new[c]:
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
        if a > gap.a:
            self._runs.append((gap.a, gap.c, a - gap.a))
        if b < gap.b:
            self._runs.append((b, d, gap.b - b))
        return Gap(a, b, c, d)

    def _divide(self, gap: Gap) -> list[Gap]:
        """Split a gap at elements that occur exactly once in each text and are in the same order in both."""
        if gap.a == gap.b or gap.c == gap.d:
            return []
        counted = Counter(self._old[gap.a : gap.b]), Counter(self._new[gap.c : gap.d])
        places = {self._new[place]: place for place in range(gap.c, gap.d)}
        both = [
            (place, places[one])
            for place, one in enumerate(self._old[gap.a : gap.b], gap.a)
            if counted[0][one] == counted[1][one] == 1
        ]
        anchors = _longest_order(both)
        self._runs += [(a, c, 1) for a, c in anchors]
        ends = [(gap.a - 1, gap.c - 1), *anchors, (gap.b, gap.d)]
        return [Gap(a + 1, b, c + 1, d) for (a, c), (b, d) in pairwise(ends) if a + 1 < b and c + 1 < d]

    def _fewest_edits(self, gap: Gap) -> list[tuple[int, int, int]]:
        """Find the unchanged parts with Myers's greedy algorithm. Returns no parts if no steps remain."""
        old, new = self._old[gap.a : gap.b], self._new[gap.c : gap.d]
        if not old or not new:
            return []
        reached, history = {1: 0}, list[dict[int, int]]()
        for edits in range(_MOST_EDITS):
            history.append(dict(reached))
            for diagonal in range(-edits, edits + 1, 2):
                down = _goes_down(reached, diagonal, edits)
                x = start = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
                while x < len(old) and 0 <= x - diagonal < len(new) and old[x] == new[x - diagonal]:
                    x += 1
                reached[diagonal] = x
                self._steps.left -= x - start + 1
                if x >= len(old) and x - diagonal >= len(new):
                    return _walk_back(history, len(old), len(new))
            self._steps.left -= len(reached)
            if self._steps.left < 0:
                break
        return []


def _goes_down(reached: Mapping[int, int], diagonal: int, edits: int) -> bool:
    """Whether the furthest-reaching path to a diagonal ends with an insertion. Otherwise, it ends with a deletion."""
    if abs(diagonal) == edits:
        return diagonal == -edits
    return reached.get(diagonal - 1, -1) < reached.get(diagonal + 1, -1)


def _walk_back(history: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int, int]]:
    runs: list[tuple[int, int, int]] = []
    for edits in range(len(history) - 1, -1, -1):
        reached, diagonal = history[edits], x - y
        down = _goes_down(reached, diagonal, edits)
        before = diagonal + 1 if down else diagonal - 1
        from_x = reached[before]
        start = from_x if down else from_x + 1
        if x > start:
            runs.append((start, start - diagonal, x - start))
        x, y = from_x, from_x - before
    return [run for run in runs if run[2] > 0]


def _longest_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs in which the second value increases.

    `pairs` must be sorted by the first value.
    """
    tails: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for place, (_, second) in enumerate(pairs):
        at = bisect_left(tails, second)
        before.append(last[at - 1] if at else None)
        tails[at : at + 1] = [second]
        last[at : at + 1] = [place]
    chosen: list[tuple[int, int]] = []
    step = last[-1] if last else None
    while step is not None:
        chosen.append(pairs[step])
        step = before[step]
    return chosen[::-1]


def _offsets(pieces: Sequence[str]) -> list[int]:
    return [0, *accumulate(map(len, pieces))]
