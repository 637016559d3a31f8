"""What is right about a text that was read from a PDF: its headings, by the bookmarks of the file, and its words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pypdfium2

from octavo.extract.pdf.facts import open_pdf

_pdfium: Any = pypdfium2
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)
_WORD = re.compile(r"[^\W_]{2,}")


class Heading(NamedTuple):
    """`page` is None where nobody says."""

    words: str
    page: int | None = None
    level: int | None = None


def without_bookmarks(path: Path, folder: Path) -> Path:
    """Pages that are copied into a new file leave the bookmarks behind."""
    copy = _pdfium.PdfDocument.new()
    copy.import_pages(_pdfium.PdfDocument(path))
    copy.save(folder / path.name)
    return folder / path.name


def bookmarks_of(path: Path) -> list[Heading]:
    return [Heading(plain(one.title), one.page, one.level) for one in open_pdf(path).bookmarks]


def headings_in(markdown: str) -> list[Heading]:
    """What is marked as one; which page it is on, Markdown does not say."""
    return [Heading(plain(text)) for text in _HEADING.findall(markdown)]


def plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


def is_same(wanted: Heading, found: Heading) -> bool:
    """The same page, and the same words apart from a number before them or a line that is missing."""
    title, words = wanted.words, found.words
    return found.page in {wanted.page, None} and (
        (title in words and len(words) < len(title) + 12) or (words in title and len(words) > 0.6 * len(title))
    )


def recall(wanted: Sequence[Heading], found: Iterable[Heading]) -> float:
    """Each heading that was found stands for one that is wanted."""
    left = list(found)
    hits = 0
    for one in wanted:
        match = next((other for other in left if is_same(one, other)), None)
        if match:
            left.remove(match)
            hits += 1
    return hits / len(wanted)


def words_of(path: Path) -> Counter[str]:
    """As PDFium reads them, without any layout."""
    document = _pdfium.PdfDocument(path)
    return words_in("\n".join(page.get_textpage().get_text_bounded() for page in document))


def words_in(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def word_recall(wanted: Counter[str], text: str) -> float:
    return sum((wanted & words_in(text)).values()) / wanted.total()
