"""Headings are distinguished from the short lines of invoices and forms, and are whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from octavo.extract.extracted import BlockKind, Box, RegionKind
from octavo.extract.pdf.headings import body_size, heading_levels, is_form, is_likely, join_headings
from octavo.extract.pdf.page_batches import PageBlock, PageText
from octavo.extract.pdf.running_headers import Place, running_blocks, without_joined_headers

PROSE = (
    "Lime is slaked in a pit that is dug one year before the wall is begun, because fresh lime cracks. " * 3
).strip()


def line(text: str, top: float, size: float = 10.0, *, bold: bool = False, left: float = 60.0) -> PageBlock:
    box = Box(left, top, left + len(text) * size / 2, top + size)
    return PageBlock(BlockKind.PARAGRAPH, text, box, size, bold)


def prose(top: float, size: float = 10.0) -> PageBlock:
    return PageBlock(BlockKind.PARAGRAPH, PROSE, Box(60.0, top, 500.0, top + 50), size, lines=4)


def page(*blocks: PageBlock) -> PageText:
    return PageText(1, "1", 595.0, 842.0, blocks)


def found(*blocks: PageBlock) -> list[str]:
    pages = [page(*blocks)]
    body = body_size(pages)
    pages = list(join_headings(pages, body))
    return [pages[0].blocks[place.block].text for place in heading_levels(pages, body, {}, ())]


def table(top: float, size: float, rows: int = 20) -> PageBlock:
    text = "\n".join(["| Pieces | Thing | Price |", "| --- | --- | --- |", *["| 2 | Brush | 4,00 |"] * rows])
    return PageBlock(BlockKind.TABLE, text, Box(60.0, top, 500.0, top + 200), size)


def test_the_letters_of_tables_count_for_the_size_of_an_invoice() -> None:
    assert body_size([page(line("Brushes Limited, Harbour Street", 20, 7.5), table(100, 12.0))]) == 12.0


def test_tables_in_small_print_do_not_make_a_report_large() -> None:
    assert body_size([page(prose(100), table(200, 7.0, rows=60))]) == 10.0


@pytest.mark.parametrize(
    "text",
    [
        "Page 1 of 2",
        "Seite 1/1",
        "Total 59,50 €",
        "88802 Spielkreis",
        "410 Terry Ave North Seattle, WA 98109",
        "Name: Ada Example Contact: Ben Sample",
        "sales@brushes.example",
        "Tel. +49 9831 505",
        "IBAN DE88 2008 0000 0970 3757 00",
        "5 May 2017",
        "Source: Eurostat, 1998",
        r"Healthy Lives \_\_\_\_\_",
    ],
)
def test_labels_amounts_and_addresses_are_never_headings(text: str) -> None:
    assert not is_likely(line(text, 100, 16.0, bold=True), 10.0)


@pytest.mark.parametrize("text", ["1.5 Bias: What We Know", "The May Revolution", "Page Tables", "Two dollars of 1990"])
def test_titles_that_resemble_labels_are_headings(text: str) -> None:
    assert is_likely(line(text, 100, 16.0, bold=True), 10.0)


@pytest.mark.parametrize(
    ("text", "size", "bold"), [("heading level 1.0", 16.0, False), ("FACTUUR.", 20.0, True), ("2.1.1 Lime", 8.7, True)]
)
def test_unusual_headings_are_found(text: str, size: float, *, bold: bool) -> None:
    assert is_likely(line(text, 100, size, bold=bold), 10.0)


def test_the_lines_of_an_invoice_need_more_than_bold_letters() -> None:
    blocks = [
        line("Invoice FA-2017-0008", 60, 14.0, bold=True),
        line("Customer number: 2", 90, bold=True),
        line("Your order AB321", 110, bold=True),
        line("Service A", 130, bold=True),
        line("12,00", 130, left=400.0),
        line("Delivery address", 160, bold=True),
        line("Theodor Est, Harbour", 173),
        table(300, 10.0),
    ]
    assert is_form([page(*blocks)])
    assert found(*blocks) == ["Invoice FA-2017-0008", "Delivery address"]


def test_a_heading_of_two_lines_is_one_heading() -> None:
    first, second = (
        line("2 Quantifying the Effect of Driving", 60, 16.0, bold=True),
        line("Behaviour", 78, 16.0, bold=True),
    )
    assert found(first, second, prose(110)) == ["2 Quantifying the Effect of Driving Behaviour"]


def test_a_heading_divided_inside_a_word_is_whole() -> None:
    first, second = line("B Literacy and Stock Mar-", 60, 16.0, bold=True), line("ket Shares", 88, 16.0, bold=True)
    assert found(first, second, prose(130)) == ["B Literacy and Stock Market Shares"]


def test_a_number_beside_its_heading_is_part_of_it() -> None:
    number, title = line("1.2", 60, 14.0, bold=True), line("Linear Widths", 60, 14.0, bold=True, left=140.0)
    assert found(number, title, prose(90)) == ["1.2 Linear Widths"]


def test_two_numbered_headings_are_not_joined() -> None:
    blocks = [line("2 Methods of the masons", 60, 14.0, bold=True), line("2.1 Lime", 78, 14.0, bold=True)]
    assert found(*blocks, prose(110)) == ["2 Methods of the masons", "2.1 Lime"]


def test_an_italic_line_above_a_paragraph_is_a_heading() -> None:
    title = PageBlock(BlockKind.PARAGRAPH, "Elastic Stop Nut", Box(60.0, 160.0, 140.0, 170.0), 10.0, italic=True)
    assert found(prose(100), title, prose(175)) == ["Elastic Stop Nut"]
    assert found(line("which is the case of the", 145), title, prose(175)) == []


def test_the_headings_of_a_single_page_have_levels_below_its_title() -> None:
    """Only the largest style can be the title above the first level."""
    titles = [
        line("The Harbour", 20, 24, bold=True),
        line("The Quay", 60, 18, bold=True),
        line("Lamps", 200, 14, bold=True),
    ]
    pages = [page(titles[0], titles[1], prose(100), titles[2], prose(240))]
    assert list(heading_levels(pages, 10.0, {}, ()).values()) == [1, 1, 2]


def test_a_running_header_may_be_below_a_wide_margin() -> None:
    def numbered(number: int) -> PageText:
        header = line("A study of harbours", 130)
        return PageText(number, str(number), 595.0, 842.0, (header, prose(200), prose(300)))

    assert running_blocks([numbered(number) for number in range(1, 5)], 10.0) == {Place(index, 0) for index in range(4)}


def test_headings_that_end_in_numbers_are_no_contents() -> None:
    titles = [line(f"Heading {number}", 100 + 150 * number, 14.0) for number in range(1, 5)]
    blocks = [one for title in titles for one in (title, prose(title.box.bottom + 20 if title.box else 0))]
    assert found(*blocks) == [title.text for title in titles]


def test_line_at_the_upper_edge_that_repeats_the_title_is_a_header() -> None:
    pages = [page(line("Tides and locks", 20, 9.0), line("Tides and locks", 70, 18.0), prose(120))]
    assert running_blocks(pages, 10.0) == {Place(0, 0)}


def test_titles_of_algorithms_are_captions() -> None:
    assert found(line("Algorithm 3 Slaking of lime", 100, 11.0, bold=True), prose(130), prose(200)) == []


def test_abbreviation_below_a_heading_is_text() -> None:
    assert found(line("License", 100, 16.0), line("BSD", 130), prose(160), prose(230)) == ["License"]


def test_lines_at_the_edges_of_both_pages_of_a_print_are_headers() -> None:
    printed = line("26/03/2024 example.org/terms", 15, 8.0)
    pages = [page(printed, prose(120)), page(printed, prose(120))]
    assert running_blocks(pages, 10.0) == {Place(0, 0), Place(1, 0)}
    lower = [page(line("Brushes Limited", 60, 8.0), prose(120))] * 2
    assert running_blocks(lower, 10.0) == set()


def test_large_words_at_the_very_edge_of_each_page_are_a_running_header() -> None:
    words = ("APPENDIX A Highlights of 2011", "Highlights of 2011 APPENDIX A", "APPENDIX A Highlights of 2011")
    pages = [page(line(text, 30, 19.0, bold=True), prose(120), prose(200)) for text in words]
    assert running_blocks(pages, 10.0) == {Place(index, 0) for index in range(3)}
    slides = [page(line("Review of the year", 60, 19.0), prose(120), prose(200)) for _ in range(3)]
    assert not running_blocks(slides, 10.0)


def test_labels_on_two_lines_are_not_a_heading() -> None:
    labels = line("Currency: EUR\nDate of delivery: 21.05.2018", 60, 14.0, bold=True)
    assert found(labels, prose(120), prose(200)) == []


def test_lines_at_the_same_height_of_the_edge_of_each_page_are_headers() -> None:
    texts = ("3. Information on zoonoses", "Salmonella 3.1", "3. Information on zoonoses")
    pages = [page(line(text, 30, 12.0), prose(120), prose(200)) for text in texts]
    assert running_blocks(pages, 10.0) == {Place(index, 0) for index in range(3)}
    close = [page(line(text, 30, 12.0), prose(50), prose(200)) for text in texts]
    assert not running_blocks(close, 10.0)


def test_italic_lines_with_a_number_above_a_paragraph_are_headings() -> None:
    titles = [replace(line(text, top, left=110.0), italic=True) for text, top in (("6. Scope", 60), ("7. Items", 180))]
    assert found(titles[0], prose(100), titles[1], prose(220)) == ["6. Scope", "7. Items"]


def test_a_date_with_its_weekday_is_not_a_heading() -> None:
    assert not is_likely(line("Monday, December 5, 2011", 60, 14.0), 10.0)


def test_a_logo_beside_a_title_does_not_make_it_a_cell() -> None:
    logo = PageBlock(BlockKind.IMAGE, "", Box(60.0, 20.0, 120.0, 80.0), figure="photo")
    rest = line("Name: Ada Example", 200), line("Age: 52", 220)
    assert found(logo, line("Harbour Police", 30, 14.0, bold=True, left=250), *rest) == ["Harbour Police"]
    beside = line("Number 17", 30, left=60)
    assert found(beside, line("Harbour Police", 30, 14.0, bold=True, left=250), *rest) == []


def test_centred_bold_lines_of_a_form_are_headings_even_with_numbers() -> None:
    rest = line("Order total", 200), line("Visa ending in four", 220, left=405)
    assert found(line("Shipped on May 4", 100, 12.0, bold=True, left=232), *rest) == ["Shipped on May 4"]
    assert found(line("Shipped on May 4", 100, 12.0, bold=True), *rest) == []


def test_centred_names_of_sections_are_headings() -> None:
    assert found(line("Article 4: Scope", 40, left=240), prose(60)) == ["Article 4: Scope"]
    assert found(line("Article 4: Scope", 40), prose(60)) == []
    assert found(line("Clause of a letter", 40, left=240), prose(60)) == []


def test_a_logo_at_the_edge_of_each_page_is_shown_once() -> None:
    logo = PageBlock(BlockKind.IMAGE, "", Box(60.0, 20.0, 120.0, 80.0), figure="photo")
    chart = replace(logo, box=Box(60.0, 300.0, 220.0, 480.0))
    pages = [page(logo, prose(120), chart) for _ in range(4)]
    assert running_blocks(pages, 10.0) == {Place(1, 0), Place(2, 0), Place(3, 0)}


def test_only_very_large_letters_in_a_box_are_a_heading() -> None:
    boxed = [replace(line("Practical Tips", 40, size, bold=True), region=RegionKind.BOX) for size in (12.0, 18.0)]
    assert [found(one, prose(80)) for one in boxed] == [[], ["Practical Tips"]]


def test_paragraphs_of_two_lines_are_prose() -> None:
    text = (
        "Lime is slaked in a pit that is dug one year before the wall is begun, because fresh lime cracks in the frost."
    )
    short = replace(prose(60), text=text, lines=2)
    assert not is_form([page(short, replace(short, box=Box(60.0, 120.0, 500.0, 150.0)))])
    assert is_form([page(replace(short, text="Ada Example Limited of the Upper Quay " * 3))])


def test_the_term_of_a_definition_is_not_a_heading() -> None:
    definition = replace(prose(112), box=Box(84.0, 112.0, 500.0, 162.0))
    assert found(prose(20), line("--quiet", 100, bold=True), definition) == []
    assert found(prose(20), line("Quiet harbours", 100, bold=True), prose(112)) == ["Quiet harbours"]


def test_the_title_below_the_number_of_a_table_is_a_caption() -> None:
    label = replace(line("Table 1.", 100), region=RegionKind.CAPTION)
    assert found(prose(20), label, line("Ships by age of their owners", 111, 12.0, bold=True), prose(130)) == []


@pytest.mark.parametrize(
    ("text", "size"),
    [("matrix_create — Creates a matrix from numbers", 14.0), ("The result of one run.", 14.0), ("§ 4 Landing.", 9.0)],
)
def test_names_of_functions_large_sentences_and_paragraph_signs_are_headings(text: str, size: float) -> None:
    assert found(prose(20), line(text, 100, size, bold=True), prose(130)) == [text]


def test_a_sentence_that_begins_with_a_letter_and_lines_of_contents_are_not_headings() -> None:
    assert found(prose(20), line("A facility has to report if:", 100, 11.0, bold=True), prose(130)) == []
    contents = line("4.2 Notes on quays 6\n4.3 Ships 6", 100, bold=True)
    assert found(prose(20), contents, prose(130)) == []


def test_bookmarks_of_one_level_for_headings_of_three_sizes_do_not_set_levels() -> None:
    sizes = (24.0, 18.0, 14.0, 18.0)
    pages = [
        page(prose(20), *(line(f"Quay of {size}", 100 + 40 * at, size) for at, size in enumerate(sizes)), prose(300))
    ]
    marked = {Place(0, at): 1 for at in range(1, 5)}
    assert list(heading_levels(pages, 10.0, marked, ()).values()) == [1, 1, 2, 1]


def test_names_below_a_centred_title_are_not_a_heading() -> None:
    title = line("Simulating mutations", 40, 17.0, left=200)
    assert found(title, line("Julian Zhou and Ann Lee", 70, 12.0, left=216), prose(130)) == ["Simulating mutations"]


def test_a_chapter_and_its_title_are_one_heading() -> None:
    chapter, title = line("Chapter 3", 60, 20, bold=True), line("Global Variables", 110, 24, bold=True)
    assert found(chapter, title, prose(200), prose(300)) == ["Chapter 3 Global Variables"]
    beside = line("3", 60, 60, bold=True), line("Installing the package", 70, 24, bold=True, left=120)
    assert found(*beside, prose(200), prose(300)) == ["3 Installing the package"]


def test_a_small_bold_line_with_space_above_it_is_a_heading() -> None:
    text = prose(100, 12.0), line("Density Value", 168, 10, bold=True), prose(184, 12.0), prose(260, 12.0)
    assert found(*text) == ["Density Value"]
    close = prose(100, 12.0), line("Density Value", 154, 10, bold=True), prose(180, 12.0), prose(260, 12.0)
    assert found(*close) == []
    note = prose(100, 12.0), line("Density Value", 168, 10, bold=True), prose(184, 10.0), prose(260, 12.0)
    assert found(*note) == []


def test_the_name_of_a_command_in_large_bold_letters_is_a_heading() -> None:
    assert found(line("quotient", 60, 12, bold=True), prose(100), prose(200)) == ["quotient"]
    assert found(line("of quotients", 60, 12, bold=True), prose(100), prose(200)) == []


def test_a_sentence_in_japanese_is_not_a_heading() -> None:
    assert found(line("この節では品詞を定義した．", 60, 12, bold=True), prose(100), prose(200)) == []  # noqa: RUF001


def headed_pages(*texts: str) -> list[PageText]:
    return [
        PageText(number, str(number), 595.0, 842.0, (line(text, 120, 9), prose(200), prose(300)))
        for number, text in enumerate(texts, 4)
    ]


def test_lines_with_the_numbers_of_their_pages_are_running_headers() -> None:
    pages = headed_pages("4 MASONRY AND LIME", "THE PIT 5", "6 MASONRY AND LIME", "THE WALL 7")
    assert running_blocks(pages, 10.0) == {Place(index, 0) for index in range(4)}
    others = headed_pages("Figure 9 has a note", "In 1904", "6 bricks are used", "A wall of 3")
    assert running_blocks(others, 10.0) == set()


def test_a_running_header_is_removed_from_the_paragraph_it_was_joined_with() -> None:
    pages = headed_pages("4 MASONRY AND LIME", "5 MASONRY AND LIME", "6 MASONRY AND LIME", "7 MASONRY AND LIME")
    joined = replace(prose(120), text=f"8 MASONRY AND LIME {PROSE}")
    pages.append(PageText(8, "8", 595.0, 842.0, (joined, prose(200), prose(300))))
    cleaned = without_joined_headers(pages, running_blocks(pages, 10.0))
    assert cleaned[-1].blocks[0].text == PROSE
    assert cleaned[:-1] == pages[:-1]
