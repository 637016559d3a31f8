"""Finds the block that each bookmark points to: a block on the same page with nearly the same words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from octavo.extract.extracted import BlockKind
from octavo.extract.markdown import plain_title
from octavo.extract.pdf.page_batches import Bookmark, PageBlock, PageText
from octavo.extract.pdf.running_headers import Place

_ALIKE = 0.85
# Allowed differences: a number before the title, or a title that continues in the next block.
_MORE_CHARACTERS = 12
_PART = 0.6
_MOST_CHARACTERS = 300
_TEXTS = frozenset({BlockKind.HEADING, BlockKind.PARAGRAPH})
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
            if block.kind in _TEXTS and len(block.text) <= _MOST_CHARACTERS and Place(page, index) not in skipped
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
