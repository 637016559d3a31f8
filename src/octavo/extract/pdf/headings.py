"""Decides which blocks are headings, and their levels: from bookmarks if there are any, otherwise from the fonts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from octavo.extract.extracted import BlockKind, RegionKind
from octavo.extract.markdown import plain_title
from octavo.extract.pdf.page_batches import Bookmark, PageBlock, PageText
from octavo.extract.pdf.running_headers import Place

MOST_LEVEL = 6
_MOST_CHARACTERS = 150
_MOST_LINES = 3
_LARGER = 1.08  # than the body text
_SMALLER = 0.92
_SAME_SIZE = 0.035
_SHORT = 100
_MOST_LINES_OF_BODY_SIZE = 2
_LEAST_LETTERS = 3
_TEXTS = frozenset({BlockKind.HEADING, BlockKind.PARAGRAPH})
_BODY = frozenset({BlockKind.PARAGRAPH, BlockKind.LIST})
_NUMBER = re.compile(
    r"(?:(?i:chapter|section|part|appendix|kapitel|chapitre)\s+)?"
    r"((?:\d{1,3}|[A-Z]|[IVX]{1,5})(?:\.\d{1,3})*)\.?\s+(?:[|:\u2013\u2014-]\s+)?[^\W\d_]"
)
_LETTERS = re.compile(r"[^\W\d_]")
_CAPITALS = re.compile(r"(?:[\dIVX]{1,4}[.)]?\s+)?[^\W\d_]{3}[^\d_(){}=]*")
_DEEP_NUMBER = re.compile(r"\d{1,2}(?:\.\d{1,2}){1,4}\.?\s+[^\W\da-z_]")
_CONTENTS_LINE = re.compile(r"[^\W\d_].*\s\d{1,4}\Z")
_ENOUGH_NUMBERS = 3
_SENTENCE_END = re.compile(r"(?:[.;,:]\W*|[^\W\d_]-)\Z")


class Style(NamedTuple):
    """The font size of a heading, and whether it is bold."""

    size: float
    bold: bool


Headings = Mapping[Place, PageBlock]


def body_size(pages: Iterable[PageText]) -> float:
    """The font size of most of the text in the document; 0 if no size is known."""
    letters: Counter[float] = Counter()
    for page in pages:
        for block in page.blocks:
            if block.kind in _BODY and block.size:
                letters[block.size] += len(block.text)
    return max(letters, key=lambda size: (letters[size], size)) if letters else 0.0


def heading_levels(
    pages: Sequence[PageText], body: float, marked: Mapping[Place, int], skipped: Collection[Place]
) -> dict[Place, int]:
    """Map the places of all headings to their levels. Blocks that are not in the result are not headings.

    `marked` contains the blocks that bookmarks point to, with the levels of the bookmarks.
    """
    likely = {
        place: block
        for number, page in enumerate(pages)
        for index, block in enumerate(page.blocks)
        if block.kind in _TEXTS
        and (place := Place(number, index)) not in skipped
        and (place in marked or (block.region is RegionKind.BODY and is_likely(block, body)))
    }
    if marked:
        by_style = _levels_of_marked(likely, marked)
    else:
        likely = _without_contents(likely)
        by_style = _levels_by_number(likely) or _levels_by_rank(likely)
    return {place: min(marked.get(place) or by_style[_style(block)], MOST_LEVEL) for place, block in likely.items()}


def is_likely(block: PageBlock, body: float) -> bool:
    """Whether the block looks like a heading, given the font size of the body text."""
    text = block.text
    if len(text) > _MOST_CHARACTERS or block.lines > _MOST_LINES or len(_LETTERS.findall(text)) < _LEAST_LETTERS:
        return False
    if not body or not block.size:
        return block.kind is BlockKind.HEADING
    numbered = _NUMBER.match(text) is not None
    if not numbered and (_SENTENCE_END.search(text) or text[0].islower()):
        return False
    ratio = block.size / body
    if ratio >= _LARGER:
        return True
    if ratio < _SMALLER or block.lines > _MOST_LINES_OF_BODY_SIZE or len(text) > _SHORT:
        return False
    return (
        block.bold or _DEEP_NUMBER.match(text) is not None or (text.isupper() and _CAPITALS.fullmatch(text) is not None)
    )


def _style(block: PageBlock) -> Style:
    return Style(block.size, block.bold)


def _levels_of_marked(likely: Headings, marked: Mapping[Place, int]) -> dict[Style, int]:
    """Map styles to levels by bookmarks: each style gets the level that most of its bookmarks have.

    A style without bookmarks is placed below the next larger style.
    """
    votes: defaultdict[Style, Counter[int]] = defaultdict(Counter)
    for place, level in marked.items():
        if place in likely:
            votes[_style(likely[place])][level] += 1
    known = {style: max(levels, key=lambda level: (levels[level], -level)) for style, levels in votes.items()}
    deepest = max(known.values(), default=0)
    levels: dict[Style, int] = {}
    for style in {_style(block) for block in likely.values()}:
        above = [level for other, level in known.items() if other >= style]
        levels[style] = known.get(style) or min(max(above, default=0) + 1, deepest + 1)
    return levels


def _levels_by_rank(likely: Headings) -> dict[Style, int]:
    """Map styles to levels by font size; bold styles come before regular styles of the same size.

    If the largest style is used only on the first page, as for a title, the next style also gets level 1.
    """
    places: defaultdict[Style, list[Place]] = defaultdict(list)
    for place, block in likely.items():
        places[_style(block)].append(place)
    levels: dict[Style, int] = {}
    level, before = 0, None
    for style in sorted(places, reverse=True):
        if before is None or not _is_same(before, style):
            level += 1
        levels[style] = level
        before = style
        if level == 1 and len(places) > 1 and all(place.page == 0 for place in places[style]):
            level = 0
    return levels


def _levels_by_number(likely: Headings) -> dict[Style, int]:
    """Map styles to levels by the numbers of their headings: "2.1" means the second level.

    A style without numbers is placed below the next larger numbered style. The result is empty if no style is numbered
    often enough.
    """
    depths: defaultdict[Style, Counter[int]] = defaultdict(Counter)
    for block in likely.values():
        depths[_style(block)][_depth(block.text)] += 1
    levels: dict[Style, int] = {}
    above = 0
    for style in sorted(depths, reverse=True):
        numbered = {depth: count for depth, count in depths[style].items() if depth}
        if sum(numbered.values()) >= max(_ENOUGH_NUMBERS, depths[style].total() / 3):
            above = levels[style] = max(above, max(numbered, key=lambda depth: (numbered[depth], -depth)))
        else:
            levels[style] = above + 1
    return levels if above else {}


def _depth(text: str) -> int:
    found = _NUMBER.match(text)
    return found[1].count(".") + 1 if found else 0


def _without_contents(likely: Headings) -> dict[Place, PageBlock]:
    """Drop the lines of a printed table of contents. They look like headings, but end with page numbers."""
    entries = Counter(place.page for place, block in likely.items() if _CONTENTS_LINE.search(block.text))
    return {
        place: block
        for place, block in likely.items()
        if entries[place.page] < _ENOUGH_NUMBERS or not _CONTENTS_LINE.search(block.text)
    }


def _is_same(one: Style, other: Style) -> bool:
    return one.bold == other.bold and abs(one.size - other.size) <= _SAME_SIZE * max(one.size, other.size)


# Bookmarks: the block that each points to is on the same page and has nearly the same words.

_ALIKE = 0.85
# Allowed differences: a number before the title, or a title that continues in the next block.
_MORE_CHARACTERS = 12
_PART = 0.6
_MOST_COMPARED = 300
_NOT_WORDS = re.compile(r"[\W_]+")


class Match(NamedTuple):
    """The index of a bookmark, and the place of the block that it points to."""

    bookmark: int
    place: Place


def match_bookmarks(
    pages: Sequence[PageText], bookmarks: Sequence[Bookmark], skipped: Collection[Place]
) -> Iterator[Match]:
    """Match each bookmark with at most one block. Of two equally similar blocks, the first is chosen."""
    wanted: defaultdict[int, list[int]] = defaultdict(list)
    for number, bookmark in enumerate(bookmarks):
        if bookmark.page and bookmark.page <= len(pages):
            wanted[bookmark.page - 1].append(number)
    for page, numbers in wanted.items():
        blocks = {
            Place(page, index): (_words(block.text), block)
            for index, block in enumerate(pages[page].blocks)
            if block.kind in _TEXTS and len(block.text) <= _MOST_COMPARED and Place(page, index) not in skipped
        }
        for number in numbers:
            title = _words(bookmarks[number].title)
            best = max(blocks, key=lambda place: _score(title, *blocks[place]), default=None)
            if best and _score(title, *blocks[best]) > 0:
                yield Match(number, best)
                del blocks[best]


def _words(text: str) -> str:
    return _NOT_WORDS.sub(" ", plain_title(text).lower()).strip()


def _score(title: str, words: str, block: PageBlock) -> float:
    """How well a block matches the title of a bookmark; 0 if they differ. Headings and large letters score higher."""
    alike = _likeness(title, words)
    return alike + (block.kind is BlockKind.HEADING) * 0.2 + min(block.size, 100.0) / 1000 if alike else 0.0


def _likeness(title: str, words: str) -> float:
    if not title or not words:
        return 0.0
    if title == words:
        return 1.0
    if title in words and len(words) < len(title) + _MORE_CHARACTERS:
        return 0.95
    if words in title and len(words) > _PART * len(title):
        return 0.9
    matcher = SequenceMatcher(None, title, words, autojunk=False)
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < _ALIKE:
        return 0.0
    ratio = matcher.ratio()
    return ratio * 0.9 if ratio >= _ALIKE else 0.0
