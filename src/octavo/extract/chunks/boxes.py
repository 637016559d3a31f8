"""Where a chunk is on its pages: the boxes of its blocks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple, Protocol

_MOST_MORE = 1.3
_MOST_BETWEEN = 18.0  # points: a line of text and the space above it


class BoxedLike(Protocol):
    """The fields of a block that this module needs; `octavo.extract.extracted.Block` provides them."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def page(self) -> int | None: ...
    @property
    def box(self) -> tuple[float, float, float, float] | None: ...


class PageBox(NamedTuple):
    """An area of a page, in points from its upper left corner."""

    page: int
    left: float
    top: float
    right: float
    bottom: float

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)

    def around(self, other: PageBox) -> PageBox:
        """The smallest box that contains this box and `other`."""
        left, top = min(self.left, other.left), min(self.top, other.top)
        return PageBox(self.page, left, top, max(self.right, other.right), max(self.bottom, other.bottom))


class BoxFinder:
    """Finds the boxes that a range of text covers on its pages."""

    def __init__(self, blocks: Iterable[BoxedLike]) -> None:
        self._blocks = sorted(_placed(blocks), key=lambda placed: placed[0])
        self._starts = [start for start, _, _ in self._blocks]

    def boxes_in(self, start: int, end: int) -> tuple[PageBox, ...]:
        """The boxes of all blocks that overlap this range of text. Adjacent boxes are joined.

        If a block is only partly in the range, its whole box is used.
        """
        first, last = max(bisect_right(self._starts, start) - 1, 0), bisect_left(self._starts, end)
        return tuple(_join(box for _, until, box in self._blocks[first:last] if until > start))


def _join(boxes: Iterable[PageBox]) -> list[PageBox]:
    """Join adjacent boxes, unless the joined box would be much larger than the two boxes together."""
    joined: list[PageBox] = []
    for box in boxes:
        whole = box
        while near := next((one for one in joined if _are_adjacent(one, whole)), None):
            joined.remove(near)
            whole = near.around(whole)
        joined.append(whole)
    return sorted(joined, key=lambda one: (one.page, one.top, one.left))


def _are_adjacent(one: PageBox, other: PageBox) -> bool:
    across = max(one.left, other.left) - min(one.right, other.right)
    down = max(one.top, other.top) - min(one.bottom, other.bottom)
    if one.page != other.page or max(across, down) > _MOST_BETWEEN:
        return False
    return one.around(other).area <= _MOST_MORE * (one.area + other.area)


def _placed(blocks: Iterable[BoxedLike]) -> Iterable[tuple[int, int, PageBox]]:
    for block in blocks:
        if block.page is not None and block.box is not None:
            yield block.start, block.end, PageBox(block.page, *(round(side, 1) for side in block.box))
