"""Defines the input of the search for facts: a document's content, its metadata and its first printed lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from octavo.facts.layout import TextRun, lines_of
from octavo.facts.mentions import without_vertical
from octavo.facts.words import Place, Sheet, fold

_FRONT_PAGES = 2
_FRONT_LINES = 60  # the most lines of a text without pages
_MOST_HEIGHT = 3.0  # of a letter, as a multiple of its width
_BOLD_LINE = 7  # the level of a line that is bold but not a heading
_MARKUP = re.compile(r"^\s*(?:>\s*)*(?:[-*+]\s+)?|\*{1,3}|`+|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)|\\(?=[^\w\s])")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_HEADING = re.compile(r"^(#{1,6})\s+(.*)")
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1\s*$|\Z)", re.MULTILINE | re.DOTALL)
_BOLD = re.compile(r"^\*\*[^*]+\*\*\s*$")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the text. `start` is its offset in the Markdown. `place` is its position on the page, if known."""

    text: str
    level: int
    start: int = 0
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """Metadata read from the file. `date` is an ISO 8601 date. `extra` contains other values, such as `producer`."""

    title: str | None = None
    author: str | None = None
    date: str | None = None
    language: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A line at the beginning of a document.

    `size` is its letter height, divided by the usual letter height in the document. `top` is its vertical position on
    the page, from 0 (top) to 1 (bottom). `level` is the heading level. It is 0 if the line is not a heading. `cells` is
    the number of separate texts in the line, such as the cells of a table row.
    """

    text: str
    size: float
    top: float
    page: int
    level: int = 0
    cells: int = 0
    run: TextRun | None = None

    @property
    def place(self) -> Place | None:
        return self.run.place(0, len(self.run.text)) if self.run and self.page else None


@dataclass(frozen=True)
class FactSource:
    """A document's content and metadata: the input for finding its facts.

    `sheets` contains the words on the first pages with their boxes. It is empty if the document has no pages.
    `markdown` is the text. For a long text, `markdown` is only the beginning, and `tail` is the end. `word_count`
    counts the words of the whole text. `language` is the detected language. It is empty if detection failed, and None
    if detection was not tried.
    """

    sheets: tuple[Sheet, ...] = ()
    markdown: str = ""
    tail: str = ""
    headings: tuple[Heading, ...] = ()
    filename: str = ""
    metadata: FileMetadata = field(default_factory=FileMetadata)
    source_type: str = "other"
    language: str | None = None
    word_count: int = 0

    @cached_property
    def front(self) -> Sequence[PrintedLine]:
        """The lines of the first two pages, or the first lines of a text without pages."""
        return list(_lines_of_sheets(self.sheets[:_FRONT_PAGES])) or list(_lines_of_text(self.markdown))

    @cached_property
    def heading_texts(self) -> frozenset[str]:
        return frozenset(fold(plain(one.text)) for one in self.headings[:20])


def _lines_of_sheets(sheets: Sequence[Sheet]) -> Iterator[PrintedLine]:
    sheets = [without_vertical(sheet) for sheet in sheets if sheet.words and sheet.height]
    runs = [(sheet, run, len(line.runs)) for sheet in sheets for line in lines_of([sheet]) for run in line.runs]
    if not runs:
        return
    body = median([_height(run) for _, run, _ in runs for _ in range(1 + len(run.text) // 4)]) or 1.0
    for sheet, run, count in runs:
        if any(map(str.isalnum, run.text)):
            yield PrintedLine(run.text, _height(run) / body, run.box.top / sheet.height, sheet.number, 0, count, run)


def _height(run: TextRun) -> float:
    """Return the height of the letters in a group of words.

    The result is limited by the letter width, because in a scan, the box of a word may enclose its whole paragraph.
    """
    width = sum(word.box.right - word.box.left for word in run.words) / max(
        sum(len(word.text) for word in run.words), 1
    )
    return min(run.box.height, _MOST_HEIGHT * width)


def _lines_of_text(markdown: str) -> Iterator[PrintedLine]:
    text = _FENCED.sub("", markdown[:20_000])
    rows = [row for row in text.splitlines() if any(map(str.isalnum, row))][:_FRONT_LINES]
    for index, row in enumerate(rows):
        heading = _HEADING.match(row)
        level = len(heading[1]) if heading else _BOLD_LINE if _BOLD.match(row.strip()) else 0
        cells = [cell for cell in row.strip().strip("|").split("|") if cell.strip()] if row.startswith("|") else []
        text = plain(heading[2] if heading else cells[0] if len(cells) == 1 else row)
        if text:
            yield PrintedLine(text, 2.0 - level / 10 if level else 1.0, index / len(rows), 0, level, len(cells))


def plain(text: str) -> str:
    """Remove the markup from a line of Markdown."""
    return " ".join(_MARKUP.sub("", _LINK.sub(r"\1", text)).split())
