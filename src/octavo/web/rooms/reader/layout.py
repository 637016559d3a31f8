"""Arranges blocks on pages and in chunks, with anchors for links, and places chunks on page pictures."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from octavo.web.markdown.render import Block
from octavo.web.rooms.reader.windows import Plan, Sheet

_WORD = re.compile(r"\w")
_HEADING = re.compile(r"<(h[2-6])>")


@dataclass(frozen=True, slots=True)
class ChunkPosition:
    """A stored chunk of the document. `seconds` is the time at which it starts in a recording.

    `boxes` are its positions on pages, each as page, left, top, right and bottom, in points. `described`: it has
    themes, concepts, tone, importance and a summary.
    """

    id: UUID
    start: int
    end: int
    seconds: float | None = None
    boxes: Sequence[Sequence[float]] = ()
    described: bool = False


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """A block as shown. `anchors` are the ids of chunks that start inside it."""

    start: int
    end: int
    html: str
    anchors: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkBlocks:
    """Adjacent blocks of one chunk. `begins`: whether the chunk starts here and has its anchor here."""

    place: ChunkPosition | None
    begins: bool
    blocks: list[ShownBlock] = field(default_factory=list[ShownBlock])


@dataclass(frozen=True, slots=True)
class Leaf:
    """A page or, if the text has no pages, a whole window."""

    sheet: Sheet | None
    start: int
    chunks: list[ChunkBlocks] = field(default_factory=list[ChunkBlocks])


def arrange(
    blocks: Sequence[Block],
    text: str,
    start: int,
    *,
    breaks: Sequence[tuple[int, Sheet]] = (),
    places: Sequence[ChunkPosition] = (),
    headings: Mapping[int, int | None] | None = None,
) -> list[Leaf]:
    """Group the blocks of one window of the text into pages.

    `text` is the Markdown of the window, which begins at `start` in the document. `headings` maps positions to heading
    numbers.
    """
    leaves = [Leaf(None, start)]
    begins = [_lead(place.start - start, text) + start for place in places]
    waiting = list(reversed(breaks))
    anchored = {place.id for place, begin in zip(places, begins, strict=True) if begin < start}
    for block in blocks:
        while waiting and waiting[-1][0] <= block.start:
            at, sheet = waiting.pop()
            leaves.append(Leaf(sheet, at))
        if block.html:
            _add(leaves[-1], _numbered(block, (headings or {}).get(block.start)), places, begins, anchored)
    leaves += [Leaf(sheet, at) for at, sheet in reversed(waiting)]
    return [leaf for leaf in leaves if leaf.sheet or leaf.chunks]


def _lead(position: int, text: str) -> int:
    """Move the start of a chunk to the start of its line, if only Markdown syntax precedes the chunk there."""
    line = text.rfind("\n", 0, max(position, 0)) + 1
    return line if position > 0 and not _WORD.search(text, line, position) else position


def _numbered(block: Block, heading: int | None) -> Block:
    if heading is None or block.level is None:
        return block
    return Block(block.start, block.end, _HEADING.sub(rf'<\1 id="h-{heading}">', block.html, count=1), block.level)


def _add(leaf: Leaf, block: Block, places: Sequence[ChunkPosition], begins: Sequence[int], anchored: set[UUID]) -> None:
    """Add a block to the chunk that it belongs to. Each chunk gets one anchor, at its first visible block."""
    now = bisect_right(begins, block.start)
    place = places[now - 1] if now else None
    if not leaf.chunks or leaf.chunks[-1].place != place:
        leaf.chunks.append(ChunkBlocks(place, begins=place is not None and place.id not in anchored))
    inside = tuple(one.id for one in places[now : bisect_left(begins, block.end)])
    leaf.chunks[-1].blocks.append(ShownBlock(block.start, block.end, block.html, inside))
    anchored.update(inside, [place.id] if place else [])


WHOLE = 10_000
FALLBACK_SIZE = (3, 4)
# A taller picture would leave no space for the outline below it.
MOST_HEIGHT = 1.5


class Mark(NamedTuple):
    """A box on a page, in ten-thousandths of the page size."""

    page: int
    left: int
    top: int
    right: int
    bottom: int


def marks_of(boxes: Iterable[Sequence[float]], plan: Plan) -> list[Mark]:
    """Convert chunk boxes (page, left, top, right, bottom, in points) to marks.

    Boxes on pages of unknown size are dropped.
    """
    return [mark for box in boxes if (mark := _mark(box, plan.sheet_of(int(box[0]))))]


def _mark(box: Sequence[float], sheet: Sheet | None) -> Mark | None:
    if sheet is None or not sheet.width or not sheet.height:
        return None
    page, left, top, right, bottom = box
    across, down = WHOLE / sheet.width, WHOLE / sheet.height
    return Mark(int(page), round(left * across), round(top * down), round(right * across), round(bottom * down))


def most_common_size(sheets: Iterable[Sheet]) -> tuple[int, int]:
    """The most common page size.

    The picture frame has this size, so that the layout does not shift from page to page.
    """
    sizes = Counter((round(one.width), round(one.height)) for one in sheets if one.width and one.height)
    width, height = sizes.most_common(1)[0][0] if sizes else FALLBACK_SIZE
    return max(width, 1), max(1, min(height, round(width * MOST_HEIGHT)))
