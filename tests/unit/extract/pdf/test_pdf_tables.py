"""Tables of PDF pages: rows and columns as printed, and nothing that only looks like a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count, pairwise
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, Shape, TextRun, Word
from octavo.extract.pdf.table_rows import Table
from octavo.extract.pdf.tables import find_tables, page_tables, to_markdown

patient = settings(deadline=None, max_examples=150)  # machines that run tests are busy
LETTER = 5.0
HEIGHT = 10.0

Texts = Iterable[tuple[float, float, str]]


def run(left: float, top: float, text: str, rotation: float = 0.0) -> TextRun:
    words: list[Word] = []
    at = left
    for word in text.split():
        words.append(Word(at, top, at + LETTER * len(word), top + HEIGHT, word))
        at += LETTER * len(word) + 2.5
    box = Box(left, top, words[-1].right, top + HEIGHT)
    return TextRun(box, text, HEIGHT, "Helvetica", False, False, rotation, None, tuple(words))


def page(texts: Texts, lines: Iterable[Box] = (), shapes: Iterable[Shape] = ()) -> PageContent:
    return PageContent(1, 600, 800, tuple(run(*one) for one in texts), tuple(shapes), tuple(lines))


def rows_of(
    texts: Sequence[Sequence[str]], xs: Sequence[float], top: float = 100, step: float = 14
) -> list[tuple[float, float, str]]:
    return [
        (x, top + step * row, text)
        for row, cells in enumerate(texts)
        for x, text in zip(xs, cells, strict=False)
        if text
    ]


def across(ys: Iterable[float], left: float, right: float) -> list[Box]:
    return [Box(left, y, right, y) for y in ys]


def down(xs: Iterable[float], top: float, bottom: float) -> list[Box]:
    return [Box(x, top, x, bottom) for x in xs]


def only(found: Sequence[Table]) -> Table:
    assert len(found) == 1
    return found[0]


NUMBERS = [
    ["Country", "2010", "2011", "2012"],
    ["Austria", "1.5", "2.25", "17.0"],
    ["Belgium", "2.5", "3.75", "18.5"],
    ["Croatia", "3.5", "4.00", "19.0"],
    ["Denmark", "4.5", "5.10", "20.5"],
]
XS = [60, 180, 260, 340]


def test_a_ruled_table_with_cells_of_two_lines_keeps_its_rows() -> None:
    texts = [
        (65.0, 102.0, "Machine"),
        (185.0, 102.0, "Duty"),
        (305.0, 102.0, "Fee"),
        (65.0, 132.0, "Crane"),
        (185.0, 132.0, "lift the steel"),
        (185.0, 144.0, "frames upright"),
        (305.0, 132.0, "120.00"),
        (65.0, 162.0, "Barge"),
        (185.0, 162.0, "carry sand"),
        (185.0, 174.0, "and gravel"),
        (305.0, 162.0, "85.50"),
    ]
    lines = across((100, 130, 160, 190), 60, 420) + down((60, 180, 300, 420), 100, 190)
    table = only(find_tables(page(texts, lines)))
    assert table.grid == (
        ("Machine", "Duty", "Fee"),
        ("Crane", "lift the steel frames upright", "120.00"),
        ("Barge", "carry sand and gravel", "85.50"),
    )
    assert table.sure
    assert table.box == Box(60, 100, 420, 190)


def test_a_header_of_two_levels_without_lines_inside_has_a_row_for_each_level() -> None:
    texts = [
        (65.0, 102.0, "Group"),
        (265.0, 102.0, "All of the people"),
        *rows_of([["", "Share", "Total"], ["", "(all)"]], (65, 185, 305), 114, 11),
        *rows_of([["Under 1", "0.01", "353"], ["1 to 2", "0.02", "649"]], (65, 185, 305), 142, 20),
        (65.0, 182.0, "Total"),
        (305.0, 182.0, "1002"),
    ]
    lines = across((100, 140, 160, 180, 200), 60, 420) + down((60, 180, 420), 100, 200) + down((300,), 140, 180)
    table = only(find_tables(page(texts, lines)))
    assert table.grid[:2] == (("Group", "All of the people", ""), ("", "Share (all)", "Total"))
    assert table.grid[-1] == ("Total", "", "1002")


def test_labels_at_the_left_of_a_frame_of_figures_are_the_first_column() -> None:
    labels = ["Cost category", "Salaries", "Travel", "Office rent", "Telephone", "Insurance", "Total"]
    texts = [
        *rows_of([[label] for label in labels], (62,), 102, 14),
        *rows_of([["All", "Direct", "Other"], *[["1,200", "800", "400"]] * 6], (205, 285, 365), 102, 14),
    ]
    lines = across((100, 115, 200), 200, 440) + down((200, 280, 360, 440), 100, 200)
    table = only(find_tables(page(texts, lines)))
    assert [row[0] for row in table.grid] == labels
    assert table.grid[1] == ("Salaries", "1,200", "800", "400")


def test_white_space_below_two_headings_divides_a_column_of_a_grid() -> None:
    things = [["Thing", "Pieces", "Sum"], ["Nougat", "20", "81.90"], ["Biscuit", "15", "48.00"]]
    texts = [
        *rows_of(things, (65, 185, 385), 102, 20),
        *rows_of([["Price"], ["4.55"], ["3.20"]], (265,), 102, 20),
        *rows_of([["Off"], ["10%"]], (320,), 102, 20),
    ]  # fmt: skip
    lines = across((100, 120, 140, 160), 60, 440) + down((60, 180, 260, 380, 440), 100, 160)
    table = only(find_tables(page(texts, lines)))
    assert table.grid[0] == ("Thing", "Pieces", "Price", "Off", "Sum")
    assert table.grid[1] == ("Nougat", "20", "4.55", "10%", "81.90")
    assert table.grid[2] == ("Biscuit", "15", "3.20", "", "48.00")


def test_numbers_below_each_other_in_a_tall_cell_make_a_table_unsure() -> None:
    texts = [
        *rows_of([["Age", "Count"], ["80", "723"], ["81", "640"]], (65, 185), 102, 20),
        *rows_of([["Age", "Count", "Year"]], (305, 385, 465), 102),
        *rows_of([["40", "246", "1980"], ["41", "237", "1981"]], (305, 385, 465), 124, 14),
    ]
    lines = across((100, 120, 160), 60, 540) + across((140,), 60, 300) + down((60, 180, 300, 380, 460, 540), 100, 160)
    assert not only(find_tables(page(texts, lines))).sure


def test_a_missing_inner_line_makes_a_cell_that_covers_two_columns() -> None:
    texts = [
        (190.0, 102.0, "Amount in euros"),
        *rows_of([["Year", "First", "Second"], ["2010", "12", "14"]], (65, 185, 305), 122, 20),
    ]
    lines = across((100, 120, 140, 160), 60, 420) + down((60, 180, 420), 100, 160) + down((300,), 120, 160)
    table = only(find_tables(page(texts, lines)))
    assert [cell.columns for cell in table.rows[0]] == [1, 2]
    assert table.grid[0] == ("", "Amount in euros", "")
    assert to_markdown(table).splitlines()[0] == "| Year | Amount in euros / First | Amount in euros / Second |"


def test_rows_of_numbers_between_two_rulings_are_not_fused() -> None:
    lines = across((98, 112, 172), 55, 400) + down((55, 175, 255, 335, 400), 98, 172)
    assert only(find_tables(page(rows_of(NUMBERS, XS), lines))).grid == tuple(map(tuple, NUMBERS))


def test_rows_of_text_that_may_be_one_row_are_reported_as_unsure() -> None:
    texts = rows_of([["Name", "Town"], ["Anna Berg", "Vienna East"], ["Carl Dorn", "Graz North"]], (65, 200), 102, 12)
    lines = across((100, 113, 140), 60, 340) + down((60, 190, 340), 100, 140)
    table = only(find_tables(page(texts, lines)))
    assert not table.sure


def test_a_table_without_rulings_is_found_by_its_aligned_numbers() -> None:
    table = only(find_tables(page(rows_of(NUMBERS, XS))))
    assert table.grid == tuple(map(tuple, NUMBERS))
    assert all(cell.box for row in table.rows for cell in row)


def test_the_title_of_the_page_is_not_the_header_of_the_table_below_it() -> None:
    title = [(160.0, 50.0, "Boats of the northern ports"), (440.0, 50.0, "Page 5")]
    title += [(160.0, 64.0, "All boats on the first day")]
    table = only(find_tables(page([*title, *rows_of(NUMBERS, XS, top=85)])))
    assert table.grid == tuple(map(tuple, NUMBERS))


def test_a_table_between_horizontal_rulings_has_a_header_of_two_levels() -> None:
    texts = [
        (225.0, 100.0, "Boats"),
        (385.0, 100.0, "Ships"),
        *rows_of(
            [
                ["Port", "old", "new", "old", "new"],
                ["North", "11", "12", "13", "14"],
                ["South", "21", "22", "23", "24"],
                ["West", "31", "32", "33", "34"],
            ],
            (60, 200, 260, 360, 420),
            116,
        ),
    ]
    lines = [*across((97, 128, 176), 60, 445), Box(195, 113, 290, 113), Box(355, 113, 445, 113)]
    table = only(find_tables(page(texts, lines)))
    assert [(cell.text, cell.columns, cell.rows) for cell in table.rows[0]] == [
        ("Port", 1, 2),
        ("Boats", 2, 1),
        ("Ships", 2, 1),
    ]
    assert table.grid[1] == ("", "old", "new", "old", "new")
    assert table.grid[4] == ("West", "31", "32", "33", "34")


def test_a_label_that_goes_on_in_the_next_line_stays_in_its_row() -> None:
    texts = [
        ["Kind", "2010", "2011"],
        ["Public schools with", "12", "14"],
        ["more than one teacher", "", ""],
        ["Private schools", "5", "6"],
        ["Other", "1", "2"],
    ]
    grid = only(find_tables(page(rows_of(texts, (60, 220, 300), step=12)))).grid
    assert grid[1] == ("Public schools with more than one teacher", "12", "14")
    assert len(grid) == 4


def test_a_label_without_values_is_a_row_of_its_own() -> None:
    texts = [
        ["Kind", "2010", "2011"],
        ["Total", "17", "20"],
        ["By region", "", ""],
        ["North", "5", "6"],
        ["South", "12", "14"],
    ]
    assert only(find_tables(page(rows_of(texts, (60, 220, 300))))).grid == tuple(map(tuple, texts))


def test_columns_of_a_right_to_left_table_are_in_reading_order() -> None:
    texts = [(310.0, 102.0, "שם"), (190.0, 102.0, "עיר"), (310.0, 122.0, "דנה"), (190.0, 122.0, "חיפה")]
    lines = across((100, 120, 140), 180, 420) + down((180, 300, 420), 100, 140)
    assert only(find_tables(page(texts, lines))).grid == (("שם", "עיר"), ("דנה", "חיפה"))


def test_a_table_on_its_side_is_read() -> None:
    upright = page(rows_of(NUMBERS, XS))

    def turned(box: Box) -> Box:  # runs from bottom to top
        return Box(box.top, 600 - box.right, box.bottom, 600 - box.left)

    runs = tuple(
        TextRun(
            turned(one.box),
            one.text,
            HEIGHT,
            "",
            False,
            False,
            90.0,
            None,
            tuple(Word(*turned(Box(*word[:4])), word.text) for word in one.words),
        )
        for one in (*upright.runs, run(60, 300, "Three words here"))
    )
    table = only(find_tables(PageContent(1, 800, 600, runs, (), ())))
    assert table.grid == tuple(map(tuple, NUMBERS))
    assert table.box == turned(only(find_tables(upright)).box)


PROSE = [
    "the barges leave the quay at",
    "dawn and carry gravel to the",
    "island where masons wait for",
    "it and stack every load there",
    "beside the old kiln by noon",
    "and nobody is in a hurry now",
]


@pytest.mark.parametrize(
    "texts",
    [
        rows_of([[line, line] for line in PROSE], (60, 320)),
        rows_of([[f"{number}.", "Set the speed to the value above"] for number in range(1, 8)], (60, 90)),
        rows_of([[f"{number}.1", "Title of a part", f"{number * 12}"] for number in range(1, 9)], (60, 120, 500)),
        rows_of(
            [["Name:", "Anna Berg"], ["Town:", "Vienna"], ["Street:", "12"], ["Telephone:", "4711"], ["Fax:", "4712"]],
            (60, 200),
        ),
        rows_of([[f"{number}:", "x = y;", "return x"] for number in range(1, 8)], (60, 90, 200)),
        rows_of([["y = a + b", f"(1.{number})"] for number in range(1, 6)], (100, 400)),
        rows_of([[line] for line in PROSE], (60,)),
        [],
    ],
    ids=["prose in columns", "numbered list", "contents", "form", "code", "formulas", "prose", "nothing"],
)
def test_what_only_looks_like_a_table_is_refused(texts: Texts) -> None:
    assert not find_tables(page(texts))


def test_a_frame_around_text_is_not_a_table() -> None:
    lines = across((90, 200), 50, 400) + down((50, 400), 90, 200)
    assert not find_tables(page(rows_of([[line] for line in PROSE], (60,)), lines))


def test_a_drawing_whose_lines_cross_the_words_is_not_a_table() -> None:
    lines = across((95, 110, 125, 150), 50, 400) + down((72, 110, 150, 185, 260), 95, 150)
    assert not find_tables(page(rows_of([[line] for line in PROSE], (60,)), lines))


def test_stripes_do_not_break_a_table() -> None:
    stripes = [Shape(Box(55, 98 + 28 * row, 400, 112 + 28 * row), True, False, False, "ffeeeeee") for row in range(3)]
    edges = [
        box
        for one in stripes
        for box in (*across((one.box.top, one.box.bottom), 55, 400), *down((55, 400), one.box.top, one.box.bottom))
    ]
    assert only(find_tables(page(rows_of(NUMBERS, XS), edges, stripes))).grid == tuple(map(tuple, NUMBERS))


def test_a_drawing_of_many_lines_is_skipped_quickly() -> None:
    lines = [Box(step % 500, step % 700, step % 500 + 20, step % 700) for step in range(20_000)]
    began = process_time()
    assert find_tables(page(rows_of(NUMBERS, XS), lines))
    assert process_time() - began < 0.5


MARKS = re.compile(r"<\d+>")
coordinates = st.integers(0, 40).map(lambda value: value * 12.5)
some_texts = st.lists(
    st.tuples(
        coordinates,
        coordinates,
        st.sampled_from(["a", "12", "1.5 %", "Long label here", "x y", "שלום", "…….", "$", "—"]),
    ),
    max_size=40,
)
some_lines = st.lists(st.tuples(coordinates, coordinates, coordinates, st.booleans()), max_size=30)


@patient
@given(some_texts, some_lines, st.booleans())
def test_words_are_in_at_most_one_cell_and_rows_are_equally_wide(
    texts: list[tuple[float, float, str]], lines: list[tuple[float, float, float, bool]], fill: bool
) -> None:
    numbers = count()
    named = [(left, top, " ".join(f"{word}<{next(numbers)}>" for word in text.split())) for left, top, text in texts]
    boxes = [Box(x, y, x + length, y) if flat else Box(x, y, x, y + length) for x, y, length, flat in lines]
    shapes = [
        Shape(Box(box.left, box.top, box.right + 20, box.bottom + 15), fill, not fill, False, None) for box in boxes[:5]
    ]
    content = page(named, boxes, shapes)
    tables = find_tables(content)
    for table in tables:
        assert len({len(row) for row in table.grid}) == 1
        assert sum(cell.columns * cell.rows for row in table.rows for cell in row) == len(table.grid) * len(
            table.grid[0]
        )
        assert len(table.rows) > 1
        assert 0 < table.confidence <= 1
    used = Counter(mark for table in tables for row in table.rows for cell in row for mark in MARKS.findall(cell.text))
    assert not used or max(used.values()) == 1


anything = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1e300, -1e300, float("nan"), float("inf")]))
odd_words = st.builds(
    Word, anything, anything, anything, anything, st.sampled_from(["a", " ", "", "12", "....", "$", "ab.....", "()"])
)
odd_boxes = st.builds(Box, *[st.one_of(st.floats(-1e4, 1e4), st.sampled_from([0.0, 1e300]))] * 4)
odd_runs = st.tuples(odd_boxes, st.lists(odd_words, min_size=1, max_size=6), st.sampled_from([0.0, 90.0, 270.0, 12.0]))


@patient
@given(st.lists(odd_runs, max_size=12), st.lists(odd_boxes, max_size=12))
def test_odd_positions_never_fail(runs: list[tuple[Box, list[Word], float]], boxes: list[Box]) -> None:
    shapes = tuple(Shape(box, True, False, False, None) for box in boxes)
    texts = (TextRun(box, "text", 10.0, "", False, False, turn, None, tuple(words)) for box, words, turn in runs)
    find_tables(PageContent(1, 600, 800, tuple(texts), shapes, tuple(boxes)))


def test_words_above_and_below_a_ruled_table_are_not_one_table_around_it() -> None:
    above = rows_of([["Date", "05/11/2017"], ["Terms", "30 days"], ["Due", "05/12/2017"]], (60, 180), 100, 20)
    inner = rows_of(
        [["Item", "Count", "Price"], ["Nails", "40", "3.20"], ["Rope", "10", "19.80"]], (65, 305, 425), 182, 20
    )
    below = rows_of([["Notes", "Free delivery"]], (60, 180), 262)
    lines = across((98, 118, 138, 158, 180, 200, 220, 240, 260, 275), 60, 540) + down((60, 300, 420, 540), 180, 240)
    found = find_tables(page([*above, *inner, *below], lines))
    assert [table.grid[-1] for table in found] == [("Due", "05/12/2017"), ("Rope", "10", "19.80")]
    assert not any(one.box.bottom > two.box.top for one, two in pairwise(found))


def test_the_first_row_of_another_grid_is_not_the_last_row_of_the_table_above() -> None:
    upper = rows_of([["Item", "Count", "Price"], ["Nails", "40", "3.20"]], (65, 305, 425), 102, 20)
    lower = rows_of([["Tax", "Base", "Amount"], ["7 %", "128.00", "8.96"]], (65, 305, 425), 150, 20)
    lines = across((100, 120, 140), 60, 540) + down((60, 300, 420, 540), 100, 140)
    lines += across((148, 168, 188), 60, 540) + down((60, 300, 420, 540), 148, 188)
    found = find_tables(page([*upper, *lower], lines))
    assert [table.grid[0][0] for table in found] == ["Item", "Tax"]
    assert [len(table.rows) for table in found] == [2, 2]


def test_rows_with_a_ruling_below_each_begin_above_the_first_ruling() -> None:
    rows = [
        ["Sum of the items", "473.00"],
        ["Charges", "0.00"],
        ["Tax", "56.87"],
        ["Total", "529.87"],
        ["Paid", "0.00"],
    ]
    lines = across((130, 160, 190, 220, 250), 60, 400)
    assert only(find_tables(page(rows_of(rows, (65, 340), 110, 30), lines))).grid[0] == ("Sum of the items", "473.00")


def test_a_wide_gap_without_a_ruling_ends_a_table() -> None:
    head = rows_of([["Kind", "Base", "Rate", "Tax"], ["Standard", "22.00", "7", "1.54"]], (65, 200, 300, 400), 102, 24)
    other = rows_of([["Terms", "", "Due", "Part"], ["Thirty days", "", "4 July", "1.00"]], (65, 200, 300, 400), 302, 24)
    lines = across((98, 118, 298, 318), 60, 460)
    found = find_tables(page([*head, (65.0, 210.0, "Totals"), *other], lines))
    assert not any(table.box.top < 150 and table.box.bottom > 290 for table in found)


def test_a_table_without_lines_stays_in_its_column_of_text() -> None:
    left, right = rows_of(NUMBERS, (60, 120, 170, 220)), rows_of(NUMBERS, (320, 380, 430, 480))
    content = page([*left, *right])
    assert len(page_tables(content, [], list)) == 1
    sides = Box(50, 90, 260, 700), Box(310, 90, 540, 700)
    found = page_tables(content, [], lambda: [sides])
    assert [table.grid[1] for table in found] == [("Austria", "1.5", "2.25", "17.0")] * 2


def test_the_underline_of_a_web_address_does_not_divide_a_cell() -> None:
    texts = [
        *rows_of([["Army", "Navy"], ["Write to us:", "Write to us:"]], [65, 255]),
        (65, 128, "https://army.example/online/"),
        (65, 142, "application.html"),
        (255, 128, "Quay"),
    ]
    lines = [*across((96, 112, 160), 60, 450), *down((60, 250, 450), 96, 160)]
    underline = Box(65, 137, 65 + LETTER * len("https://army.example/online/"), 137)
    table = only(find_tables(page(texts, [*lines, underline])))
    assert table.grid[1][0] == "Write to us: https://army.example/online/ application.html"


def test_numbered_lines_in_a_monospaced_font_are_code() -> None:
    rows = [[str(number), f"call({number})"] for number in range(1, 5)]
    lines = [*across((96, 156), 56, 300), *down((56, 76, 300), 96, 156)]
    plain = page(rows_of(rows, [60, 90]), lines)
    typed = replace(plain, runs=tuple(run._replace(font="Courier") for run in plain.runs))
    assert page_tables(typed, (), list) == []


def test_cells_with_the_same_middle_are_one_row_whatever_their_number_of_lines() -> None:
    lines = [*across((90, 110, 150, 190), 56, 350), *down((56, 150, 250, 350), 90, 190)]
    head = rows_of([["Metric", "Fast", "Slow"]], [60, 160, 260], 95)
    two = [(60, 117, "Speed"), (60, 133, "(pages)"), (160, 125, "120"), (260, 125, "90")]
    last = [(60, 165, "Size"), (160, 165, "3"), (260, 165, "4")]
    table = only(find_tables(page([*head, *two, *last], lines)))
    assert table.grid == (("Metric", "Fast", "Slow"), ("Speed (pages)", "120", "90"), ("Size", "3", "4"))


def test_rows_above_and_below_the_lines_belong_to_a_table_with_one_upright_line() -> None:
    texts = [[f"/usr/afs/{name}", "drwxr-x"] for name in ("a", "backup", "bin", "db", "etc")]
    lines = [*across([114, 128, 142, 156], 90, 500), *down([300], 98, 172)]
    (table,) = find_tables(page(rows_of(texts, (100, 310)), lines))
    assert [list(row) for row in table.grid] == texts


def test_lines_of_text_between_drawn_lines_are_one_row() -> None:
    texts = [(100, 100, "Name"), (200, 100, "Type"), (200, 116, "of ship"), (300, 100, "Notes")]
    texts += [
        (x, 140 + 20 * row, f"{text} {row}") for row in range(4) for x, text in ((100, "a"), (200, "b"), (300, "c"))
    ]
    lines = [*across([95, 132, 155, 175, 195, 215], 90, 400), *down([90, 190, 290, 400], 95, 215)]
    (table,) = find_tables(page(texts, lines))
    assert (table.grid[0], table.sure) == (("Name", "Type of ship", "Notes"), True)
