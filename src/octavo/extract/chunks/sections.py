"""Divides a document into sections at its headings, and makes chunks of the right length from the sections.

Short sections are merged. A long section is split between blocks if possible. Otherwise it is split after a sentence or
a line, or at a space. Lengths are counted in words.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, Protocol

from octavo.core.texts import FEW_CHARACTERS, ONE_CHARACTER

_SIGNS = "\u3001-\u303f\uff01-\uff65"  # scripts without spaces; a chunk can end after each of their characters
# Chunk sizes are counted in these units. Punctuation counts too, and text without spaces counts by its length.
_UNIT = re.compile(
    f"[{ONE_CHARACTER}{_SIGNS}]|[{FEW_CHARACTERS}]{{1,5}}|[^\\s{ONE_CHARACTER}{FEW_CHARACTERS}{_SIGNS}]{{1,30}}"
)

IDEOGRAPH = re.compile(f"[{ONE_CHARACTER}{FEW_CHARACTERS}]")


class Measure:
    """A text divided into units, by which its length is measured. A unit is a word, or a part of a very long word."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = array("Q", (unit.start() for unit in _UNIT.finditer(text)))

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, unit: int) -> int:
        """Return the offset at which the unit with this index starts.

        Returns the length of the text if there is no such unit.
        """
        return self._starts[unit] if unit < len(self._starts) else len(self.text)

    def unit_at(self, position: int) -> int:
        """Return the index of the first unit that begins at or after `position`."""
        return bisect_left(self._starts, position)

    def begins_word(self, unit: int) -> bool:
        start = self.start(unit)
        return start == 0 or self.text[start - 1].isspace()


SHORTEST = 200
LONGEST = 500
# A shorter section is treated as an introduction to the next one, or as the rest of the previous one.
FRAGMENT = 50
_MAIN_LEVEL = 2
_MOST_TITLE = 200


class BlockLike(Protocol):
    """Protocol for a block of text. `octavo.extract.extracted.Block` implements it."""

    @property
    def kind(self) -> str: ...
    @property
    def level(self) -> int | None: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Section:
    """The text from one heading to the next. Text before the first heading has level 0.

    `start` and `end` are indexes of units, not of characters.
    """

    start: int
    end: int
    level: int
    path: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return self.end - self.start


def read_sections(measure: Measure, blocks: Sequence[BlockLike]) -> Iterator[Section]:
    """Divide the text at its headings. Consecutive headings without text between them belong to the same section."""
    path: list[tuple[int, str]] = []
    start, level, headings_end = 0, 0, 0
    for block in blocks:
        if block.kind != "heading":
            continue
        unit, own_level = measure.unit_at(block.start), block.level or 1
        if unit > headings_end:
            yield Section(start, unit, level, tuple(title for _, title in path))
            start, level = unit, own_level
        level = min(level, own_level) if path else own_level
        path = [(above, title) for above, title in path if above < own_level]
        path.append((own_level, block.text[:_MOST_TITLE]))
        headings_end = max(measure.unit_at(block.end), unit)
    if start < len(measure):
        yield Section(start, len(measure), level, tuple(title for _, title in path))


def merge_sections(sections: Sequence[Section]) -> Iterator[Section]:
    """Join sections that are too short for a chunk with their neighbours.

    A short section is joined with the next one, even if the next one starts with a main heading. Otherwise, a document
    with many short sections would have mostly short chunks.
    """
    current: Section | None = None
    for place, section in enumerate(sections):
        following = sections[place + 1] if place + 1 < len(sections) else None
        if current and _belongs(current, section, following):
            level = section.level if current.size < FRAGMENT else min(current.level, section.level)
            current = Section(current.start, section.end, level, current.path)
            continue
        if current:
            yield current
        current = section
    if current:
        yield current


def _belongs(current: Section, section: Section, following: Section | None) -> bool:
    if current.size < SHORTEST:
        return True
    if section.level <= _MAIN_LEVEL or section.level < current.level or current.size + section.size > LONGEST:
        return False
    return _is_remnant(section, following)


def _is_remnant(section: Section, following: Section | None) -> bool:
    """Whether a section is too short for a chunk and is not followed by a subsection."""
    return section.size < FRAGMENT and (following is None or following.level <= section.level)


# Long sections ------------------------------------------------------------------------------------------------------

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
    """The range in which a chunk can end: its earliest, latest and preferred end, as indexes of units."""

    low: int
    high: int
    target: int


class Cutter:
    """Splits a section of a text into chunks, preferably between blocks."""

    def __init__(self, measure: Measure, blocks: Sequence[BlockLike]) -> None:
        self._measure = measure
        self._blocks = blocks
        self._starts = [measure.unit_at(block.start) for block in blocks]

    def cut(self, section: Section) -> Iterator[tuple[int, int]]:
        """Split a section into ranges of `SHORTEST` to `LONGEST` words.

        A range can be shorter, because a table or code listing that fits into one chunk is not split.
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
        """Return the start of the word nearest to the preferred end of the chunk.

        If no word starts in the allowed range (`window`), return the nearest position before an ideograph. If there is
        no ideograph either, return the nearest position before any character.
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
        """Choose where to end a chunk: return the candidate nearest to the preferred end, or the first one if two are
        equally near. Candidates are skipped if they are outside `window` or would split a table or code listing.
        Returns None if no candidate is left.
        """
        allowed = (unit for unit in units if window.low <= unit <= window.high)
        by_distance = sorted(allowed, key=lambda unit: abs(unit - window.target))
        return next((unit for unit in by_distance if not self._splits_whole(unit)), None)

    def _splits_whole(self, unit: int) -> bool:
        """Whether a split before this word would divide a table or code listing that fits into one chunk."""
        start, end, kind = self._block_at(unit)
        return kind in _WHOLE and start < unit < end and end - start <= LONGEST

    def _block_at(self, unit: int) -> tuple[int, int, str]:
        place = bisect_right(self._starts, unit) - 1
        if place < 0:
            return 0, 0, ""
        return self._starts[place], self._measure.unit_at(self._blocks[place].end), self._blocks[place].kind

    def _around_whole(self, start: int, window: Window) -> int:
        """Return where to end a chunk that would otherwise split a table or code listing.

        The chunk ends after the table or listing. If that would make the chunk too long, it ends before the table or
        listing, even if it is then very short. Called only if the chunk cannot end anywhere else.
        """
        whole_start, whole_end, _ = self._block_at(window.low)
        if whole_end - start <= LONGEST:
            return whole_end
        return whole_start if whole_start > start else window.target  # blocks may overlap, although they should not
