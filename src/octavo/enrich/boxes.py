"""Where on its pages a piece of text stands: the boxes of the blocks that it is made of."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple, Protocol


class BoxedLike(Protocol):
    """What is read of a block. `octavo.extract.contract.Block` is one."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def page(self) -> int | None: ...
    @property
    def box(self) -> tuple[float, float, float, float] | None: ...


class PageBox(NamedTuple):
    """A place on a page, in points from its upper left corner."""

    page: int
    left: float
    top: float
    right: float
    bottom: float


class BoxFinder:
    """The blocks of one document that have a place, in the order of the text."""

    def __init__(self, blocks: Iterable[BoxedLike]) -> None:
        self._blocks = sorted(_placed(blocks), key=lambda placed: placed[0])
        self._starts = [start for start, _, _ in self._blocks]

    def boxes_in(self, start: int, end: int) -> tuple[PageBox, ...]:
        """Of all blocks that these characters touch; a block that is cut has its whole box."""
        first, last = max(bisect_right(self._starts, start) - 1, 0), bisect_left(self._starts, end)
        return tuple(box for _, until, box in self._blocks[first:last] if until > start)


def _placed(blocks: Iterable[BoxedLike]) -> Iterable[tuple[int, int, PageBox]]:
    for block in blocks:
        if block.page is not None and block.box is not None:
            yield block.start, block.end, PageBox(block.page, *(round(side, 1) for side in block.box))
