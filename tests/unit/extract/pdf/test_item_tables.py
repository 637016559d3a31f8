"""Items of invoices are rows of a table; labels, amounts and addresses are read as rows and blocks, not as columns."""

from __future__ import annotations

from pathlib import Path

from benchmarks.extraction.item_rows import Item, is_in_row, printed_items
from octavo.extract.extracted import BlockKind, Box, RegionKind
from octavo.extract.pdf.content import PageContent, Shape, TextRun, Word
from octavo.extract.pdf.doubts import has_lone_cells
from octavo.extract.pdf.item_tables import find_item_tables, is_figure
from octavo.extract.pdf.page_batches import PageBlock
from octavo.extract.pdf.regions import PageLayout, lay_out
from tests.support.pdf import Pdf, Words

PROSE = "The mason draws the putty with a wooden spade and works it with sharp sand"
HEADER = {70: "Pos", 120: "Number", 190: "Description", 340: "Price", 400: "Quantity", 490: "Amount"}


def run(text: str, left: float, top: float, size: float = 10.0, font: str = "Times") -> TextRun:
    """A run whose letters are half as wide as they are high."""
    words: list[Word] = []
    at = left
    for word in text.split():
        words.append(Word(at, top, at + len(word) * size / 2, top + size, word))
        at += (len(word) + 1) * size / 2
    box = Box(left, top, at - size / 2, top + size)
    return TextRun(box, text, size, font, bold=False, italic=False, rotation=0.0, tag=None, words=tuple(words))


def row(cells: dict[int, str], top: float, font: str = "Times") -> list[TextRun]:
    return [run(text, left, top, font=font) for left, text in cells.items()]


def page(runs: list[TextRun], shapes: tuple[Shape, ...] = ()) -> PageContent:
    return PageContent(1, 595.0, 842.0, tuple(runs), shapes, ())


def layout(runs: list[TextRun], shapes: tuple[Shape, ...] = ()) -> PageLayout:
    return lay_out(page(runs, shapes))


def texts(runs: list[TextRun], shapes: tuple[Shape, ...] = ()) -> list[str]:
    return [block.text for block in layout(runs, shapes).blocks]


def invoice(font: str = "Times") -> list[TextRun]:
    """Two items; their amounts are half a line lower, and details are below them with space between."""
    return [
        *row(HEADER, 100, font),
        *row({70: "1", 120: "TB100", 190: "Dividers", 340: "9.90", 400: "20 pcs"}, 130, font),
        *row({120: "4012345001235", 490: "198.00"}, 141, font),
        *row({190: "Gross price 9.90"}, 164, font),
        *row({70: "2", 120: "ARNR2", 190: "Yoghurt", 340: "5.50", 400: "50 pcs"}, 200, font),
        *row({120: "4000050986428", 490: "275.00"}, 211, font),
    ]


def test_items_without_rulings_are_rows_with_their_details() -> None:
    (table,) = find_item_tables(page(invoice()))
    assert table.grid == (
        ("Pos", "Number", "Description", "Price", "Quantity", "Amount"),
        ("1", "TB100 4012345001235", "Dividers Gross price 9.90", "9.90", "20 pcs", "198.00"),
        ("2", "ARNR2 4000050986428", "Yoghurt", "5.50", "50 pcs", "275.00"),
    )


def test_a_page_with_items_shows_a_table_and_no_lone_cells() -> None:
    shades = tuple(Shape(Box(left - 2, 96, left + 50, 114), True, False, False, "ffcceeff") for left in HEADER)
    found = layout([*row({70: "Invoice 471102"}, 60), *invoice(), *row({70: PROSE}, 300)], shades)
    assert [block.kind for block in found.blocks] == [BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.PARAGRAPH]
    assert not found.unsure


