"""Finds running headers and footers: chapter titles, names and page numbers repeated on many pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from octavo.extract.extracted import BlockKind, RegionKind
from octavo.extract.pdf.page_batches import PageBlock, PageText

_EDGE = 0.12  # of the page's height
_LEAST_PAGES = 3
# Of the pages from its first to its last occurrence. Left and right pages have different headers, and the first page
# of a chapter has none.
_LEAST_SHARE = 0.25
_LARGE = 1.3  # as a multiple of the body text; a title on every slide is not a running header
_MOST_CHARACTERS = 150
_DEEP = 3  # at most this many blocks from the edge
_TEXTS = frozenset({BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST})
_EDGES = frozenset({RegionKind.HEADER, RegionKind.FOOTER})
_NUMBERS = re.compile(r"\d+|\b[ivxlc]+\b")
_NO_WORDS = re.compile(r"[^\w#]+")


class Place(NamedTuple):
    """The place of a block: the index of its page, and the index of the block on that page."""

    page: int
    block: int


def running_blocks(pages: Sequence[PageText], body_size: float) -> set[Place]:
    """The running headers and footers: blocks that are repeated at the edge of many pages, ignoring numbers."""
    shown: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
    for index, page in enumerate(pages):
        for edge, block in _at_edges(page):
            found = page.blocks[block]
            if body_size and found.size > _LARGE * body_size:
                continue
            shown[edge, _pattern(found.text)].append(Place(index, block))
    running = {place for places in shown.values() if _is_running(places) for place in places}
    return running | {place for index, page in enumerate(pages) for place in _marked(index, page)}


def _marked(index: int, page: PageText) -> Iterator[Place]:
    """The blocks that look like a header or footer on their own page, unless they are all of its text."""
    marked = [number for number, block in enumerate(page.blocks) if block.region in _EDGES]
    if len(marked) < len(page.blocks):
        yield from (Place(index, number) for number in marked)


def _at_edges(page: PageText) -> Iterator[tuple[str, int]]:
    """Yield the blocks near the upper and lower edge.

    Yields nothing if the page has no other blocks, because the page would then be empty without them.
    """
    if not page.height:
        return
    heads = [index for index, block in enumerate(page.blocks) if _is_above(block, page.height * _EDGE)]
    feet = [index for index, block in enumerate(page.blocks) if _is_below(block, page.height * (1 - _EDGE))]
    if len(heads) + len(feet) == len(page.blocks):
        return
    by_height = sorted(heads, key=lambda index: _top(page.blocks[index]))
    yield from (("head", index) for index in by_height[:_DEEP])
    by_height = sorted(feet, key=lambda index: -_top(page.blocks[index]))
    yield from (("foot", index) for index in by_height[:_DEEP])


def _is_above(block: PageBlock, border: float) -> bool:
    return _may_run(block) and block.box is not None and block.box.bottom <= border


def _is_below(block: PageBlock, border: float) -> bool:
    return _may_run(block) and block.box is not None and block.box.top >= border


def _may_run(block: PageBlock) -> bool:
    return block.kind in _TEXTS and len(block.text) <= _MOST_CHARACTERS


def _top(block: PageBlock) -> float:
    return block.box.top if block.box else 0.0


def _pattern(text: str) -> str:
    return _NO_WORDS.sub(" ", _NUMBERS.sub("#", text.lower())).strip()


def _is_running(places: Sequence[Place]) -> bool:
    pages = {place.page for place in places}
    span = max(pages) - min(pages) + 1
    return len(pages) >= _LEAST_PAGES and len(pages) >= _LEAST_SHARE * span
