"""A recognised line of text with its box."""

from __future__ import annotations

import re
from dataclasses import dataclass

from octavo.extract.extracted import Box

_SOME_LETTERS = 2
_UPRIGHT = 1.5
# The height of a box around letters of size 1: the x-height, ascenders and descenders, and a margin.
_SMALL, _ABOVE, _BELOW, _MARGIN = 0.48, 0.25, 0.21, 0.32
_REACHES_BELOW = re.compile(r"[gjpqyQ,;()\[\]{}|/@]")
_STAYS_SMALL = re.compile(r"[acemnorsuvwxzgpqy.,;:\s-]+")


@dataclass(frozen=True, slots=True)
class Line:
    """A recognised line. `box` is in pixels of the image; `score` is the confidence of the engine, from 0 to 1."""

    text: str
    box: Box
    score: float = 1.0

    @property
    def height(self) -> float:
        return self.box.bottom - self.box.top

    @property
    def width(self) -> float:
        return self.box.right - self.box.left

    @property
    def size(self) -> float:
        """The font size, from the height of the box and from whether the text has ascenders or descenders."""
        extent = _SMALL + _MARGIN
        extent += 0 if _STAYS_SMALL.fullmatch(self.text) else _ABOVE
        extent += _BELOW if self._reaches_below else 0
        return (self.width if self.is_vertical else self.height) / extent

    @property
    def base(self) -> float:
        """The vertical position of the baseline, computed so that it does not depend on descenders."""
        return self.box.bottom - self.size * (_MARGIN / 2 + (_BELOW if self._reaches_below else 0))

    @property
    def _reaches_below(self) -> bool:
        return _REACHES_BELOW.search(self.text) is not None or not self.text.isascii()

    @property
    def is_vertical(self) -> bool:
        return len(self.text) >= _SOME_LETTERS and self.height > _UPRIGHT * self.width

    @property
    def middle(self) -> float:
        return (self.box.top + self.box.bottom) / 2


def around(lines: list[Line]) -> Box:
    """The smallest box that contains all of these boxes."""
    return Box(
        min(line.box.left for line in lines),
        min(line.box.top for line in lines),
        max(line.box.right for line in lines),
        max(line.box.bottom for line in lines),
    )