def test_the_second_line_of_a_heading_is_not_part_of_the_first_item() -> None:
    found = page([
        *row({70: "Pos", 120: "Description", 300: "Price", 420: "Amount"}, 100),
        *row({295: "without", 415: "without"}, 111),
        *row({295: "tax", 415: "tax per item"}, 122),
        *row({70: "1", 120: "Dividers", 300: "9.90", 420: "198.00"}, 136),
        *row({70: "2", 120: "Yoghurt", 300: "5.50", 420: "275.00"}, 160),
    ])  # fmt: skip
    (table,) = find_item_tables(found)
    assert table.grid[0] == ("Pos", "Description", "Price without tax", "Amount without tax per item")
    assert table.grid[1] == ("1", "Dividers", "9.90", "198.00")
    assert table.sure


def test_a_line_apart_from_a_header_of_two_lines_belongs_to_the_first_item() -> None:
    found = page([
        *row({70: "Pos", 120: "Description", 300: "Price", 420: "Amount"}, 100),
        *row({300: "net", 420: "net"}, 111),
        *row({120: "Contract"}, 126),
        *row({70: "1", 120: "Dividers", 300: "9.90", 420: "198.00"}, 142),
    ])  # fmt: skip
    (table,) = find_item_tables(found)
    assert table.grid[1] == ("1", "Contract Dividers", "9.90", "198.00")


def test_details_that_cross_the_columns_do_not_end_a_table() -> None:
    found = page([
        *row(HEADER, 100),
        *row({70: "1", 120: "TB100", 190: "Dividers", 340: "9.90", 400: "20 pcs", 490: "198.00"}, 130),
        *row({230: "* Period of delivery: from the first of May to June"}, 164),
        *row({70: "2", 120: "ARNR2", 190: "Yoghurt", 340: "5.50", 400: "50 pcs", 490: "275.00"}, 200),
    ])  # fmt: skip
    (table,) = find_item_tables(found)
    assert [row[0] for row in table.grid] == ["Pos", "1", "2"]
    assert table.grid[1][2] == "Dividers * Period of delivery: from the first of May to June"


def test_a_row_of_figures_outside_of_a_table_makes_the_page_unsure() -> None:
    lone = row({70: "2", 190: "Yoghurt", 340: "5.50", 400: "50 pcs", 490: "275.00"}, 100)
    prose = [run(PROSE, 70, top) for top in range(300, 400, 13)]
    assert layout([*lone, *row({190: "Banana"}, 111), *prose]).unsure
    assert not layout(prose).unsure


def test_two_headings_over_one_column_make_a_table_unsure() -> None:
    items = [
        *row({70: "1", 190: "Dividers", 340: "9.90", 470: "198.00"}, 130),
        *row({70: "2", 190: "Yoghurt", 340: "5.50", 470: "275.00"}, 150),
    ]
    (clear,) = find_item_tables(page([*row({70: "Pos", 190: "Description", 340: "Price", 470: "Sum"}, 100), *items]))
    (joined,) = find_item_tables(
        page([*row({70: "Pos", 190: "Description", 340: "Price", 470: "Tax", 495: "Sum"}, 100), *items])
    )
    assert clear.sure
    assert not joined.sure


def test_totals_with_their_labels_below_a_table_are_not_part_of_its_last_row() -> None:
    total = [run("Subtotal: 473.00 EUR", 70, 230), run("Total due: 567.60 EUR", 70, 243)]
    (table,) = find_item_tables(page([*invoice(), *total]))
    assert not any("473.00" in text or "567.60" in text for row in table.grid for text in row)


def ruled(cells: list[list[str]]) -> PageLayout:
    """A page with a table whose cells are all framed."""
    height, width = len(cells), len(cells[0])
    lines = [Box(60, 95 + 20 * at, 60 + 80 * width, 95 + 20 * at) for at in range(height + 1)]
    lines += [Box(60 + 80 * at, 95, 60 + 80 * at, 95 + 20 * height) for at in range(width + 1)]
    runs = [
        run(text, 65 + 80 * column, 100 + 20 * at)
        for at, texts in enumerate(cells)
        for column, text in enumerate(texts)
        if text
    ]
    return lay_out(PageContent(1, 595.0, 842.0, tuple(runs), (), tuple(lines)))


