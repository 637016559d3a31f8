"""Cuts a section that is too long for one chunk: between blocks, otherwise after a sentence or line, or at a space."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

from octavo.extract.chunks.sections import IDEOGRAPH, LONGEST, SHORTEST, BlockLike, Measure, Section

# The approximate size of the chunks that a long section is cut into.
_TYPICAL = 400

_WHOLE = frozenset({"table", "code"})
_IN_LINES = _WHOLE | {"list"}
_LINE = re.compile(r"\n\s*")
# The end of a line, or of a sentence including closing quotes and brackets.
_CLOSING = "\"'\u201d\u2019\u00bb)\\]*_"
_CLOSING_WIDE = "\u300d\u300f\u201d\u2019\uff09"
_PAUSE = re.compile(rf"\n\s*|[.!?\u2026][{_CLOSING}]*\s+(?=[^a-z\s])|[\u3002\uff01\uff1f\uff61][{_CLOSING_WIDE}]*\s*")


class Window(NamedTuple):
    """The range of units in which a chunk can end, and the preferred end."""

    low: int
    high: int
    target: int


class Cutter:
    """Cuts sections of a text, preferably between blocks."""

    def __init__(self, measure: Measure, blocks: Sequence[BlockLike]) -> None:
        self._measure = measure
        self._blocks = blocks
        self._starts = [measure.unit_at(block.start) for block in blocks]

    def cut(self, section: Section) -> Iterator[tuple[int, int]]:
        """Cut a section into ranges of units, each with `SHORTEST` to `LONGEST` units.

        Tables and code listings can make a range shorter, because they are not split if they fit into one chunk.
        """
        start = section.start
        while section.end - start > LONGEST:
            end = self._best_end(start, section.end)
            yield start, end
            start = end
        yield start, section.end

    def _best_end(self, start: int, limit: int) -> int:
        left = limit - start
        window = Window(
            low=start + SHORTEST,
            high=min(start + LONGEST, limit - SHORTEST),
            target=start + left // ceil(left / _TYPICAL),
        )
        found = self._between_blocks(window) or self._at_pause(window) or self._at_word(window)
        return found or self._around_whole(start, window)

    def _between_blocks(self, window: Window) -> int | None:
        places = range(bisect_left(self._starts, window.low), bisect_right(self._starts, window.high))
        # A heading belongs to the text after it.
        units = [self._starts[place] for place in places if place and self._blocks[place - 1].kind != "heading"]
        return self._nearest(units, window)

    def _at_pause(self, window: Window) -> int | None:
        measure = self._measure
        patterns = (_LINE, _PAUSE) if self._block_at(window.target)[2] in _IN_LINES else (_PAUSE,)
        start, end = measure.start(window.low) - 1, measure.start(window.high) + 1
        for pattern in patterns:
            pauses = (measure.unit_at(pause.end()) for pause in pattern.finditer(measure.text, start, end))
            found = self._nearest(pauses, window)
            if found:
                return found
        return None

    def _at_word(self, window: Window) -> int | None:
        """The start of the word nearest to the target.

        If no word starts in the window, the nearest position before an ideograph or, failing that, before any
        character.
        """
        text, start = self._measure.text, self._measure.start
        tests: tuple[Callable[[int], bool], ...] = (
            self._measure.begins_word,
            lambda unit: IDEOGRAPH.match(text, start(unit)) is not None,
            lambda _: True,
        )
        units = range(window.low, window.high + 1)
        found = (self._nearest(filter(test, units), window) for test in tests)
        return next((unit for unit in found if unit), None)

    def _nearest(self, units: Iterable[int], window: Window) -> int | None:
        """The candidate nearest to the target, the first one if two are equally near.

        Candidates that split a table or code listing are skipped.
        """
        allowed = (unit for unit in units if window.low <= unit <= window.high)
        by_distance = sorted(allowed, key=lambda unit: abs(unit - window.target))
        return next((unit for unit in by_distance if not self._splits_whole(unit)), None)

    def _splits_whole(self, unit: int) -> bool:
        """Whether a cut before this unit would split a table or code listing that fits into one chunk."""
        start, end, kind = self._block_at(unit)
        return kind in _WHOLE and start < unit < end and end - start <= LONGEST

    def _block_at(self, unit: int) -> tuple[int, int, str]:
        place = bisect_right(self._starts, unit) - 1
        if place < 0:
            return 0, 0, ""
        return self._starts[place], self._measure.unit_at(self._blocks[place].end), self._blocks[place].kind

    def _around_whole(self, start: int, window: Window) -> int:
        """Cut next to the table or code listing that fills the window.

        The cut is after the listing or table if the chunk can contain it, otherwise before it, even if the chunk
        becomes short.
        """
        whole_start, whole_end, _ = self._block_at(window.low)
        if whole_end - start <= LONGEST:
            return whole_end
        return whole_start if whole_start > start else window.target  # blocks may overlap, although they should not
