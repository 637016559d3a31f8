"""Finds all values in a document, such as dates and amounts, and the text near each value that may be its label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from octavo.facts.dates import writes_month_first
from octavo.facts.layout import Line, TextRun, lines_of
from octavo.facts.typed_values import FINDERS, usual_decimal
from octavo.facts.words import Box, Notation, Place, RoleHit, Sheet, Vocabulary, Word, enclosing_box

_MOST_LINES_UP = 14  # between the header of a column and its values
_VERTICAL, _MANY_LETTERS = 4.0, 20  # width of a vertical column of letters in points, and the fewest letters in it
_MOST_WORD_GAP = 60  # characters between a label and its value


@dataclass(frozen=True, slots=True)
class Mention:
    """A value, such as a date or an amount, that was found in a line.

    `run` is the group of words that contains it, and `index` is the position of this group in its line.
    """

    value: str
    run: TextRun
    index: int
    start: int
    end: int

    @property
    def place(self) -> Place:
        return self.run.place(self.start, self.end)

    @property
    def box(self) -> Box:
        return self.place.box


class NearText(NamedTuple):
    """Text that may be the label of a value.

    `side` says where it is: `same` (in the same group of words), `left` or `above`.
    """

    text: str
    folded: str
    side: str
    box: Box


class PageRuns:
    """The lines of a document and the values in them, such as dates and amounts."""

    def __init__(self, sheets: Sequence[Sheet], vocabulary: Vocabulary) -> None:
        self.sheets = [without_vertical(sheet) for sheet in sheets]
        self.vocabulary = vocabulary
        self.lines: list[Line] = lines_of(self.sheets)
        self._found: dict[str, list[Mention]] = {}
        self._hits: dict[tuple[str, str], list[RoleHit]] = {}
        self._by_run: dict[str, dict[tuple[int, int], list[Mention]]] = {}

    @cached_property
    def texts(self) -> list[str]:
        return [run.text for line in self.lines for run in line.runs]

    @cached_property
    def notation(self) -> Notation:
        month_first = writes_month_first(self.texts)
        if month_first is None:
            month_first = self.common_currency == "USD"
        return Notation(usual_decimal(self.texts), month_first)

    @cached_property
    def common_currency(self) -> str | None:
        found = Counter(one.value for text in self.texts for one in FINDERS["currency"](text, Notation()))
        return found.most_common(1)[0][0] if found else None

    def every(self, kind: str) -> list[Mention]:
        """Return all values of a type, in reading order."""
        if kind not in self._found:
            find, notation = FINDERS[kind], Notation() if kind == "currency" else self.notation
            self._found[kind] = [
                Mention(one.value, run, index, one.start, one.end)
                for line in self.lines
                for index, run in enumerate(line.runs)
                for one in find(run.text, notation)
            ]
        return self._found[kind]

    def of_run(self, kind: str, run: TextRun, index: int) -> list[Mention]:
        if kind not in self._by_run:
            by_run: dict[tuple[int, int], list[Mention]] = {}
            for one in self.every(kind):
                by_run.setdefault((one.run.line, one.index), []).append(one)
            self._by_run[kind] = by_run
        return self._by_run[kind].get((run.line, index), [])

    def hits(self, section: str, folded: str) -> list[RoleHit]:
        """Return the known labels in a text, such as "total". `section` selects a part of the vocabulary."""
        found = self._hits.get((section, folded))
        if found is None:
            found = self._hits[section, folded] = self.vocabulary[section].find(folded)
        return found

    # The text beside a value

    def before(self, mention: Mention, kind: str) -> NearText | None:
        """Return the text directly before this value, starting after any earlier value of the same type."""
        earlier = [one.end for one in self.of_run(kind, mention.run, mention.index) if one.end <= mention.start]
        start = max(max(earlier, default=0), mention.start - _MOST_WORD_GAP)
        text = mention.run.text[start : mention.start]
        if kind == "amount" and _is_currency(text):
            return None
        if not any(map(str.isalpha, text)) and "#" not in text and "\u00b0" not in text:
            return None
        return NearText(
            text, mention.run.folded[start : mention.start], "same", mention.run.place(start, mention.start).box
        )

    def left_of(self, mention: Mention, kind: str, most: int = 3) -> NearText | None:
        """Return the nearest text to the left of this value.

        Texts without words, and other values of the same type, are skipped.
        """
        runs = self.lines[mention.run.line].runs
        for index in range(mention.index - 1, max(mention.index - 1 - most, -1), -1):
            run = runs[index]
            values = self.of_run(kind, run, index)
            rest = _without(run, values)
            if sum(map(str.isalpha, rest)) >= 2 or rest.strip(" :.") in {"#", "n\u00b0"}:  # noqa: PLR2004
                return NearText(rest, _without_folded(run, values), "left", run.box)
        return None

    def above(self, mention: Mention, kind: str, most: int = _MOST_LINES_UP) -> NearText | None:
        """Return the nearest text above the value that overlaps it horizontally.

        If this text is the second line of a header, the first line is included.
        """
        box = mention.box
        found: list[TextRun] = []
        for line in reversed(self.lines[max(mention.run.line - most, 0) : mention.run.line]):
            if line.page != mention.run.page:
                break
            if found and found[-1].box.top - line.box.bottom > found[-1].box.height:
                break
            under = [(index, run) for index, run in enumerate(line.runs) if _overlaps(run.box, box)]
            if not under:
                continue
            index, run = under[0]
            if self.of_run(kind, run, index) or not any(map(str.isalpha, run.text)):
                if found:
                    break
                continue
            found.append(run)
            if len(found) == 2:  # noqa: PLR2004
                break
        found = found or self._column_head(mention, kind)
        if not found:
            return None
        text, folded = (" ".join(getattr(run, name) for run in reversed(found)) for name in ("text", "folded"))
        return NearText(text, folded, "above", enclosing_box(run.box for run in found))

    def _column_head(self, mention: Mention, kind: str) -> list[TextRun]:
        """Return the last text in the line above that ends to the left of the value.

        It can be the column heading if headings are left-aligned and values are right-aligned in a wider column.
        """
        number = mention.run.line - 1
        line = self.lines[number] if number >= 0 else None
        box = mention.box
        if line is None or line.page != mention.run.page or box.top - line.box.bottom > 2 * box.height:
            return []
        if len(line.runs) < 2 or any(self.of_run(kind, run, index) for index, run in enumerate(line.runs)):  # noqa: PLR2004
            return []
        left = [run for run in line.runs if run.box.right <= box.left]
        return left[-1:]

    def near(self, mention: Mention, kind: str) -> Iterator[NearText]:
        """Yield the texts that may be the label of a value: before it, to its left and above it."""
        for found in (self.before(mention, kind), self.left_of(mention, kind), self.above(mention, kind)):
            if found:
                yield found


def without_vertical(sheet: Sheet) -> Sheet:
    """Remove text that is printed vertically along the page margin.

    It consists of many single letters one above the other.
    """
    columns: dict[int, list[Word]] = {}
    for word in sheet.words:
        if len(word.text) == 1:
            columns.setdefault(round((word.box.left + word.box.right) / 2 / _VERTICAL), []).append(word)
    vertical = {id(word) for words in columns.values() if len(words) >= _MANY_LETTERS for word in words}
    if not vertical:
        return sheet
    return replace(sheet, words=tuple(word for word in sheet.words if id(word) not in vertical))


def _is_currency(text: str) -> bool:
    """Whether a text is only a currency, such as "CHF" in "CHF 12.50"."""
    found = FINDERS["currency"](text, Notation())
    return bool(found) and not any(map(str.isalpha, text[: found[0].start] + text[found[-1].end :]))


def _without(run: TextRun, values: Sequence[Mention]) -> str:
    text = run.text
    for one in reversed(values):
        text = text[: one.start] + " " + text[one.end :]
    return text


def _without_folded(run: TextRun, values: Sequence[Mention]) -> str:
    text = run.folded
    for one in reversed(values):
        text = text[: one.start] + " " + text[one.end :]
    return text


def _overlaps(first: Box, second: Box) -> bool:
    return min(first.right, second.right) - max(first.left, second.left) > 0