def test_an_amount_beside_the_column_of_its_heading_makes_a_page_unsure() -> None:
    head, first = ["Item", "Price", "", "Amount"], ["Dividers", "9.90", "", "19.80"]
    assert ruled([head, first, ["Yoghurt", "", "5.50", "11.00"]]).unsure
    assert not ruled([head, first, ["Yoghurt", "5.50", "", "11.00"]]).unsure


def test_a_sentence_that_was_cut_into_cells_makes_a_page_unsure() -> None:
    rows = [["Tax", "A", "B", "C", "D", "E"], *([f"Row {at}", "1.00", "2.00", "", "", ""] for at in range(5))]
    assert not ruled(rows).unsure
    assert ruled([*rows, ["Add all", "columns", "of the", "table", "and enter", "total"]]).unsure


def test_a_table_ends_before_text_below_it() -> None:
    (table,) = find_item_tables(page([*invoice(), *row({70: PROSE}, 240), *row({70: "Notes"}, 300)]))
    assert table.box.bottom < 230


def test_a_header_of_several_lines_names_every_column_once() -> None:
    header = {70: "Pos", 190: "Description", 340: "Price", 490: "Amount"}
    body = [*row({70: "1", 190: "Ladder", 340: "12.00", 490: "24.00"}, 140)]
    (table,) = find_item_tables(
        page([*row({120: "Number of"}, 94), *row(header, 100), *row({120: "article"}, 106), *body])
    )
    assert table.grid[0] == ("Pos", "Number of article", "Description", "Price", "Amount")


def test_headings_that_nearly_touch_are_divided_at_their_columns() -> None:
    header = {45: "Article", 300: "Quantity", 400: "Tax Price with tax"}
    items = [row({45: "Ladder", 300: "1", 400: "21%", 470: "399.00"}, 130 + 20 * at) for at in range(3)]
    (table,) = find_item_tables(page([*row(header, 100), *(one for item in items for one in item)]))
    assert table.grid[0] == ("Article", "Quantity", "Tax", "Price with tax")
    assert table.grid[1] == ("Ladder", "1", "21%", "399.00")


def test_prose_in_three_columns_has_no_items() -> None:
    words = ["the old kiln beside", "a storm had lifted", "stack every load of"]
    runs = [run(text, 60 + 160 * at, 100 + 13 * line) for line in range(8) for at, text in enumerate(words)]
    assert find_item_tables(page(runs)) == ()


def test_figures_are_amounts_quantities_and_dates_but_not_names() -> None:
    assert all(map(is_figure, ("198,00", "€ 399,00", "20 Stk", "19 %", "$1.50", "05.03.2018", "-2,90", "EUR 5.00")))
    assert not any(map(is_figure, ("TB100A4", "Service A", "Apple iPad Air 16 GB", "9" * 100_000)))


def test_amounts_beside_their_labels_are_read_in_the_same_row() -> None:
    labels = [
        "Insurance of the building for one year",
        "Insurance of the garden and of the trees",
        "Tax on both insurances",
    ]
    runs = [run(text, 60, 100 + 40 * at) for at, text in enumerate(labels)]
    runs += [run(text, 440, 100 + 80 * at) for at, text in enumerate(["1.000,00", "163,40"])]
    runs += [run(PROSE, 60, 220 + 13 * at) for at in range(6)]
    assert texts(runs)[:3] == [f"{labels[0]} 1.000,00", labels[1], f"{labels[2]} 163,40"]


def test_labels_and_their_values_are_lines() -> None:
    runs = [*row({70: "Number:", 260: "549910"}, 100), *row({70: "Address:", 260: "Station Road 20"}, 118)]
    runs += [*row({260: "80333 Munich"}, 130), *row({70: "Tax number:", 260: "201/113"}, 148)]
    assert texts(runs) == ["Number: 549910\nAddress: Station Road 20 80333 Munich\nTax number: 201/113"]


