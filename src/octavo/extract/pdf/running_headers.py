"""Finds running headers and footers, other lines that are set apart at the edges of a page, and footnotes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import NamedTuple

from octavo.extract.extracted import BlockKind, RegionKind
from octavo.extract.pdf.columns import Band, bands_of
from octavo.extract.pdf.letters import AS_RAISED
from octavo.extract.pdf.lines import Segment
from octavo.extract.pdf.page_batches import PageBlock, PageText
from octavo.extract.pdf.paragraphs import Part

_VERY_EDGE = 0.09
_PRINTED = 0.05
_FAR_OUT = 0.07
_MOST_PAGES = 0.6
_TWO = 2  # pages
_SAME_HEIGHT = 3.0  # points
_EDGE = 0.12  # as a share of the page height
_WIDE_EDGE = 0.135
_MARGIN = 0.2  # as a share of the page height, at most
_MOST_EDGE_BANDS = 2
_LEAST_PAGES = 3
# The share of pages, between its first and last occurrence, on which a running header appears. It is low, because left
# and right pages have different headers, and the first page of a chapter has none.
_LEAST_SHARE = 0.25
_LARGE = 1.3  # as a multiple of the size of the body text; a title on every slide is not a running header
_MOST_CHARACTERS = 150
_DEEP = 3  # at most this many blocks from the edge
_TEXTS = frozenset({BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST})
_EDGES = frozenset({RegionKind.HEADER, RegionKind.FOOTER})
_NUMBERS = re.compile(r"\d+|\b[ivxlc]+\b")
NOTE = re.compile(r"(\d{1,2}|[*†‡§¶]{1,2})[.)]?\s?(?=[^\W\d_]|[\"\u201c\u2018(])")
_GLUED_NOTE = re.compile(r"\A\d{1,2}(?=[^\W\d_])")
PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|seite|p\.|pagina|página|стр\.)\s*)?(?:(?:[A-Z]-?)?\d{1,4}(?:\s?-\s?\d{1,4})?|[ivxlc]{1,7})(?:\s*(?:/|of|von|de)\s*\d{1,4})?\W*",
    re.IGNORECASE,
)
TYPED_RULE = re.compile(r"_{15,}")
_NUMBER_AT_END = re.compile(r"\A\s*(\d{1,4})\s+(?=\D)|(?<=\D)\s(\d{1,4})\s*\Z")
_LEAST_JOINED = 8  # letters of a header that was joined with the text below it
_SMALL_LETTERS = 0.93  # as a multiple of the size of the body text
_NO_WORDS = re.compile(r"[^\w#]+")


class Place(NamedTuple):
    """The position of a block: the index of its page, and the index of the block on that page."""

    page: int
    block: int


def running_blocks(pages: Sequence[PageText], body_size: float) -> set[Place]:
    """Find the running headers and footers. Most of them recur at the edge of many pages and differ only in numbers."""
    found_at: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
    for index, page in enumerate(pages):
        for edge, block in _at_edges(page):
            found = page.blocks[block]
            if body_size and found.size > _LARGE * body_size and not _is_far_out(page, found):
                continue
            found_at[edge, _pattern(found.text)].append(Place(index, block))
    inner = _inner_texts(pages, {place for places in found_at.values() for place in places})
    shown = {key: places for key, places in found_at.items() if inner[key[1]] < len(places)}
    running = {place for places in shown.values() if _is_running(places) for place in places}
    if len(pages) == _TWO:
        running |= {place for places in shown.values() if _is_printed(pages, places) for place in places}
    running |= {Place(index, block) for index, page in enumerate(pages) for block in _repeating(page)}
    titles = _at_same_height(pages, body_size)
    counts = Counter(_pattern(pages[place.page].blocks[place.block].text) for place in titles)
    labels = {text for text, count in counts.items() if inner[text] >= count > 1}
    running |= {place for place in titles if _pattern(pages[place.page].blocks[place.block].text) not in labels}
    running |= _repeated_pictures(pages) | _with_page_numbers(pages, body_size)
    return running | {place for index, page in enumerate(pages) for place in _marked(index, page)}


def _inner_texts(pages: Sequence[PageText], edges: Collection[Place]) -> Counter[str]:
    """Count the texts that are not at the edges of pages. A label that recurs inside pages is not a running header."""
    return Counter(
        _pattern(block.text)
        for index, page in enumerate(pages)
        for number, block in enumerate(page.blocks)
        if block.lines == 1 and _may_run(block) and Place(index, number) not in edges
    )


def _is_far_out(page: PageText, block: PageBlock) -> bool:
    """Whether a block is a single line at the very edge of the page.

    Such a line can be a running header even if its letters are large.
    """
    height = page.height or 0.0
    return block.lines == 1 and (_is_above(block, _FAR_OUT * height) or _is_below(block, (1 - _FAR_OUT) * height))


def _at_same_height(pages: Sequence[PageText], body_size: float) -> set[Place]:
    """Find the section titles that are printed at the top of the pages.

    They are lines at the very top, with white space below them, and at the same height on most pages.
    """
    found: defaultdict[int, list[Place]] = defaultdict(list)
    for index, page in enumerate(pages):
        placed = sorted((_top(block), number) for number, block in enumerate(page.blocks) if block.box)
        for (top, number), (below, _) in list(pairwise(placed))[:1]:
            block = page.blocks[number]
            is_apart = block.box is not None and below - block.box.bottom > block.box.bottom - block.box.top
            if is_apart and block.size <= _LARGE * body_size and _is_far_out(page, block):
                found[round(top / _SAME_HEIGHT)].append(Place(index, number))
    least = max(_LEAST_PAGES, _MOST_PAGES * len(pages))
    return {place for places in found.values() if len(places) >= least for place in places}


def _with_page_numbers(pages: Sequence[PageText], body_size: float) -> set[Place]:
    """Find running headers and footers that contain the page number.

    They are the first or last lines of several pages, at the same height, with numbers that increase from page to page.
    Their other words, such as section titles, can differ.
    """
    found: defaultdict[tuple[int, int], list[Place]] = defaultdict(list)
    for index, page in enumerate(pages):
        placed = sorted((_top(block), number) for number, block in enumerate(page.blocks) if block.box)
        for top, number in (placed[0], placed[-1]) if len(placed) > _TWO else ():
            block = page.blocks[number]
            shown = _NUMBER_AT_END.search(block.text) if block.lines == 1 and block.size <= _LARGE * body_size else None
            if shown and (_is_above(block, _MARGIN * _height(page)) or _is_below(block, (1 - _MARGIN) * _height(page))):
                found[round(top), int(shown[1] or shown[2]) - page.number].append(Place(index, number))
    return {place for places in found.values() if len(places) >= _LEAST_PAGES for place in places}


def without_joined_headers(pages: Sequence[PageText], running: Collection[Place]) -> Sequence[PageText]:
    """Remove a running header that was joined with the paragraph below it.

    The same words must be a running header on other pages.
    """
    texts = {_NUMBER_AT_END.sub("", pages[place.page].blocks[place.block].text).strip() for place in running}
    texts = {text for text in texts if len(text) >= _LEAST_JOINED and "\n" not in text}
    if not texts:
        return pages
    words = "|".join(sorted(map(re.escape, texts), key=len, reverse=True))
    joined = re.compile(rf"(?:\d{{1,4}}\s+(?:{words})|(?:{words})\s+\d{{1,4}}|(?:{words})(?=\n))\s+(?=\S)")
    return [_without_joined_header(page, joined) for page in pages]


def _without_joined_header(page: PageText, joined: re.Pattern[str]) -> PageText:
    first = min(
        (index for index, block in enumerate(page.blocks) if block.box),
        key=lambda i: _top(page.blocks[i]),
        default=None,
    )
    found = joined.match(page.blocks[first].text) if first is not None else None
    if first is None or found is None or page.blocks[first].kind not in _TEXTS:
        return page
    if _top(page.blocks[first]) > _MARGIN * _height(page):
        return page
    block = replace(page.blocks[first], text=page.blocks[first].text[found.end() :])
    return replace(page, blocks=(*page.blocks[:first], block, *page.blocks[first + 1 :]))


def _height(page: PageText) -> float:
    return page.height or 0.0


def _repeated_pictures(pages: Sequence[PageText]) -> set[Place]:
    """Find logos: pictures at the same position near the upper or lower edge of most pages.

    The first occurrence of a logo stays in the text.
    """
    found: defaultdict[tuple[int, ...], list[Place]] = defaultdict(list)
    for index, page in enumerate(pages):
        top, bottom = _MARGIN * (page.height or 0.0), (1 - _MARGIN) * (page.height or 0.0)
        for number, block in enumerate(page.blocks):
            if block.figure and block.box and (block.box.bottom < top or block.box.top > bottom):
                found[tuple(round(side / 4) for side in block.box)].append(Place(index, number))
    least = max(_LEAST_PAGES, _MOST_PAGES * len(pages))
    return {place for places in found.values() if len(places) >= least for place in places[1:]}


def _is_printed(pages: Sequence[PageText], places: Sequence[Place]) -> bool:
    """Whether a line is at the very edge of both pages of a two-page document.

    Web browsers print the URL and the date in such lines.
    """
    blocks = [(pages[place.page], pages[place.page].blocks[place.block]) for place in places]
    edges = [(page.height or 0.0, block) for page, block in blocks if block.lines == 1]
    far_out = [_is_above(block, _PRINTED * high) or _is_below(block, (1 - _PRINTED) * high) for high, block in edges]
    return len({place.page for place in places}) == _TWO and len(far_out) == len(places) and all(far_out)


def _repeating(page: PageText) -> Iterator[int]:
    """Yield the index of the page's first line if the page also contains the same text in larger letters.

    The first line is then a header that repeats the section title.
    """
    heads = [index for index, block in enumerate(page.blocks) if _is_above(block, (page.height or 0.0) * _EDGE)]
    for head in heads[:1]:
        block = page.blocks[head]
        larger = (one for one in page.blocks if one.size > block.size and one.kind in _TEXTS)
        if block.lines == 1 and any(one.text == block.text for one in larger):
            yield head


def _marked(index: int, page: PageText) -> Iterator[Place]:
    """Yield the positions of blocks that were already recognised as headers or footers.

    Yields nothing if the page has no other blocks.
    """
    marked = [number for number, block in enumerate(page.blocks) if block.region in _EDGES]
    if len(marked) < len(page.blocks):
        yield from (Place(index, number) for number in marked)


def _at_edges(page: PageText) -> Iterator[tuple[str, int]]:
    """Find the blocks at the top and bottom of the page that may be running headers or footers.

    Yields the name of the edge and the index of the block. Yields nothing if all blocks are near an edge, because
    removing them would leave the page empty.
    """
    if not page.height:
        return
    heads = [index for index, block in enumerate(page.blocks) if _is_above(block, page.height * _EDGE)]
    feet = [index for index, block in enumerate(page.blocks) if _is_below(block, page.height * (1 - _EDGE))]
    if len(heads) + len(feet) == len(page.blocks):
        return
    by_height = sorted(heads, key=lambda index: _top(page.blocks[index]))[:_DEEP]
    # A line below a caption, such as "[In thousands]", is repeated, but belongs to the table.
    before = takewhile(lambda index: page.blocks[index].region is not RegionKind.CAPTION, by_height)
    yield from (("head", index) for index in before)
    by_height = sorted(feet, key=lambda index: -_top(page.blocks[index]))
    yield from (("foot", index) for index in by_height[:_DEEP])
    yield from _outermost(page, {*heads, *feet})


def _outermost(page: PageText, near: set[int]) -> Iterator[tuple[str, int]]:
    """Yield the first and the last block of a page with wide margins.

    Each block is yielded with a name that contains its edge and height, so that only blocks at the same height are
    compared.
    """
    height = page.height or 0.0
    placed = sorted((_top(block), index) for index, block in enumerate(page.blocks) if block.box)
    if len(placed) < 3:  # noqa: PLR2004
        return
    for edge, (top, index) in (("head", placed[0]), ("foot", placed[-1])):
        block = page.blocks[index]
        is_outside = _is_above(block, _MARGIN * height) or _is_below(block, (1 - _MARGIN) * height)
        if index not in near and is_outside and block.lines == 1:
            yield f"{edge} {round(top / 3)}", index


def _is_above(block: PageBlock, border: float) -> bool:
    return _may_run(block) and block.box is not None and block.box.bottom <= border


def _is_below(block: PageBlock, border: float) -> bool:
    return _may_run(block) and block.box is not None and block.box.top >= border


def _may_run(block: PageBlock) -> bool:
    return block.kind in _TEXTS and len(block.text) <= _MOST_CHARACTERS


def _top(block: PageBlock) -> float:
    return block.box.top if block.box else 0.0


def _pattern(text: str) -> str:
    """Return a text for comparing header lines: the words of the line in alphabetical order, with "#" for numbers.

    Left and right pages often have the same words in a different order.
    """
    return " ".join(sorted(_NO_WORDS.sub(" ", _NUMBERS.sub("#", text.lower())).split()))


def _is_running(places: Sequence[Place]) -> bool:
    pages = {place.page for place in places}
    span = max(pages) - min(pages) + 1
    return len(pages) >= _LEAST_PAGES and len(pages) >= _LEAST_SHARE * span


def split_edges(segments: list[Segment], height: float) -> tuple[list[Segment], list[Segment], list[Segment]]:
    """Divide the text of a page into header, body and footer.

    White space must separate the header and footer from the body.
    """
    bands = list(bands_of(segments))
    first, last = _after_rule(bands, height), len(bands)
    for at in range(first, min(_MOST_EDGE_BANDS, last - 1)):
        if bands[at].bottom >= _edge(bands[at]) * height:
            break
        gap = bands[at + 1].top - bands[at].bottom
        if _is_apart(bands[at].bottom - bands[at].top, gap) or (at == 0 and _is_page_number(bands[at], height)):
            first = at + 1
    for at in range(len(bands) - 1, max(len(bands) - _MOST_EDGE_BANDS, first + 1) - 1, -1):
        if bands[at].top <= (1 - _edge(bands[at])) * height:
            break
        gap = bands[at].top - bands[at - 1].bottom
        is_last = at == len(bands) - 1
        if _is_apart(bands[at].bottom - bands[at].top, gap) or (is_last and _is_page_number(bands[at], height)):
            last = at
    return (
        [one for band in bands[:first] for one in band.segments],
        [one for band in bands[first:last] for one in band.segments],
        [one for band in bands[last:] for one in band.segments],
    )


def _after_rule(bands: Sequence[Band], height: float) -> int:
    """Return the number of header lines up to and including a row of underscores. Returns 0 if there is no such row."""
    for at, band in enumerate(bands[:_MOST_EDGE_BANDS]):
        is_rule = TYPED_RULE.fullmatch(" ".join(one.text for one in band.segments)) is not None
        if is_rule and band.bottom < _WIDE_EDGE * height and at < len(bands) - 1:
            return at + 1
    return 0


def _edge(band: Band) -> float:
    """Return the largest allowed distance of a header or footer line from the page edge, as a share of the page height.

    It is larger for page numbers.
    """
    return _MARGIN if _reads_as_number(band) else _WIDE_EDGE


def _reads_as_number(band: Band) -> bool:
    return PAGE_NUMBER.fullmatch(" ".join(one.text for one in band.segments)) is not None


def _is_page_number(band: Band, height: float) -> bool:
    """Whether a line at the very edge of the page is only a page number. Such a line may be close to the text."""
    far_out = band.bottom < _VERY_EDGE * height or band.top > (1 - _VERY_EDGE) * height
    return far_out and _reads_as_number(band)


def _is_apart(height: float, gap: float) -> bool:
    return height < 40 and gap > 2.1 * height  # noqa: PLR2004 - points; bands are lower than their lines


def with_notes(parts: list[Part], body: float) -> list[Part]:
    """Move each footnote directly after the block that refers to it.

    Footnotes without a reference stay at the end of the page.
    """
    lowest = max((part.block.box.bottom for part in parts if _is_body(part, body) and part.block.box), default=0.0)
    kept: list[Part] = []
    notes: list[tuple[str, Part]] = []
    for part in parts:
        mark = _mark_of_note(part, body)
        below = part.block.box is not None and part.block.box.top > 0.75 * lowest
        if mark and below:
            text = _GLUED_NOTE.sub(lambda found: f"{found[0].translate(AS_RAISED)} ", part.block.text)
            notes.append((mark, part._replace(block=replace(part.block, text=text, region=RegionKind.FOOTNOTE))))
        else:
            kept.append(part)
    last = max((i for i, part in enumerate(kept) if part.block.region is not RegionKind.FOOTER), default=-1)
    for mark, note in reversed(notes):
        index = next((i for i, part in enumerate(kept) if mark in part.marks), last)
        kept.insert(index + 1, note)
    return kept


def _is_body(part: Part, body: float) -> bool:
    return part.block.size >= _SMALL_LETTERS * body and part.block.region is RegionKind.BODY


def _mark_of_note(part: Part, body: float) -> str | None:
    block = part.block
    if (
        block.region is not RegionKind.BODY
        or block.kind is not BlockKind.PARAGRAPH
        or block.size > _SMALL_LETTERS * body
    ):
        return None
    found = NOTE.match(block.text)
    return part.note or (found[1] if found else None)
