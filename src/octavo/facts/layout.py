"""Groups the words of a page into lines, writes a page as text, and finds the position of a text on a page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from octavo.facts.typed_values import FINDERS
from octavo.facts.words import Box, Notation, Place, Sheet, Word, enclosing_box, fold

_SAME_LINE = 0.5  # least vertical overlap of two words on a line, relative to the smaller height
_RUN_GAP = 0.8  # relative to the letter height; wider than a space between words
_MOST_COLUMNS = 400


@dataclass(frozen=True, slots=True)
class TextRun:
    """Neighbouring words in a line without a wide space between them, such as a label, a value or a table cell."""

    page: int
    line: int
    words: tuple[Word, ...]
    text: str
    folded: str
    starts: tuple[int, ...]
    box: Box

    def place(self, start: int, end: int) -> Place:
        """Return the position on the page of the characters from `start` to `end`."""
        first, last = bisect_right(self.starts, start) - 1, bisect_right(self.starts, max(end - 1, start)) - 1
        box = enclosing_box(word.box for word in self.words[first : last + 1])
        return Place(self.page, box, self.text[start:end])

    def left_of(self, start: int) -> float:
        """Return the left edge of the word that contains the character at index `start`."""
        return self.words[bisect_right(self.starts, start) - 1].box.left


def make_run(page: int, line: int, words: Sequence[Word]) -> TextRun:
    starts: list[int] = []
    length = 0
    for word in words:
        starts.append(length)
        length += len(word.text) + 1
    text = " ".join(word.text for word in words)
    return TextRun(page, line, tuple(words), text, fold(text), tuple(starts), enclosing_box(word.box for word in words))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page. Lines are numbered across all pages, starting at 0."""

    page: int
    number: int
    box: Box
    runs: tuple[TextRun, ...]

    @property
    def words(self) -> list[Word]:
        return [word for run in self.runs for word in run.words]


def lines_of(sheets: Sequence[Sheet]) -> list[Line]:
    """Return all lines from top to bottom, page by page."""
    lines: list[Line] = []
    for sheet in sheets:
        for words in _rows([word for word in sheet.words if word.text.strip()]):
            runs = tuple(make_run(sheet.number, len(lines), part) for part in _parts(words))
            lines.append(Line(sheet.number, len(lines), enclosing_box(word.box for word in words), runs))
    return lines


def _rows(words: Sequence[Word]) -> list[list[Word]]:
    """Group words into lines. A word belongs to a line if it overlaps vertically with the first word of the line."""
    rows: list[list[Word]] = []
    spans: list[tuple[float, float]] = []
    for word in sorted(words, key=lambda one: (one.box.middle, one.box.left)):
        for index in range(len(rows) - 1, max(len(rows) - 6, -1), -1):
            top, bottom = spans[index]
            shared = min(bottom, word.box.bottom) - max(top, word.box.top)
            if shared > _SAME_LINE * min(bottom - top, word.box.height):
                rows[index].append(word)
                break
        else:
            rows.append([word])
            spans.append((word.box.top, word.box.bottom))
    ordered = sorted(zip(spans, rows, strict=True), key=lambda one: one[0])
    return [sorted(row, key=lambda one: one.box.left) for _, row in ordered]


def _parts(words: Sequence[Word]) -> list[list[Word]]:
    parts: list[list[Word]] = [[words[0]]]
    for word in words[1:]:
        before = parts[-1][-1].box
        if word.box.left - before.right > _RUN_GAP * max(before.height, word.box.height):
            parts.append([])
        parts[-1].append(word)
    return parts


@dataclass(frozen=True, slots=True)
class PageText:
    """All pages as text, with spaces that keep the columns aligned, as templates expect.

    For each character, `origins` contains the index of its word. It is -1 if the character does not belong to a word.
    """

    text: str
    origins: tuple[int, ...]
    words: tuple[tuple[int, Word], ...]

    def place(self, start: int, end: int) -> Place | None:
        """Return the position on the page of the characters from `start` to `end`.

        If they are on several pages, only the characters on the first of these pages are included. Returns None if none
        of the characters belongs to a word.
        """
        indexes = sorted({index for index in self.origins[start:end] if index >= 0})
        if not indexes:
            return None
        page = self.words[indexes[0]][0]
        box = enclosing_box(self.words[index][1].box for index in indexes if self.words[index][0] == page)
        return Place(page, box, " ".join(self.text[start:end].split()))


def text_in_columns(sheets: Sequence[Sheet], lines: Sequence[Line] | None = None) -> PageText:
    """Write the pages as text, with spaces that keep the columns aligned as on the page.

    One space is as wide as the median letter. Pass `lines` if the lines have already been found.
    """
    letters: list[str] = []
    origins: list[int] = []
    words: list[tuple[int, Word]] = []
    lines = lines_of(sheets) if lines is None else lines
    for sheet in sheets:
        own = [line for line in lines if line.page == sheet.number]
        wide = _letter_width(own)
        left = min((line.box.left for line in own), default=0.0)
        bottom = None
        for line in own:
            if bottom is not None and line.box.top - bottom > line.box.height:
                letters.append("\n")
                origins.append(-1)
            bottom = line.box.bottom
            column = 0
            for run in line.runs:
                target = min(int((run.box.left - left) / wide), _MOST_COLUMNS)
                gap = max(target - column, 2 if column else 0)
                letters.append(" " * gap)
                origins += [-1] * gap
                column += gap
                for number, word in enumerate(run.words):
                    text = f" {word.text}" if number else word.text
                    letters.append(text)
                    origins += [-1] * (len(text) - len(word.text)) + [len(words)] * len(word.text)
                    words.append((sheet.number, word))
                    column += len(text)
            letters.append("\n")
            origins.append(-1)
    return PageText("".join(letters), tuple(origins), tuple(words))


def _letter_width(lines: Sequence[Line]) -> float:
    widths = [(word.box.right - word.box.left) / len(word.text) for line in lines for word in line.words]
    return max(median(widths), 1.0) if widths else 5.0


def locate_text(lines: Sequence[Line], text: str, page: int | None = None) -> Place | None:
    """Find these words in the document, as whole words, ignoring case and accents.

    Returns their first position. Returns None if the document does not contain them.
    """
    wanted = fold(" ".join(text.split()))
    if not wanted:
        return None
    for line in lines:
        if page is not None and line.page != page:
            continue
        for run in line.runs:
            start = run.folded.find(wanted)
            while start >= 0:
                end = start + len(wanted)
                if not _is_within(run.folded, start, end):
                    return run.place(start, end)
                start = run.folded.find(wanted, start + 1)
    return None


def _is_within(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return (before.isalnum() and text[start].isalnum()) or (after.isalnum() and text[end - 1].isalnum())


def locate_value(lines: Sequence[Line], value: str, kind: str, notation: Notation) -> Place | None:
    """Find a value, such as a date, in the document, in any notation.

    Returns its first position. Returns None if the document does not contain the value.
    """
    if kind == "text":
        return locate_text(lines, value)
    return next((place for place, found in every_value(lines, kind, notation) if found == value), None)


def every_value(lines: Sequence[Line], kind: str, notation: Notation) -> Iterator[tuple[Place, str]]:
    for line in lines:
        for run in line.runs:
            for found in FINDERS[kind](run.text, notation):
                yield run.place(found.start, found.end), found.value
