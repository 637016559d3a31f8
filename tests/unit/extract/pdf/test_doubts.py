"""A page whose tables, formulas or programs were probably read wrongly says so; a page that was read well does not."""

from __future__ import annotations

import pytest

from octavo.extract.extracted import BlockKind, Box, RegionKind
from octavo.extract.pdf.content import PageContent, Shape, TextRun, Word
from octavo.extract.pdf.doubts import has_moved_words, layout_doubts
from octavo.extract.pdf.figures import find_figures
from octavo.extract.pdf.letters import has_split_letters, has_unread_letters
from octavo.extract.pdf.page_batches import PageBlock
from octavo.extract.pdf.table_rows import Cell, Table, with_currencies

AREA = Box(50.0, 100.0, 500.0, 300.0)


def table(*rows: str, confidence: float = 0.6) -> Table:
    """A table whose cells are separated by "|". A cell "<" belongs to the cell to its left."""
    made: list[tuple[Cell, ...]] = []
    for row in rows:
        cells: list[Cell] = []
        for text in map(str.strip, row.split("|")):
            if text == "<":
                cells[-1] = Cell(cells[-1].text, AREA, cells[-1].columns + 1)
            else:
                cells.append(Cell(text, AREA if text else None))
        made.append(tuple(cells))
    return Table(AREA, tuple(made), confidence, sure=True)


def run(text: str, left: float, top: float, font: str = "Times") -> TextRun:
    box = Box(left, top, left + 5 * len(text), top + 10)
    return TextRun(box, text, 10.0, font, False, False, 0.0, None, (Word(*box, text),))


def block(text: str, region: RegionKind = RegionKind.BODY) -> PageBlock:
    return PageBlock(BlockKind.PARAGRAPH, text, AREA, 10.0, region=region)


def doubts(*tables: Table, blocks: tuple[PageBlock, ...] = (), runs: tuple[TextRun, ...] = ()) -> list[str]:
    page = PageContent(1, 595.0, 842.0, runs, (), ())
    return list(layout_doubts(page, tables, blocks, misses_rows=False))


@pytest.mark.parametrize(
    "rows",
    [
        ("Order: 417 | Billing Address", "Date: May 3 | Ann Lee", "VAT: 29 | 12 High Street"),
        ("Goods | | Price", "Salt | fine | 2.50", "Lime | coarse | 3.50"),
        ("Item | Unit price | < | Amount", "Report | 1 | 9.50 | 9.50", "Copies | 20 | 18.00 | 360.00"),
        ("Name | Address", "Ann | Near the Fun mall and", "Lee | enclave of Nehru", "Bob | Over the", "Ray | hill"),
        (
            "STATE OF OHIO REPORT of the year 2024, compiled and issued by its secretary of state | All",
            "A | 1",
            "B | 2",
        ),
    ],
)
def test_a_guessed_table_with_a_false_header_or_divided_rows_is_marked(rows: tuple[str, ...]) -> None:
    assert doubts(table(*rows)) == ["A table may have wrong rows or columns."]


@pytest.mark.parametrize(
    "rows",
    [
        ("Goods | Kind | Price", "Salt | fine | 2.50", "Lime | coarse | 3.50"),
        ("| 2023 | 2024", "Salt | 2.50 | 2.60", "Lime | 3.50 | 3.60"),
        ("| Sales | <", "| 2023 | 2024", "Salt | 2.50 | 2.60"),
        ("Name | Percent who borrowed | <", "| Public | Private", "All | 12 | 14"),
    ],
)
def test_a_table_with_a_plain_or_two_level_header_is_not_marked(rows: tuple[str, ...]) -> None:
    assert doubts(table(*rows)) == []


def test_a_drawn_grid_may_have_headings_with_values() -> None:
    assert doubts(table("Fee: 3 EUR | Address", "A | B", confidence=0.9)) == []


def test_a_fraction_in_a_line_is_marked() -> None:
    bar = Shape(Box(100, 204, 120, 204.5), filled=False, stroked=True, curved=False, colour=None)
    line = run("the value of this fraction is small", 60, 200)
    small = [
        run(text, 105, top)._replace(size=7.0, box=Box(105, top, 115, top + 7))
        for text, top in (("p-1", 197.5), ("p", 205.0))
    ]
    page = PageContent(1, 595.0, 842.0, (line, *small), (bar,), ())
    assert list(layout_doubts(page, (), (), misses_rows=False)) == ["Formulas on this page may be incomplete."]
    underlined = PageContent(1, 595.0, 842.0, (line, small[0]), (bar,), ())
    assert list(layout_doubts(underlined, (), (), misses_rows=False)) == []


def test_a_short_word_on_a_page_with_formulas_is_not_a_formula() -> None:
    assert doubts(runs=(run("x", 100, 200, "CMMI10"),), blocks=(block("Set"),)) == []
    assert doubts(runs=(run("x", 100, 200, "CMMI10"),), blocks=(block("x2"),)) != []


def test_a_large_symbol_outside_a_formula_is_marked() -> None:
    symbols = (run("X", 100, 200, "ABCDEF+CMEX10"), run("score", 120, 200))
    assert doubts(runs=symbols) == ["Formulas on this page may be incomplete."]
    formula = PageBlock(BlockKind.IMAGE, "", AREA, region=RegionKind.FORMULA, figure="formula")
    assert doubts(runs=symbols, blocks=(formula,)) == []


def test_numbered_lines_of_a_program_in_one_line_are_marked() -> None:
    order = ["The columns on this page may be in the wrong order."]
    assert doubts(blocks=(block("10: for u in M do 11: apply u 12: remember u"),)) == order
    assert doubts(blocks=(block("10: for u in M do\n11: apply u\n12: remember u"),)) == []
    assert doubts(blocks=(block("The train left at 9: it was late, and Luke 12: 3 was read."),)) == []