def test_a_letterhead_is_not_mixed_into_the_address_beside_it() -> None:
    address = ["Theodor Est", "Station Road 42", "88802 Springfield"]
    sender = ["Example Ltd", "Corner 12", "12345 Townhouse", "phone 555 23 78", "fax 555 23 79", "info at example"]
    runs = [run("2015-10-08", 64, 57), run("Example Ltd, Corner 12, 12345 Townhouse", 100, 148, 8)]
    runs += [run(text, 70, 165 + 34 * at, 12) for at, text in enumerate(address)]
    runs += [run(text, 450, top, 8) for top, text in zip((120, 131, 170, 181, 220, 231), sender, strict=True)]
    runs += [run(PROSE, 60, 360 + 13 * at) for at in range(3)]
    whole = " ".join(" ".join(texts(runs)).split())
    assert " ".join(address) in whole
    assert " ".join(sender) in whole


def test_an_address_above_other_short_lines_stays_above_them() -> None:
    runs = [run("Free Service", 40, 84), run("75371 Paris", 40, 96)]
    runs += [
        run(text, 300, 150 + 11 * at)
        for at, text in enumerate(["Alexis de Lattre", "35 Rue du logiciel", "69100 Lyon"])
    ]
    runs += [run(text, 40, 254 + 11 * at) for at, text in enumerate(["Contact by mail", "alexis at example"])]
    runs += [run(text, 255, 254 + 11 * at) for at, text in enumerate(["Name of the member", "Alexis de Lattre"])]
    whole = " ".join(texts(runs))
    assert whole.index("69100 Lyon") < whole.index("Contact by mail")


def test_a_shaded_cell_of_a_row_is_not_a_box() -> None:
    shade = Shape(Box(110, 90, 180, 130), filled=True, stroked=False, curved=False, colour="ffcceeff")
    runs = [run("Number", 115, 95), run("of article", 115, 112), *row({60: "Pos", 300: "Text"}, 104)]
    runs += [run(PROSE, 60, 300 + 13 * at) for at in range(6)]
    assert all(block.region is not RegionKind.BOX for block in layout(runs, (shade,)).blocks)


def test_typed_invoices_are_not_code() -> None:
    found = layout([*row({70: "Supplier Limited"}, 50, "Courier"), *invoice("Courier")]).blocks
    assert [block.kind for block in found] == [BlockKind.PARAGRAPH, BlockKind.TABLE]


def lone(text: str, left: float, top: float) -> PageBlock:
    return PageBlock(BlockKind.PARAGRAPH, text, Box(left, top, left + 40, top + 10))


def test_words_that_are_alone_beside_each_other_make_a_page_unsure() -> None:
    cells = [lone("Price", 60, 100), lone("Amount", 200, 100), lone("9.90", 60, 120), lone("198.00", 200, 120)]
    assert has_lone_cells(cells)
    assert not has_lone_cells(cells[:2])
    assert not has_lone_cells([lone(word, 60, 100 + 40 * at) for at, word in enumerate(("Seller", "Buyer", "Notes"))])


def test_the_measurement_finds_items_in_rows(tmp_path: Path) -> None:
    assert is_in_row(Item("Dividers", 1198.0), "| 1 | Dividers A4 | 1.198,00 € |")
    assert not is_in_row(Item("Dividers", 198.0), "| 1 | Dividers A4 | 275.00 |")
    path = tmp_path / "plain.pdf"
    path.write_bytes(Pdf([[Words("No embedded file", 60, 100)]]).write())
    assert list(printed_items(path)) == []


def test_first_item_can_begin_above_its_figures() -> None:
    header = row({70: "Kind", 220: "Goods", 300: "Base", 400: "Rate", 490: "Tax"}, 100)
    item = [*row({70: "Sales tax (E)"}, 123), *row({70: "Free of tax", 300: "380.00", 400: "0", 490: "0.00"}, 136)]
    (table,) = find_item_tables(page([*header, *item, *row({70: "by law"}, 149)]))
    assert table.grid[1] == ("Sales tax (E) Free of tax by law", "", "380.00", "0", "0.00")


