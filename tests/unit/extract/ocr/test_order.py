"""Recognised lines are read as people read: down a column, across a heading, along the rows of a table."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from octavo.extract.extracted import Box
from octavo.extract.ocr.blocks import join_lines
from octavo.extract.ocr.order import Line, reading_order


def line(text: str, left: float, top: float, width: float = 200, height: float = 12) -> Line:
    return Line(text, Box(left, top, left + width, top + height))


def texts(lines: list[Line]) -> list[str]:
    return [one.text for column in reading_order(lines) for one in column]


LONG = "a line of running text that fills its column"
LEFT = [line(f"left {n}, {LONG}", 50, 100 + 15 * n) for n in range(6)]
RIGHT = [line(f"right {n}, {LONG}", 300, 103 + 15 * n) for n in range(6)]


def test_one_column_is_read_from_top_to_bottom() -> None:
    assert texts(LEFT[::-1]) == [one.text for one in LEFT]


def test_two_columns_are_read_one_after_the_other() -> None:
    mixed = list(chain.from_iterable(zip(LEFT, RIGHT, strict=True)))
    assert texts(mixed) == [one.text for one in LEFT + RIGHT]


def test_a_heading_over_both_columns_is_read_before_them_and_one_below_after_them() -> None:
    above, below = line("Title of all", 50, 60, 450, 20), line("A note across the page", 50, 220, 450)
    assert texts([*RIGHT, below, *LEFT, above]) == [
        above.text,
        *(one.text for one in LEFT),
        *(one.text for one in RIGHT),
        below.text,
    ]


def test_cells_that_stand_side_by_side_are_read_across() -> None:
    cells = [
        line(f"{name}{row}", 50 + 150 * column, 100 + 20 * row, 60)
        for row in range(5)
        for column, name in enumerate("abc")
    ]
    assert texts(cells[::-1]) == [one.text for one in cells]


def test_a_short_remark_beside_a_text_makes_no_column() -> None:
    remark = line("note", 420, 115, 30)
    found = texts([*LEFT, remark])
    assert found.index("note") in {1, 2, 3}


def test_an_empty_page_has_no_columns() -> None:
    assert reading_order([]) == []


def test_words_cut_at_the_end_of_a_line_are_whole_again() -> None:
    (only,) = join_lines([line("The wetland keeps its wa-", 0, 0), line("ter for a long and dry summer", 0, 15)])
    assert only.text == "The wetland keeps its water for a long and dry summer"
    assert only.box == Box(0, 0, 200, 27)


def test_a_wide_gap_a_larger_line_and_an_item_begin_a_paragraph() -> None:
    lines = [
        line("Heading", 0, 0, height=24),
        line("First line of text that goes on", 0, 40),
        line("and on to the next one here,", 0, 55),
        line("• an item", 0, 70),
        line("After a gap", 0, 120),
    ]
    found = [one.text for one in join_lines(lines)]
    assert found == [
        "Heading",
        "First line of text that goes on and on to the next one here,",
        "• an item",
        "After a gap",
    ]


def box_at(left: float, top: float, width: float, height: float) -> Box:
    return Box(left, top, left + width, top + height)


places, widths, heights = st.floats(0, 1000), st.floats(1, 400), st.floats(4, 40)
boxes = st.builds(box_at, places, places, widths, heights)


@given(st.lists(st.builds(Line, st.text(min_size=1, max_size=30), boxes), max_size=40))
def test_no_line_is_lost_and_none_comes_twice(lines: list[Line]) -> None:
    read = [one for column in reading_order(lines) for one in column]
    assert sorted(map(id, read)) == sorted(map(id, lines))