def test_neighbours_that_the_file_does_not_write_together_are_moved() -> None:
    own = "Kennzeichen\r\nsoweit bekannt\r\nVersicherungsnummer\r\nName of the per-\r\nson in charge"
    assert has_moved_words((block("Kennzeichen Versicherungsnummer soweit bekannt"),), own)
    assert not has_moved_words((block("Kennzeichen soweit bekannt"), block("Name of the person in charge")), own)


def test_words_of_other_cells_lists_and_fonts_are_not_moved() -> None:
    own = "one group\r\nprecompute for\r\no lime\r\no sand\r\nfind\r\nmortar"
    cells = PageBlock(BlockKind.TABLE, "| precompute for / one group | sand |", AREA, 10.0, region=RegionKind.TABLE)
    items = PageBlock(BlockKind.LIST, "- lime\n- sand\n- precompute", AREA, 10.0, region=RegionKind.LIST)
    assert not has_moved_words((cells, items, block("find mortar, find sand, caf\u00e9 lime")), own)


def test_an_accent_behind_its_word_is_a_letter_read_in_parts() -> None:
    assert has_split_letters("Telo sporocila\u02c7 je")
    assert not has_split_letters("Telo sporo\u010dila je, \u02c7 is a sign")


def test_signs_of_fonts_that_number_them_freely_are_unread() -> None:
    assert has_unread_letters("", "grown at Ts\u00bc640 and", 0)
    assert has_unread_letters("", "the sum of all \u00f01\u00de is", 0)
    assert not has_unread_letters("", "1\u00bc cups of flour, \u00bc teaspoon, \u00bd\u00bc\u00be", 0)
    assert not has_unread_letters("", "Vi\u00f0 \u00deingvelli, \u00fea\u00f0 er gott", 0)


def test_a_column_of_currency_signs_belongs_to_its_amounts() -> None:
    prices = table("Goods | | Price", "Salt | $ | 2.50", "All | < | ", "Lime | $ | 13.50")
    assert with_currencies(prices).grid == (("Goods", "Price"), ("Salt", "$ 2.50"), ("All", ""), ("Lime", "$ 13.50"))
    named = table("Goods | Currency | Price", "Salt | $ | 2.50")
    assert with_currencies(named) == named


def test_coloured_words_of_a_program_are_not_a_drawing() -> None:
    lines = [run("@route('/static/:x')", 60, 100 + 14 * line) for line in range(4)]
    shades = [
        Shape(Box(60 + 20 * part, one.box.top, 80 + 20 * part, one.box.bottom), True, False, False, "fff0f8ff")
        for one in lines
        for part in range(5)
    ]
    assert find_figures(PageContent(1, 300.0, 300.0, tuple(lines), tuple(shades), ()), []) == ()
    moved = [one._replace(box=one.box._replace(top=one.box.top + 150, bottom=one.box.bottom + 150)) for one in shades]
    assert find_figures(PageContent(1, 300.0, 300.0, tuple(lines), tuple(moved), ()), []) != ()


def test_a_caption_without_a_table_is_marked() -> None:
    words = [block(text) for text in ("Name of the ship", "invt Inverse", "sump Uniform", "sumz Normal")]
    caption = block("Table 1: Methods", RegionKind.CAPTION)
    assert doubts(blocks=(*words[:3], caption, *words)) == ["A table may have wrong rows or columns."]
    found = PageBlock(BlockKind.TABLE, "| a | b |", AREA)
    assert doubts(blocks=(*words[:2], found, caption, *words)) == []


def test_rows_outside_tables_are_marked_but_not_tables_of_contents() -> None:
    rows = [block(text, RegionKind.TABLE) for text in ("Pos Name Price", "Art no net", "Sum paid due")]
    assert doubts(blocks=tuple(rows)) == ["A table may have wrong rows or columns."]
    contents = [
        block(text, RegionKind.TABLE) for text in ("Quays 3", "Ships 4", "Notes ix", "number call () [Function]")
    ]
    assert doubts(blocks=tuple(contents)) == []


def test_many_short_labels_at_many_places_are_marked() -> None:
    def label(text: str, left: float) -> PageBlock:
        return PageBlock(BlockKind.PARAGRAPH, text, Box(left, 100.0 + left, left + 40, 110.0 + left), 10.0)

    diagram = tuple(label(f"set the valve {number}", 50.0 * number) for number in range(9))
    assert doubts(blocks=diagram) == ["The columns on this page may be in the wrong order."]
    assert doubts(blocks=tuple(label(f"part of {number}", 50.0) for number in range(9))) == []


def test_a_value_beside_the_heading_of_another_column_is_marked() -> None:
    assert doubts(table("Invoice Date | 11/03/2017 | Sales Contact", "Terms | 30 days | Ann Lee", "Ref. | C8 | 0472"))
    assert not doubts(table("Year | 1990 | 1992", "Coffee | 0.32 | 0.27", "Tea | 0.11 | 0.12"))


@pytest.mark.parametrize(("count", "marked"), [(3, False), (4, True)])
def test_short_texts_beside_code_that_was_read_apart_from_them_are_marked(count: int, marked: bool) -> None:
    texts = [
        PageBlock(BlockKind.PARAGRAPH, f"Open the {name} gate", Box(50.0, top, 180.0, top + 10.0), 10.0)
        for name, top in zip(("first", "second", "third", "fourth")[:count], range(100, 300, 40), strict=False)
    ]
    code = PageBlock(BlockKind.CODE, "open(gate)", Box(220.0, 95.0, 400.0, 280.0), 10.0)

    assert bool(doubts(blocks=(*texts, code))) is marked