def test_a_line_of_cells_is_part_of_a_table_and_not_a_title() -> None:
    cells = layout([*row({70: "Description", 300: "Due", 420: "Part"}, 100), *row({70: PROSE}, 140)]).blocks
    assert [block.region for block in cells] == [RegionKind.TABLE, RegionKind.BODY]
    title = layout([*row({70: "Description of the payment"}, 100), *row({70: PROSE}, 140)]).blocks
    assert [block.region for block in title] == [RegionKind.BODY, RegionKind.BODY]


def test_labels_in_one_cell_and_parts_of_formulas_make_a_page_unsure() -> None:
    stacked = [
        *row({70: "Bill to", 300: "Date:", 420: "1 May"}, 100),
        *row({70: "Taylor", 300: "Terms:", 420: "30 days"}, 111),
        *row({70: "Sum", 300: "Due:", 420: "127.50"}, 140),
    ]
    lines = tuple(Box(60, y, 500, y) for y in (95, 130, 155))
    sides = tuple(Box(x, 95, x, 155) for x in (60, 290, 410, 500))
    assert lay_out(PageContent(1, 595.0, 842.0, tuple(stacked), (), (*lines, *sides))).unsure
    prose = [run(PROSE, 70, top) for top in (100, 113, 126)]
    assert layout([*prose, run("i", 300, 160, font="LMMathItalic10"), run(PROSE, 70, 200)]).unsure
    assert not layout([*prose, run("i", 300, 160), run(PROSE, 70, 200)]).unsure


def test_a_heading_that_is_read_twice_makes_the_order_of_columns_unsure() -> None:
    prose = [run(PROSE, 70, top) for top in (140, 153, 166)]
    assert layout([*row({70: "Attributes", 150: "Attributes"}, 100), *prose]).unsure
    assert not layout([*row({70: "Attributes", 150: "Methods"}, 100), *prose]).unsure


def test_amounts_below_headings_in_one_cell_make_a_page_unsure() -> None:
    cells = [("Kind", "Base", "Tax"), ("", "198.00", "37.62"), ("Tax", "", ""), ("Sum", "198.00", "37.62")]
    texts = [
        (left, 100 + 13 * at + 20 * (at > 1), text)
        for at, row in enumerate(cells)
        for left, text in zip((70, 200, 320), row, strict=True)
    ]
    lines = [Box(60, y, 420, y) for y in (95, 130, 158, 175)] + [Box(x, 95, x, 175) for x in (60, 190, 310, 420)]
    runs = tuple(run(text, left, top) for left, top, text in texts if text)
    assert lay_out(PageContent(1, 595.0, 842.0, runs, (), tuple(lines))).unsure


def test_a_drawn_line_ends_an_item() -> None:
    items = [*row(HEADER, 100), *row({70: "1", 120: "A1", 190: "Lime", 340: "2.00", 400: "3", 490: "6.00"}, 120)]
    items += row({190: "Ordered by Ann"}, 150) + row(
        {70: "2", 120: "A2", 190: "Sand", 340: "1.00", 400: "5", 490: "5.00"}, 165
    )
    rule = Box(60.0, 163.0, 540.0, 163.0)
    for lines, place in (((), 2), ((Box(60.0, 115.0, 540.0, 115.0), rule), 1)):
        (table,) = find_item_tables(PageContent(1, 595.0, 842.0, tuple(items), (), lines))
        assert "Ordered by Ann" in table.grid[place][2]


def test_values_that_begin_with_a_colon_are_not_a_table() -> None:
    labels = [("Order", "B123"), ("Delivery note", "L8765"), ("Date of delivery", "05.08.2018"), ("Currency", "EUR")]
    runs = [one for at, (name, value) in enumerate(labels) for one in row({60: name, 220: f": {value}"}, 100 + 13 * at)]
    (found,) = layout(runs).blocks
    assert found.text.split("\n") == [f"{name} : {value}" for name, value in labels]
