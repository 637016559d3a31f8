"""Eight times the words and lines of a page take about eight times as long, however they are placed."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.regions import lay_out
from octavo.extract.pdf.tables import find_tables
from tests.support.growth import grows_at_most

# They compare processor times, which a busy machine distorts, so they are long forms.
pytestmark = pytest.mark.long

SMALL, LARGE = 55, 440  # rows; a page with more than 8000 words has no tables
# Linear is 8, quadratic 64; the machine may be busy, so the best of several runs counts.
MOST, TRIES = 24, 4
COLUMNS = 12

Boxes = tuple[Box, ...]


def run(left: float, top: float, text: str) -> TextRun:
    box = Box(left, top, left + 5 * len(text), top + 10)
    return TextRun(box, text, 10.0, "Helvetica", False, False, 0.0, None, (Word(*box, text),))


def page(rows: int, lines: Boxes, text: Callable[[int], str], high: float = 12) -> PageContent:
    runs = (run(20.0 + 40 * (one % COLUMNS), 20 + high * (one // COLUMNS), text(one)) for one in range(COLUMNS * rows))
    return PageContent(1, 520, 40 + 12 * rows, tuple(runs), (), lines)


def across(rows: int) -> Boxes:
    return tuple(Box(15, 19 + 12 * row, 500, 19 + 12 * row) for row in range(rows))


def down(rows: int) -> Boxes:
    return tuple(Box(15 + 40 * one, 19, 15 + 40 * one, 19 + 12 * rows) for one in range(COLUMNS + 1))


def number(place: int) -> str:
    return f"{place}.5"


def word(place: int) -> str:
    return ("Some", "words", "of", "text")[place % 4]


PAGES: dict[str, Callable[[int], PageContent]] = {
    "grid of numbers": lambda rows: page(rows, across(rows) + down(rows), number),
    "grid of words": lambda rows: page(rows, across(rows) + down(rows), word),
    "frame of words": lambda rows: page(rows, across(2) + down(rows), word),
    "rows of numbers": lambda rows: page(rows, (), number),
    "rows of words": lambda rows: page(rows, (), word),
    "ruled rows": lambda rows: page(rows, across(rows), number),
    "all at one height": lambda rows: page(rows, (), number, 0),
    "a little lower each": lambda rows: page(rows, (), word, 0.01),
}


@pytest.mark.parametrize("work", [find_tables, lay_out])
@pytest.mark.parametrize("name", PAGES)
def test_many_rulings_and_words_take_time_in_proportion(name: str, work: Callable[[PageContent], object]) -> None:
    small, large = PAGES[name](SMALL), PAGES[name](LARGE)
    gc.disable()  # its time depends on everything else that the process holds
    try:
        assert grows_at_most(MOST, lambda: work(small), lambda: work(large), least=0.0005, tries=TRIES)
    finally:
        gc.enable()
