"""Counts words, divides a document at its headings into sections, and merges those that are too short for a chunk."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from octavo.core.languages import FEW_CHARACTERS, ONE_CHARACTER

_SIGNS = "\u3001-\u303f\uff01-\uff65"  # of scripts without spaces; a chunk can end after each
# Chunk sizes are counted in these units. Punctuation counts too, and text without spaces counts by its length.
_UNIT = re.compile(
    f"[{ONE_CHARACTER}{_SIGNS}]|[{FEW_CHARACTERS}]{{1,5}}|[^\\s{ONE_CHARACTER}{FEW_CHARACTERS}{_SIGNS}]{{1,30}}"
)

IDEOGRAPH = re.compile(f"[{ONE_CHARACTER}{FEW_CHARACTERS}]")


class Measure:
    """A text with its units. A unit is a word, or a part of a run of characters that is too long to be a word."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = array("Q", (unit.start() for unit in _UNIT.finditer(text)))

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, unit: int) -> int:
        """The offset at which a unit starts. For an index after the last unit, the end of the text."""
        return self._starts[unit] if unit < len(self._starts) else len(self.text)

    def unit_at(self, position: int) -> int:
        """The first unit that begins at or after `position`."""
        return bisect_left(self._starts, position)

    def begins_word(self, unit: int) -> bool:
        start = self.start(unit)
        return start == 0 or self.text[start - 1].isspace()


SHORTEST = 200
LONGEST = 500
# A shorter section counts as an introduction of the next one, or as a remnant of the one before.
FRAGMENT = 50
_MAIN_LEVEL = 2
_MOST_TITLE = 200


class BlockLike(Protocol):
    """The fields of a block that this module needs; `octavo.extract.extracted.Block` provides them."""

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
    """The text from one heading to the next, in units. Text before the first heading has level 0."""

    start: int
    end: int
    level: int
    path: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return self.end - self.start


def read_sections(measure: Measure, blocks: Sequence[BlockLike]) -> Iterator[Section]:
    """Divide the text at its headings. Headings without text between them start one section together."""
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
    """Join a section that is too short for a chunk with the next one, even across a main heading.

    Otherwise a document with many short sections has more short chunks than long ones.
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
    """Whether the section is too short for a chunk and does not introduce subsections."""
    return section.size < FRAGMENT and (following is None or following.level <= section.level)
