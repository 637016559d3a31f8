"""Every word of a page with its place, as PDFium knows it letter by letter: what fields of a form are read from."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from octavo.core.json import JSON
from octavo.extract.contract import Box
from octavo.extract.pdf.letters import clean_letters
from octavo.extract.pdf.pages import PageBlock

MOST_PAGES = 50  # of a form; what is longer is read as far as this
MOST_ATTACHMENT_BYTES = 4 * 1024 * 1024
FEW_WORDS = 5  # a page with fewer may only show its text
_GAP = 0.25  # of a letter's height, which letters of one word are never apart
_OFF_LINE = 0.6
_WORD = re.compile(r"\S+")


Letter = tuple[str, Box]


class PlacedWord(NamedTuple):
    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class WordPage:
    number: int
    width: float
    height: float
    words: tuple[PlacedWord, ...]


@dataclass(frozen=True, slots=True)
class WordPages:
    """`attachments` are the XML files inside the PDF, by name."""

    page_count: int
    pages: tuple[WordPage, ...]
    attachments: tuple[tuple[str, bytes], ...]


def join_letters(letters: Iterator[Letter | None]) -> Iterator[PlacedWord]:
    """None, a space and a gap end a word."""
    word: list[Letter] = []
    for letter in letters:
        if word and (letter is None or _is_apart(word[-1][1], letter[1])):
            yield _word(word)
            word = []
        if letter is not None:
            word.append(letter)
    if word:
        yield _word(word)


def _is_apart(before: Box, after: Box) -> bool:
    height = max(before.bottom - before.top, after.bottom - after.top, 1.0)
    across, down = after.left - before.right, abs(after.bottom - before.bottom)
    return across > _GAP * height or across < -height or down > _OFF_LINE * height


def _word(letters: list[Letter]) -> PlacedWord:
    lefts, tops, rights, bottoms = zip(*(box for _, box in letters), strict=True)
    text = clean_letters("".join(text for text, _ in letters))
    return PlacedWord(text, Box(min(lefts), min(tops), max(rights), max(bottoms)))


def words_of_blocks(blocks: Sequence[PageBlock]) -> Iterator[PlacedWord]:
    """Words of blocks of which only the whole has a place: their lines share its height, their letters its width."""
    for block in blocks:
        if block.box is None:
            continue
        lines = [line for line in block.text.split("\n") if line.strip()]
        height = (block.box.bottom - block.box.top) / max(len(lines), 1)
        widest = max(map(len, lines), default=1)
        wide = (block.box.right - block.box.left) / widest
        for row, line in enumerate(lines):
            top = block.box.top + row * height
            for word in _WORD.finditer(line):
                left, right = (block.box.left + index * wide for index in word.span())
                yield PlacedWord(word[0], Box(left, top, right, top + height))


def words_as_json(read: WordPages) -> dict[str, JSON]:
    """All of it as conversion reads it; attachments as base64, because JSON has no bytes."""
    attachments: list[JSON] = [[name, b64encode(body).decode()] for name, body in read.attachments]
    return {"page_count": read.page_count, "pages": pages_as_json(read), "attachments": attachments}


def pages_as_json(read: WordPages) -> list[JSON]:
    return [page_as_json(page) for page in read.pages]


def page_as_json(page: WordPage) -> JSON:
    """As conversion reads it: each word with its four sides behind it."""
    words: list[JSON] = [[word.text, *(round(side, 2) for side in word.box)] for word in page.words]
    return {"number": page.number, "width": page.width, "height": page.height, "words": words}
