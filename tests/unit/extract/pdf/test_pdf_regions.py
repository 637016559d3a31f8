"""A page is read as its regions: columns, boxes, paragraphs, notes and edges, in the order in which people read."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from octavo.extract.extracted import BlockKind, Box, Quality, RegionKind
from octavo.extract.pdf.columns import find_columns, segments_in
from octavo.extract.pdf.content import PageContent, Shape, TextRun, Word, text_run, with_right_sizes, with_right_weights
from octavo.extract.pdf.letters import (
    Vocabulary,
    is_garbled,
    join_lines,
    with_right_ligatures,
    with_right_marks,
    with_whole_korean,
    without_wide_spaces,
)
from octavo.extract.pdf.lines import Segment, line_numbers, segments_of
from octavo.extract.pdf.page_batches import PageBlock
from octavo.extract.pdf.page_text import read_batch
from octavo.extract.pdf.regions import lay_out, turn_of
from tests.support.pdf import Part, Pdf, Picture, Words, paragraph, read_pdf

LEFT = [
    "Amber barges leave the quay at",
    "dawn and carry gravel to the",
    "island, where masons wait for it",
    "and stack every load beside the",
]
RIGHT = [
    "Zinc roofs on the upper street",
    "were replaced last autumn after",
    "a storm had lifted two of them",
    "into the orchard by the river",
]
WIDE = [
    "Lime is slaked in a pit that is dug one year before the wall is begun, because",
    "fresh lime cracks when the frost comes to it and leaves a joint that crumbles in",
    "the hand of the mason who draws the putty.",
]
PITCH = 13.0


def run(text: str, left: float, top: float, size: float = 10.0, *, font: str = "Times", bold: bool = False) -> TextRun:
    """A run whose letters are half as wide as they are high."""
    words: list[Word] = []
    at = left
    for word in text.split():
        words.append(Word(at, top, at + len(word) * size / 2, top + size, word))
        at += (len(word) + 1) * size / 2
    box = Box(left, top, at - size / 2, top + size)
    return TextRun(box, text, size, font, bold, italic=False, rotation=0.0, tag=None, words=tuple(words))


def lines(texts: list[str], left: float, top: float, size: float = 10.0) -> list[TextRun]:
    return [run(text, left, top + PITCH * index, size) for index, text in enumerate(texts)]


def blocks(runs: list[TextRun], shapes: tuple[Shape, ...] = ()) -> tuple[PageBlock, ...]:
    return lay_out(PageContent(1, 595.0, 842.0, tuple(runs), shapes, ())).blocks


def texts(runs: list[TextRun], shapes: tuple[Shape, ...] = ()) -> list[str]:
    return [block.text for block in blocks(runs, shapes)]


@pytest.mark.parametrize("gutter", [10.0, 24.0])
def test_columns_written_alternately_are_read_one_after_the_other(gutter: float) -> None:
    widest = max(len(line) for line in LEFT) * 5.0
    pairs = zip(lines(LEFT, 60, 200), lines(RIGHT, 60 + widest + gutter, 200), strict=True)
    assert texts([one for pair in pairs for one in pair]) == [" ".join(LEFT), " ".join(RIGHT)]


def test_columns_whose_lines_are_not_level_are_read_one_after_the_other() -> None:
    assert texts([*lines(LEFT, 60, 200), *lines(RIGHT, 260, 206)]) == [" ".join(LEFT), " ".join(RIGHT)]


@pytest.mark.parametrize("lengths", list(product((4, 6, 8, 12), repeat=3)))
def test_three_columns_are_three_columns_and_none_is_a_note_beside_the_others(lengths: tuple[int, int, int]) -> None:
    """The two others together are more than twice as wide as each of them."""
    columns = [(column * 3)[:length] for column, length in zip((LEFT, RIGHT, LEFT), lengths, strict=True)]
    runs = [one for place, column in enumerate(columns) for one in lines(column, 60 + 170 * place, 200)]
    found = blocks(runs)
    assert [block.text for block in found] == [" ".join(column) for column in columns]
    assert {block.region for block in found} == {RegionKind.BODY}


def test_a_heading_over_both_columns_separates_them() -> None:
    heading = run("A heading that is wider than one of the columns", 60, 280, 12, bold=True)
    below = [*lines(LEFT, 60, 310), *lines(RIGHT, 260, 310)]
    found = texts([*lines(LEFT, 60, 200), *lines(RIGHT, 260, 200), heading, *below])
    assert found == [" ".join(LEFT), " ".join(RIGHT), heading.text, " ".join(LEFT), " ".join(RIGHT)]


def test_a_filled_box_beside_the_text_comes_after_its_paragraph() -> None:
    body = [*lines(WIDE, 60, 200), *lines(WIDE, 60, 260)]
    note = lines(["Keep in mind", "Always wear", "gloves when", "you work."], 482, 200)
    fill = Shape(Box(475, 195, 570, 255), filled=True, stroked=False, curved=False, colour="ffd9e6ff")
    found = blocks([*body[:2], *note[:2], *body[2:], *note[2:]], (fill,))
    assert [block.region for block in found] == [RegionKind.BODY, RegionKind.BOX, RegionKind.BODY]
    assert found[1].text.startswith("Keep in mind")
    assert found[1].text.endswith("you work.")


def test_notes_in_a_narrow_margin_are_boxes() -> None:
    note = lines(["a short note", "in the margin"], 490, 213, 8)
    found = blocks([*lines(WIDE * 3, 60, 200), *note])
    assert [block.region for block in found] == [RegionKind.BODY, RegionKind.BOX, RegionKind.BODY, RegionKind.BODY]


def test_cells_of_a_form_are_read_across() -> None:
    rows = [("Name:", "Ada"), ("Year:", "1815"), ("Town:", "London"), ("Work:", "Engine")]
    runs = [
        one for index, (name, value) in enumerate(rows)
        for one in (run(name, 60, 200 + PITCH * index), run(value, 160, 200 + PITCH * index))
    ]  # fmt: skip
    assert "Name: Ada" in " ".join(texts(runs)).replace("\n", " ")


def test_paragraphs_are_split_by_a_larger_gap() -> None:
    assert texts([*lines(WIDE, 60, 200), *lines(WIDE, 60, 200 + 4 * PITCH)]) == [" ".join(WIDE)] * 2


def test_paragraphs_are_split_by_the_indent_of_their_first_line() -> None:
    indented = [run(WIDE[0], 72, 200 + 3 * PITCH), *lines(WIDE[1:], 60, 200 + 4 * PITCH)]
    assert texts([*lines(WIDE, 60, 200), *indented]) == [" ".join(WIDE)] * 2


def test_paragraphs_are_split_after_a_short_last_line() -> None:
    assert texts([*lines(WIDE, 60, 200), *lines(WIDE, 60, 200 + 3 * PITCH)]) == [" ".join(WIDE)] * 2


@pytest.mark.parametrize("size", [10.0, 12.0])
def test_a_sentence_is_not_cut_where_a_line_begins_in_another_style(size: float) -> None:
    runs = [run(WIDE[0], 60, 200), run(WIDE[1], 60, 213, size, bold=True), run(WIDE[2], 60, 226)]
    assert texts(runs) == [" ".join(WIDE)]


def test_a_bold_heading_is_not_part_of_the_paragraphs_around_it() -> None:
    runs = [*lines(WIDE, 60, 200), run("Slaking", 60, 239, bold=True), *lines(WIDE, 60, 252)]
    assert texts(runs) == [" ".join(WIDE), "Slaking", " ".join(WIDE)]


def test_the_second_line_of_a_reference_hangs() -> None:
    first = "Ames, B.: Lime and its use on walls. Notes on the craft of masons, volume 3, March"
    other = "Berg, C.: Mortar in the north. Notes on the craft of masons and bricklayers. Bergen"
    runs = [run(first, 60, 200), run("2005", 80, 213), run(other, 60, 226), run("2007", 80, 239)]
    assert texts(runs) == [f"{first} 2005", f"{other} 2007"]


def test_numbered_items_with_bold_numbers_are_a_list() -> None:
    bold = [run(f"{number}. {WIDE[0]}", 60, 200 + 26 * number, bold=True) for number in (1, 2)]
    plain = [run(f"{WIDE[2]}", 72, 213 + 26 * number) for number in (1, 2)]
    assert texts([*bold, *plain]) == ["\n".join(f"{number}. {WIDE[0]} {WIDE[2]}" for number in (1, 2))]


def test_lists_are_nested_by_their_indent() -> None:
    items = [("• first thing", 60), ("◦ part of it", 80), ("◦ another part", 80), ("• second thing", 60)]
    runs = [run(text, left, 200 + PITCH * index) for index, (text, left) in enumerate(items)]
    assert texts(runs) == ["- first thing\n    - part of it\n    - another part\n- second thing"]


def test_a_footnote_follows_the_paragraph_with_its_mark() -> None:
    marked = [*lines(WIDE[:2], 60, 200), run("the hand of the mason", 60, 226)]
    mark = run("1", marked[-1].box.right, 224, 6)
    note = [run("1", 60, 700, 5), run("See the second volume of the same work for this.", 66, 701, 8)]
    found = blocks([*marked, mark, *lines(WIDE, 60, 280), *note])
    assert [block.region for block in found] == [RegionKind.BODY, RegionKind.FOOTNOTE, RegionKind.BODY]
    glued = run("1See the second volume of the same work for this.", 60, 701, 8)
    found = blocks([*marked, mark, *lines(WIDE, 60, 280), glued])
    assert found[1].text == "¹ See the second volume of the same work for this."


def test_a_caption_is_a_region_of_its_kind() -> None:
    caption = run("Figure 3. The pit in the spring of that year", 60, 260, 9)
    assert [block.region for block in blocks([*lines(WIDE, 60, 200), caption])] == [RegionKind.BODY, RegionKind.CAPTION]


def test_a_page_number_on_a_single_page_is_a_region_and_not_text(tmp_path: Path) -> None:
    page: list[Part] = [*paragraph(WIDE, 200), Words("Page 7 of 9", left=280, top=770, size=9)]
    path = tmp_path / "page"
    path.write_bytes(Pdf([page]).write())
    extracted = read_pdf(path)
    assert "Page 7" not in extracted.markdown
    assert [(one.kind, one.order) for one in extracted.regions] == [(RegionKind.BODY, 0), (RegionKind.FOOTER, 1)]
    assert extracted.regions[1].text == "Page 7 of 9"
    assert extracted.quality is Quality.FULL


@pytest.mark.parametrize(
    ("divided", "elsewhere", "wanted"),
    [
        ("in\ufdd0memory", "an in-memory table", "in-memory"),
        ("exam\ufdd0ple", "another example", "example"),
        ("para\ufdd0graph", "nothing like it", "paragraph"),
        ("in\ufdd0memory", "in-place work needs memory", "in-memory"),
    ],
)
def test_a_divided_word_gets_its_hyphen_from_the_document(divided: str, elsewhere: str, wanted: str) -> None:
    assert Vocabulary([divided, elsewhere]).undivided(f"an {divided} here") == f"an {wanted} here"


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["a group of 512-", "bit primes"], "a group of 512-bit primes"),
        (["in the years 2010-", "2015"], "in the years 2010-2015"),
        (["durch Um-, An-", "oder Ausbauten"], "durch Um-, An- oder Ausbauten"),
        (["light- and heavy-", "duty trucks"], "light- and heavy-duty trucks"),
        (["fast and non-", "painful treatment"], "fast and non-painful treatment"),
        (["mail to a@uni-", "tuebingen.de"], "mail to a@uni-tuebingen.de"),
        (["the rule aligned-ibrp-", "ae-06 was changed"], "the rule aligned-ibrp-ae-06 was changed"),
        (["an im-", "portant word"], "an important word"),
    ],
)
def test_a_hyphen_at_a_line_end_is_kept_where_it_is_part_of_the_word(lines: list[str], wanted: str) -> None:
    joined = join_lines(lines)
    assert Vocabulary([joined]).undivided(joined) == wanted


def test_addresses_side_by_side_are_read_one_after_the_other() -> None:
    left = ["Bill to:", "Jane Doe", "522 Main Street", "10001 New York"]
    right = ["Invoice no: 4711", "Date: 2 May 2026", "Order: 12", "Due date: 1 June 2026"]
    sides = [(40.0, left), (380.0, right)]
    runs = [run(text, x, 100.0 + 14 * row, 10) for x, texts in sides for row, text in enumerate(texts)]
    page = PageContent(1, 600, 800, tuple(runs), (), ())
    words = " ".join(" ".join(block.text for block in lay_out(page).blocks).split())
    assert words == " ".join([*left, *right])


def test_labels_with_values_in_a_second_column_are_read_row_by_row() -> None:
    rows = [("Name:", "Jane Doe"), ("Street:", "522 Main Street"), ("Town:", "10001 New York")]
    runs = [
        run(text, x, 100.0 + 14 * row, 10)
        for row, texts in enumerate(rows)
        for x, text in zip((40.0, 380.0), texts, strict=True)
    ]
    page = PageContent(1, 600, 800, tuple(runs), (), ())
    words = " ".join(" ".join(block.text for block in lay_out(page).blocks).split())
    assert words == " ".join(f"{label} {value}" for label, value in rows)


def test_letters_beyond_the_first_plane_are_kept_in_their_place(tmp_path: Path) -> None:
    path = tmp_path / "page"
    path.write_bytes(Pdf([[Words("the field \U0001d538 and a face \U0001f600 here")]]).write())
    assert read_pdf(path).markdown == "the field \U0001d538 and a face \U0001f600 here"


def test_white_letters_are_read_only_where_they_can_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "page"
    hidden, shown = Words("secret mark", top=300, grey=1), Words("a visible line of the letter")
    path.write_bytes(Pdf([[shown, hidden]]).write())
    assert read_pdf(path).markdown == shown.text
    path.write_bytes(Pdf([[Picture(), shown, hidden]]).write())
    assert hidden.text in read_pdf(path).markdown


@pytest.mark.parametrize(
    ("text", "garbled"),
    [
        ("".join(chr(ord(letter) + 0x100) for letter in " ".join(WIDE)), True),
        ("".join(chr(ord(letter) + 3) if letter.isalpha() else letter for letter in " ".join(WIDE * 2)), True),
        ("\ue001\ue002\ue003\ue004", True),
        (" ".join(WIDE * 2), False),
        ("Zażółć gęślą jaźń, żeby każdy mógł przeczytać tę długą wiadomość o łódce" * 3, False),
        ("Широкая электрификация южных губерний даст мощный толчок подъёму" * 3, False),
    ],
)
def test_letters_that_no_language_has_are_garbled(text: str, *, garbled: bool) -> None:
    assert is_garbled(text) is garbled


def test_the_letters_of_one_glyph_are_put_in_reading_order() -> None:
    glyph, next_glyph = Box(10, 0, 18, 10), Box(4, 0, 10, 10)
    letters = [("\u0627", glyph), ("\u0644", glyph), ("\u062a", next_glyph), None]
    assert [one and one[0] for one in with_right_ligatures(iter(letters))] == ["\u0644", "\u0627", "\u062a", None]


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_turned_page_has_paragraphs_with_boxes_on_the_displayed_page(tmp_path: Path, degrees: int) -> None:
    path = tmp_path / "page"
    written = Pdf([[*paragraph(WIDE, 200), *paragraph(WIDE, 300)]]).write()
    path.write_bytes(written.replace(b"/Type/Page/", b"/Type/Page/Rotate %d/" % degrees))
    [page] = read_batch(path, 1, 1).pages
    assert [block.text for block in page.blocks] == [" ".join(WIDE)] * 2
    assert (page.width, page.height) == ((612, 792) if degrees in {0, 180} else (792, 612))
    first, second = (block.box for block in page.blocks)
    assert first
    assert second
    assert all(0 <= side <= 792 for side in (*first, *second))
    assert not page.plain
    shifts = {0: second.top - first.top, 90: first.left - second.left, 180: first.top - second.top}
    assert shifts.get(degrees, second.left - first.left) == pytest.approx(100, abs=1)


def test_the_turn_of_a_page_is_that_of_most_of_its_text() -> None:
    page = PageContent(1, 595.0, 842.0, tuple(lines(LEFT, 60, 200)), (), ())
    assert turn_of(page) == 0


def test_text_between_labels_is_not_lost() -> None:
    runs = [
        run("an answer to your question at noon", 115, 221, 9),
        run("•", 55, 225, 14), run("Letter :", 62, 230, 9), run("Service for Readers, Paris", 115, 230, 9),
        run("•", 55, 239, 14), run("Online :", 62, 244, 9), run("Your account, under My Bills", 115, 244, 9),
    ]  # fmt: skip
    assert "an answer to your question" in " ".join(texts(runs))


def test_two_facing_pages_are_read_from_left_to_right() -> None:
    """Each of them has a background, which is no box beside the other."""
    backgrounds = [
        Shape(Box(left, 0, left + 297, 842), filled=True, stroked=False, curved=False, colour="ffccddff")
        for left in (297, 0)
    ]
    found = texts([*lines(RIGHT * 6, 330, 100), *lines(LEFT * 6, 40, 120)], tuple(backgrounds))
    assert found == [" ".join(LEFT * 6), " ".join(RIGHT * 6)]


def test_tables_and_pictures_side_by_side_are_read_from_left_to_right() -> None:
    sides = [Segment(left, top, left + 100, 400, block=(left,)) for left, top in ((60, 110), (180, 100), (300, 90))]
    sides += [Segment(420, top, 560, top + 90, block=(top,)) for top in (90, 190, 290)]
    layout = find_columns(sides)
    assert [one.block[0] for one in segments_in(layout)] == [60, 180, 300, 90, 190, 290]


def test_the_framed_halves_of_a_form_are_read_one_after_the_other() -> None:
    runs: list[TextRun] = []
    frames: list[Box] = []
    for left in (60.0, 312.0):
        frames += [Box(left, y, left + 240, y) for y in (84.0, 420.0)]
        frames += [Box(x, 84, x, 420) for x in (left, left + 240)]
        for row, label in enumerate(("Name", "Street", "Town", "Phone", "Reason")):
            runs += [
                run(label, left + 8, 128 + 56 * row, 8),
                run(f"Value {row} of {left:.0f}", left + 8, 144 + 56 * row),
            ]
    page = PageContent(1, 612.0, 792.0, tuple(sorted(runs, key=lambda one: one.box.top)), (), tuple(frames))
    found = [block.text for block in lay_out(page).blocks]
    assert [text for text in found if text.startswith("Value")] == [
        f"Value {row} of {left}" for left in (60, 312) for row in range(5)
    ]


def test_a_large_title_beside_an_address_is_not_part_of_its_lines() -> None:
    address = [run("Sam Mayfield", 60, 40), run("sam@example.org", 60, 53)]
    assert "INVOICE" in texts([*address, run("INVOICE", 400, 30, 32)])


def test_the_lines_of_an_address_stay_lines() -> None:
    short = ["Weena 664", "3012 CN Rotterdam", "Nederland", "www.example.org"]
    assert texts([*lines(WIDE, 60, 100), *lines(short, 60, 300)])[-1] == "\n".join(short)


def item(text: str, height: float, rotation: float = 0.0) -> SimpleNamespace:
    """A run as liteparse reports it, with letters of 10 points."""
    word = SimpleNamespace(x=50.0, y=100.0, width=6.0 * len(text), height=height, text=text)
    return SimpleNamespace(
        **{**vars(word), "words": [word]},
        font_name="Times",
        font_weight=400,
        font_size=10.0,
        font_height=10.0,
        rotation=rotation,
        mcid=None,
        fill_color=None,
    )


def test_box_of_a_font_with_a_wrong_ascent_is_as_high_as_its_letters() -> None:
    found = text_run(item("Heading", height=127.0))
    assert found
    assert found.box.top == found.words[0].top == 100.0
    assert found.box.bottom == found.words[0].bottom < 115.0


@pytest.mark.parametrize(
    ("height", "rotation", "expected"), [(12.0, 15.0, 0.0), (60.0, 15.0, 15.0), (12.0, 90.0, 90.0)]
)
def test_slanted_letters_are_not_turned(height: float, rotation: float, expected: float) -> None:
    found = text_run(item("slanted", height, rotation))
    assert found
    assert found.rotation == expected


def test_line_that_only_begins_in_a_monospaced_font_is_not_code() -> None:
    first = run("1. Every wall needs a footing of stones", 60, 100, font="Courier")
    wide = first.words[1]._replace(text="WWW")
    mixed = first._replace(words=(first.words[0], wide, *first.words[2:]))
    assert [one.mono for one in segments_of([first, mixed])] == [True, False]


def test_bullets_that_are_apart_from_their_text_make_a_list() -> None:
    runs = [one for top in (300, 330, 360) for one in (run("\uf0b7", 60, top), run("Lime is slaked in a pit", 78, top))]
    assert texts(runs) == ["\n".join(["- Lime is slaked in a pit"] * 3)]


def test_bullets_of_unknown_symbol_fonts_make_a_list() -> None:
    runs = [run(f"\uf075 {text}", 60, 300 + 30 * row) for row, text in enumerate(LEFT[:3])]
    assert texts(runs) == ["\n".join(f"- {text}" for text in LEFT[:3])]


def test_sentence_goes_on_in_lines_with_wide_spaces() -> None:
    wide = [run(text, 60, 300 + 22 * row) for row, text in enumerate(LEFT)]
    assert texts([*lines(RIGHT, 60, 100), *wide])[-1] == " ".join(LEFT)


def test_chinese_lines_are_joined_without_spaces() -> None:
    assert join_lines(["为消灭附着在稻种上的病", "原菌。任选下表", "Tebuconazole 一种"]) == (
        "为消灭附着在稻种上的病原菌。任选下表 Tebuconazole 一种"
    )


def test_picture_that_reaches_into_a_table_is_kept_below_it() -> None:
    cells = [run(f"{row}{column}", 70 + 100 * column, 202 + 20 * row) for row in range(3) for column in range(3)]
    grid = [Box(60, 200 + 20 * row, 360, 200 + 20 * row) for row in range(4)]
    grid += [Box(60 + 100 * column, 200, 60 + 100 * column, 260) for column in range(4)]
    page = PageContent(1, 595.0, 842.0, (*cells, *lines(WIDE, 60, 700)), (), tuple(grid))
    found = lay_out(page, [Box(60, 240, 400, 600)]).blocks
    table, picture = (
        next(one for one in found if one.region is kind) for kind in (RegionKind.TABLE, RegionKind.FIGURE)
    )
    assert picture.box
    assert table.box
    assert picture.box.top >= table.box.bottom


def test_page_number_next_to_the_text_is_a_footer() -> None:
    found = blocks([*lines(WIDE, 60, 770), run("(xx)", 280, 812)])
    assert [block.text for block in found if block.region is RegionKind.FOOTER] == ["(xx)"]


def test_title_below_two_columns_comes_after_both() -> None:
    title, below = run("All tides of the year:", 60, 200), lines(WIDE, 60, 216)
    found = texts([*lines(LEFT, 60, 100), *lines(RIGHT, 320, 100), title, *below])
    assert found[:3] == [" ".join(LEFT), " ".join(RIGHT), "All tides of the year:"]


def test_numbers_of_lines_are_not_part_of_the_text() -> None:
    texts_ = [*WIDE, *WIDE, *WIDE]
    numbers = [run(str(row + 1), 40, 300 + 20 * row) for row in range(len(texts_))]
    found = blocks([*numbers, *(run(text, 70, 300 + 20 * row) for row, text in enumerate(texts_))])
    assert [block.text for block in found if block.region is RegionKind.HEADER] == ["1 2 3 4 5 6 7 8 9"]
    assert "2 fresh" not in " ".join(block.text for block in found)


def test_numbers_of_rows_stay() -> None:
    numbers = [run(str(row + 1), 40, 300 + 20 * row) for row in range(9)]
    names = [run("Amber Barge", 70, 300 + 20 * row) for row in range(9)]
    assert line_numbers([*numbers, *names]) == []


def test_line_that_begins_in_bold_type_continues_its_sentence() -> None:
    first = run(WIDE[0], 60, 300)
    assert len(texts([first, run("1-877-256 can be called on every day of the week.", 60, 313, bold=True)])) == 1


def test_watermark_does_not_break_the_lines_under_it() -> None:
    found = blocks([*lines([*WIDE] * 3, 60, 300), run("A", 200, 290, size=130)])
    assert [block.text for block in found if block.region is RegionKind.HEADER] == ["A"]
    assert len([block for block in found if block.region is RegionKind.BODY]) <= 3


def test_letter_from_a_typewriter_is_text() -> None:
    sentences = ["Amber barges leave the quay. They carry", "gravel to the island. Masons wait there."] * 6
    typed = [run(text, 60, 300 + PITCH * row, font="Courier") for row, text in enumerate(sentences)]
    assert {block.kind for block in blocks(typed)} == {BlockKind.PARAGRAPH}


def test_page_number_of_a_small_page_is_a_footer() -> None:
    found = blocks([*lines(WIDE, 60, 560), run("1", 280, 700)])
    assert [block.text for block in found if block.region is RegionKind.FOOTER] == ["1"]


def test_wide_spaces_above_each_other_in_justified_text_are_no_gutter() -> None:
    wide = [
        run("Amber barges leave the quay at dawn and carry gravel to the island", 60, 300 + PITCH * row)
        for row in range(4)
    ]
    right = max(one.box.right for one in wide)
    apart = [
        one
        for row in (4, 5)
        for one in (
            run("Masons wait for it there", 60, 300 + PITCH * row),
            run("and stack every load", right - 100, 300 + PITCH * row),
        )
    ]
    below = [
        run("Amber barges leave the quay at dawn and carry gravel to the island", 60, 300 + PITCH * row)
        for row in (6, 7)
    ]
    assert len(texts([*wide, *apart, *below])) == 1


def test_short_chinese_line_does_not_run_into_the_next_paragraph() -> None:
    body = "发行人各类授信额度总额达其中已使用额度尚未使用的授信额度" * 2
    found = blocks([run("二授信情况", 60, 300), *(run(body, 60, 322 + PITCH * row) for row in range(4))])
    assert all(not block.text.startswith("二授信情况发") for block in found)


@pytest.mark.parametrize(
    ("drawn", "written"),
    [
        ("סעיף 15)ב()4( לחוק", "סעיף 15(ב)(4) לחוק"),
        ("סעיף (ב) לחוק", "סעיף (ב) לחוק"),
        ("סעיף ב) לחוק", "סעיף ב) לחוק"),
        ("عذرا.ً إشترى", "عذراً. إشترى"),
        ("ووفق ًا لما", "ووفقًا لما"),
        ("بلغة Pythonمن", "بلغة Python من"),
        ("بلغة R وPython", "بلغة R وPython"),
    ],
)
def test_brackets_and_vowel_signs_of_right_to_left_lines_are_in_order(drawn: str, written: str) -> None:
    assert with_right_marks(drawn) == written


def test_a_side_column_with_a_table_stays_together() -> None:
    body = [one for top in range(200, 440, 60) for one in lines(WIDE, 60, top)]
    facts = [("Size", "12"), ("Type", "tool"), ("Year", "2011"), ("Town", "Rome")]
    side = [run("Trowel", 490, 200), run("Facts", 490, 214)]
    for number, (name, value) in enumerate(facts):
        side += [run(name, 482, 236 + 30 * number), run(value, 532, 236 + 30 * number)]
    side += lines(["Used by the", "mason."], 482, 360)
    across = [Box(478, 230 + 30 * number, 580, 230 + 30 * number) for number in range(5)]
    down = [Box(left, 230, left, 350) for left in (478, 528, 580)]
    page = PageContent(1, 595.0, 842.0, (*body, *side), (), (*across, *down))
    found = [block.text for block in lay_out(page).blocks]
    assert found[0] == " ".join(WIDE)
    assert "Size" in " ".join(found[1:4])
    assert "mason." in " ".join(found[1:5])
    assert found[5:] == [" ".join(WIDE)] * 3


def test_words_above_a_typed_rule_at_the_upper_edge_are_a_header() -> None:
    head = [run("Healthy students", 60, 40), run("_" * 50, 60, 54)]
    found = blocks([*head, *lines(WIDE, 60, 68), *lines(WIDE, 60, 120)])
    assert [block.region for block in found[-2:]] == [RegionKind.BODY] * 2
    assert {block.region for block in found[:-2]} == {RegionKind.HEADER}


def test_a_font_that_most_of_a_page_is_set_in_is_not_bold_by_its_weight() -> None:
    title = run("crashtest", 60, 200, font="Georgia,Bold", bold=True)
    body = tuple(run(text, 60, 220 + 13 * number, font="Times", bold=True) for number, text in enumerate(WIDE))
    assert [one.bold for one in with_right_weights((title, *body))] == [True, False, False, False]
    few = run("heavy", 60, 300, font="Impact", bold=True)
    plain = tuple(one._replace(bold=False) for one in body)
    assert with_right_weights((few, *plain)) == (few, *plain)


def test_chinese_letters_that_are_set_wide_apart_are_joined() -> None:
    assert without_wide_spaces("关 于 红 军 作 战 … …") == "关于红军作战……"
    assert without_wide_spaces("目录 关于红军作战的原则") == "目录 关于红军作战的原则"
    assert without_wide_spaces("코 로 나") == "코 로 나"


def test_a_citation_at_the_start_of_a_line_does_not_divide_a_sentence() -> None:
    text = [WIDE[0], "[24] even in the presence of frost, which comes to the pit early in the year", WIDE[2]]
    assert texts(lines(text, 60, 200)) == [" ".join(text)]


def test_korean_words_divided_at_a_line_end_are_joined_if_other_lines_end_with_a_space() -> None:
    joined = join_lines(["단계에 돌", "입하였다고 판매했거나", "향후"])
    own = "단계에 돌\r\n입하였다고 판매했거나 \r\n향후"
    assert with_whole_korean(joined, own) == "단계에 돌입하였다고 판매했거나 향후"
    assert with_whole_korean(joined, own.replace(" \r", "\r")) == "단계에 돌 입하였다고 판매했거나 향후"


def test_a_large_title_above_columns_comes_before_both() -> None:
    title = run("Invoice", 262, 60, 20.0)
    left = lines(["Ada Example", "Harbour Street", "Upper Quay", "The Island"], 60, 110)
    right = lines(["Number 17", "Date 3 May", "Order 4", "Terms none"], 310, 110)
    assert texts([*left, *right, title])[0] == "Invoice"


def test_a_small_line_below_a_title_at_the_edge_is_text() -> None:
    body = lines([*LEFT, *RIGHT, *LEFT], 60, 200)
    below = blocks([run("Jane Doe", 250, 24, 16.0), run("Graphic Designer", 255, 44, 8.0), *body])
    assert [block.region for block in below if block.text == "Graphic Designer"] == [RegionKind.BODY]
    alone = blocks([run("Graphic Designer", 255, 44, 8.0), *body])
    assert [block.region for block in alone if block.text == "Graphic Designer"] == [RegionKind.HEADER]


def test_lines_that_end_with_an_amount_after_a_wide_space_stay_lines() -> None:
    rows = [("Liability insurance of the car", "80,00 \u20ac"), ("full cover for the other car", "140,00 \u20ac")]
    runs = [
        run(text, left, 100 + PITCH * index)
        for index, row in enumerate(rows)
        for text, left in zip(row, (60, 400), strict=True)
    ]
    (text,) = texts(runs)
    assert text == "\n".join(" ".join(row) for row in rows)


def test_an_indented_line_inside_a_list_item_is_part_of_it() -> None:
    item = ["\u2022 You can print out the files as", "handouts with the command", "PRINT and then"]
    runs = [run(item[0], 60, 100), run(item[1], 70, 113), run(item[2], 70, 126), run("HANDOUTS option", 80, 139)]
    (text,) = texts(runs)
    assert text.endswith("PRINT and then HANDOUTS option")


def test_one_line_over_an_image_stays_in_the_text() -> None:
    page = PageContent(1, 595.0, 842.0, (run("PAY BY CARD", 70, 105), *lines(WIDE, 60, 400)), (), ())
    assert "PAY BY CARD" in [block.text for block in lay_out(page, [Box(60, 100, 160, 200)]).blocks]


def test_an_amount_at_the_right_edge_belongs_to_the_line_beside_it() -> None:
    left = [
        run("Items ordered", 60, 100),
        run("Four of the plugs that fit into the wall of a house", 60, 113),
        run("Sold by the harbour company of the island", 60, 126),
        run("One of the other plugs that were ordered before", 60, 139),
        run("Sold by the harbour company of the island", 60, 152),
    ]
    right = [run("Price", 500, 100), run("$3.62", 500, 113), run("$4.50", 500, 139)]
    found = "\n".join(texts([*left, *right]))
    assert "fit into the wall of a house $3.62\n" in found
    assert "were ordered before $4.50\n" in found


def test_labels_in_a_row_are_joined_with_the_values_below_them() -> None:
    labels = [run("Invoice date:", 60, 100), run("Due date:", 220, 100)]
    values = [run("21 May", 60, 114), run("3 June", 220, 114)]
    assert "Invoice date: 21 May\nDue date: 3 June" in texts([*labels, *values, *lines(WIDE, 60, 200)])
    streets = [run("Quay 4", 60, 128), run("Lock 7", 220, 128)]
    assert "Invoice date: 21 May\nDue date: 3 June" not in texts([*labels, *values, *streets, *lines(WIDE, 60, 200)])


def test_two_words_at_both_ends_of_a_line_are_no_heading() -> None:
    head = run("Items", 60, 100, bold=True), run("Price", 400, 100, bold=True)
    assert blocks([*head, *lines(WIDE, 60, 130)])[0].region is RegionKind.TABLE


def test_rows_whose_figures_are_one_column_apart_make_a_table_unsure() -> None:
    def row(top: float, *cells: tuple[str, float]) -> list[TextRun]:
        return [run(text, left, top) for text, left in cells]

    level = [row(100 + PITCH * n, ("Plug", 60), ("1", 200), (f"{n},50", 280), (f"{n},75", 360)) for n in range(4)]
    shifted = [*level, row(160, ("Lamp", 60), ("7", 280), ("9,50", 360), ("8,75", 440))]
    pages = [
        PageContent(1, 595.0, 842.0, tuple(one for part in rows for one in part), (), ()) for rows in (level, shifted)
    ]
    assert [bool(lay_out(page).unsure) for page in pages] == [False, True]


def test_numbers_of_lines_are_found_beside_prose_and_code() -> None:
    prose = [run(text, 80, 100 + PITCH * row) for row, text in enumerate([*WIDE[:2], *WIDE[:2], *WIDE[:2]])]
    code = [run(text, 80, 178 + PITCH * row, font="Courier") for row, text in enumerate(["<smp:Data>"] * 12)]
    numbers = [run(str(194 + row), 40, 100 + PITCH * row) for row in range(18)]
    assert line_numbers([*prose, *code, *numbers]) == numbers
    cells = [run("17", 300, 178 + PITCH * row) for row in range(12)]
    assert line_numbers([*prose, *code, *cells, *numbers]) == []


def test_an_item_inside_another_one_does_not_end_the_list() -> None:
    items = [("1. Barges", 60), ("2. Quays", 60), ("a) Upper Quay", 80), ("3. Locks", 60)]
    (text,) = texts([run(text, left, 100 + 14 * row) for row, (text, left) in enumerate(items)])
    assert text == "1. Barges\n2. Quays\n    - a) Upper Quay\n3. Locks"


def test_a_program_in_a_frame_is_code_in_any_font() -> None:
    code = [("typedef struct {", 64), ("Base base;", 74), ("Factory factory;", 74), ("} Transform;", 64)]
    runs = [run(text, left, 100 + PITCH * row) for row, (text, left) in enumerate(code)]
    frame = Shape(Box(58, 92, 300, 160), filled=False, stroked=True, curved=False, colour=None)
    found = blocks([*runs, *lines([*WIDE, *WIDE], 60, 300)], (frame,))
    assert "```\ntypedef struct {\n  Base base;\n  Factory factory;\n} Transform;\n```" in [
        block.text for block in found
    ]


def test_a_numbered_heading_at_the_top_of_a_page_is_no_header() -> None:
    body = lines([*WIDE, *WIDE, *WIDE, *WIDE], 60, 130)
    head = [run("2", 60, 60, 12.0, bold=True), run("Fuel of the harbour", 84, 60, 12.0, bold=True)]
    assert blocks([*head, *body])[0].region is RegionKind.BODY
    far = [run("42", 60, 60, 12.0, bold=True), run("Fuel of the harbour", 300, 60, 12.0, bold=True)]
    assert blocks([*far, *body])[0].region is RegionKind.HEADER


def test_the_true_size_of_scaled_letters_is_used_but_not_that_of_stretched_ones() -> None:
    scaled, stretched = item("Lime", 12.0), item("Lime", 12.0)
    scaled.font_size, scaled.font_height = 16.0, 12.0
    stretched.font_size, stretched.font_height = 10.0, 10.3
    sizes = [found.size for one in (scaled, stretched) if (found := text_run(one))]
    assert sizes == [12.0, 10.0]


def test_a_line_that_begins_with_the_small_number_of_a_note_has_the_size_of_its_letters() -> None:
    note = run("Lime is slaked in a pit", 60, 700, 9.0)
    mark = Word(54, 699, 58, 704, "7")
    small = note._replace(text=f"7 {note.text}", size=5.0, words=(mark, *note.words))
    other = run("that is dug one year before", 60, 713, 9.0)
    assert [one.size for one in with_right_sizes((small, other))] == [9.0, 9.0]


def test_the_arguments_of_a_program_below_its_bracket_are_not_a_column() -> None:
    code = [run("error create(matrix *m,", 60, 100, font="Courier"), run("const real *r);", 320, 113, font="Courier")]
    terms = [run("m: Pointer to a matrix that was not filled before,", 60, 140 + 26 * one) for one in range(4)]
    found = texts([*code, *terms])[0]
    assert found.split() == ["```", "error", "create(matrix", "*m,", "const", "real", "*r);", "```"]


def test_wide_spaces_after_two_sentences_are_not_a_gutter() -> None:
    title = [run("AMC", 60, 100), run("SAMPLE TEST", 420, 100)]
    first = [
        run("For this test no option of the package is used here.", 70, 126),
        run("Page marks are printed", 340, 126),
    ]
    found = texts([*title, *first, *lines(WIDE, 60, 139)])
    assert found[1].startswith("For this test no option of the package is used here. Page marks are printed Lime")


def test_the_output_of_a_program_stays_code_and_is_neither_a_table_nor_columns() -> None:
    rows = ["[1,] 17 5.0 1.9 211", "[2,] 18 5.1 1.8 212", "[3,] 19 5.2 1.7 213", "[4,] 20 5.3 1.6 214"]
    output = [
        run(cell, 60 + 60 * column, 200 + PITCH * row, font="Courier")
        for row, text in enumerate(rows)
        for column, cell in enumerate(text.split())
    ]
    found = blocks([*lines(WIDE, 60, 100), *output, *lines(WIDE, 60, 300)])
    assert [block.kind for block in found] == [BlockKind.PARAGRAPH, BlockKind.CODE, BlockKind.PARAGRAPH]


def test_a_sentence_continues_in_a_few_monospaced_lines() -> None:
    names = "integer, numeric, character, factor, date, posix, list, frame, matrix, complex"
    typed = [run(names, 60, 126, font="Courier"), run(f"raw, {names}", 60, 139, font="Courier")]
    sentence = [*lines(WIDE[:2], 60, 100), *typed, *lines(["and so on, until the wall was begun in spring."], 60, 152)]
    (found,) = texts(sentence)
    assert f"crumbles in {names} raw" in found


def test_typed_rules_are_separate_and_not_list_items() -> None:
    stars = run("* * * * *", 60, 126)
    assert texts([*lines(["The harbour", "book"], 60, 100), stars, *lines(WIDE, 60, 139)])[1] == "* * * * *"


def test_labels_in_a_paragraph_begin_lines() -> None:
    rows = [
        "Status row: a green check beside it, and the words that it is verified.",
        "Card row: a green check, and the name of the firm that we all trust here.",
    ]
    last = "Both are only green because all signatures of this document are verified"
    (found,) = texts(lines([*rows, last], 60, 100))
    assert found == f"{rows[0]}\n{rows[1]} {last}"


def test_a_company_at_the_end_of_a_line_does_not_end_a_paragraph() -> None:
    (found,) = texts(lines(["Amber Web Services, Inc.", "410 Terry Ave North", "Seattle, WA 98109"], 60, 100))
    assert found.split("\n") == ["Amber Web Services, Inc.", "410 Terry Ave North", "Seattle, WA 98109"]


def test_telephone_numbers_and_addresses_of_the_web_keep_their_lines() -> None:
    (found,) = texts(lines(["fon (555) 23 78 -0", "fax (555) 23 78 -51"], 60, 100))
    assert found == "fon (555) 23 78 -0\nfax (555) 23 78 -51"


def test_a_value_of_two_lines_beside_a_label_is_one_value() -> None:
    rows = [run("Number:", 60, 100), run("549910", 250, 100), run("Amber Barges", 250, 122), run("Name:", 60, 133)]
    rows += [run("and Sons", 250, 133), run("Town:", 60, 160), run("Rome", 250, 160)]
    (found,) = texts(rows)
    assert found.split("\n") == ["Number: 549910", "Name: Amber Barges and Sons", "Town: Rome"]


def test_a_page_number_beside_other_text_and_a_slanted_stamp_are_not_in_the_text() -> None:
    number = run("Page 1/1", 280, 770)
    stamp = run("DRAFT", 200, 300, 80.0)._replace(rotation=48.0)
    account = lines(["IBAN DE88 2008 0000", "BIC COBADEFF", "Account holder: Max Sample"], 430, 750)
    shown = [one.text for one in blocks([*lines(WIDE, 60, 100), number, *account, stamp]) if one.region not in EDGES]
    assert not any("Page 1/1" in text or "DRAFT" in text for text in shown)


EDGES = {RegionKind.HEADER, RegionKind.FOOTER}


def test_a_line_that_ends_a_sentence_at_the_edge_of_an_abstract_does_not_end_the_paragraph() -> None:
    abstract = ["Barges that carry gravel to an island at dawn leave the quay with the tide.", *["x" * 75] * 5]
    found = texts([*lines(abstract, 90, 100), *lines(["y" * 90] * 6, 60, 200)])
    assert found == [" ".join(abstract), " ".join(["y" * 90] * 6)]


def test_braces_in_another_font_between_lines_of_code_are_code() -> None:
    code = [
        run(text, 60, 100 + PITCH * row, font="Courier")
        for row, text in enumerate(["int main(void)", "", "return 0;"])
        if text
    ]
    (found,) = texts([*code, run("{", 60, 113, font="CMSY10"), run("}", 60, 139, font="CMSY10")])
    assert found == "```\nint main(void)\n{\nreturn 0;\n}\n```"


def test_the_dots_before_page_numbers_are_left_out() -> None:
    (found,) = texts(
        lines(["Ships and quays..............................4", "Notes on lime . . . . . . . . . . . 12"], 60, 100)
    )
    assert found == "Ships and quays 4\nNotes on lime 12"


def test_functions_with_what_they_do_are_separate_paragraphs() -> None:
    rows = [
        "extent(dx, dy): extent of the box in the direction that is given by two numbers here",
        "point(x, y): distance",
    ]
    functions = [run(text, 60, 100 + 18 * at) for at, text in enumerate(rows)]
    assert texts([*functions, *lines(WIDE, 60, 300)])[:2] == rows


TERMS = [
    ("abs (x)", "absolute value of a number"),
    ("ceil (x)", "smallest integer not below it"),
    ("fix (x)", "drop the fraction of a number"),
    ("max (x, y)", "larger of two numbers"),
]


def content_of(*runs: TextRun) -> PageContent:
    return PageContent(1, 600.0, 800.0, runs, (), ())


def terms(left: float, second: float, top: float, code: int = 0) -> list[TextRun]:
    """Terms with definitions beside them. Of these two columns, the one with the index `code` is monospaced."""
    return [
        run(text, place, top + PITCH * row, font="Courier" if column == code else "Times")
        for row, pair in enumerate(TERMS)
        for column, (text, place) in enumerate(zip(pair, (left, second), strict=True))
    ]


@pytest.mark.parametrize("code", [0, 1])
def test_each_term_is_read_with_its_definition(code: int) -> None:
    page = content_of(run("Numbers", 50.0, 80.0, 14.0, bold=True), *terms(50.0, 160.0, 110.0, code))

    texts = [block.text for block in lay_out(page).blocks]

    assert texts == ["Numbers", "\n".join(f"{term} {text}" for term, text in TERMS)]


def test_terms_in_two_columns_are_read_column_by_column() -> None:
    page = content_of(*terms(50.0, 130.0, 110.0), *terms(330.0, 410.0, 110.0))

    blocks = lay_out(page).blocks

    assert [block.text for block in blocks] == 2 * ["\n".join(f"{term} {text}" for term, text in TERMS)]
    assert [block.box.left for block in blocks if block.box] == [50.0, 330.0]


def test_second_lines_of_definitions_stay_with_their_terms() -> None:
    runs = [run("--depth", 50.0, 100.0, font="Courier"), run("how many levels are shown", 150.0, 100.0)]
    runs += [run("below the first one", 150.0, 113.0), run("--force", 50.0, 126.0, font="Courier")]
    runs += [run("write over files that exist", 150.0, 126.0), run("--quiet", 50.0, 139.0, font="Courier")]
    runs += [run("no messages", 150.0, 139.0)]

    texts = [block.text for block in lay_out(content_of(*runs)).blocks]

    lines = "\n".join(texts).split("\n")
    assert lines == [
        "--depth how many levels are shown below the first one",
        "--force write over files that exist",
        "--quiet no messages",
    ]


def test_definitions_at_the_right_edge_are_read_with_their_terms() -> None:
    pairs = [("open, f", "open a file"), ("close, f", "close it again"), ("rename, f, name", "give it a new name")]
    runs = [run(term, 50.0, 100.0 + PITCH * row, font="Courier") for row, (term, _) in enumerate(pairs)]
    runs += [run(text, 230.0 - 5.0 * len(text), 100.0 + PITCH * row) for row, (_, text) in enumerate(pairs)]

    texts = [block.text for block in lay_out(content_of(*lines(LEFT, 50, 40), *runs, *lines(RIGHT, 50, 155))).blocks]

    assert "\n".join(f"{term} {text}" for term, text in pairs) in texts


def test_authors_side_by_side_are_read_one_after_the_other() -> None:
    authors = [
        ["Ada Berg", "Harbour Office", "Quay 5", "Bergen 5003", "ada@harbour.example"],
        ["Ben Dorn", "River Institute", "Mill Lane 2", "Graz 8010", "ben@river.example"],
        ["Cleo Frey", "Lake School", "Shore Road 9", "Zug 6300", "cleo@lake.example"],
    ]
    side = [
        run(text, 60.0 + 180.0 * column, 150.0 + PITCH * row)
        for row, texts in enumerate(zip(*authors, strict=True))
        for column, text in enumerate(texts)
    ]
    title = run("Boats on the river", 200.0, 100.0, 18.0, bold=True)

    read = blocks([title, *side, *lines(WIDE, 60, 300)])

    assert [block.text for block in read[1:4]] == ["\n".join(author) for author in authors]
    assert not any(block.kind is BlockKind.TABLE for block in read)


def test_a_question_in_a_frame_is_read_before_the_answer_beside_it() -> None:
    questions = [("Is there any evidence of a", "loose roof tile?"), ("Are you aware of any water", "in the cellar?")]
    runs: list[TextRun] = []
    shapes: list[Shape] = []
    for top, (first, second), answer in zip((100.0, 140.0), questions, ("No", "Yes"), strict=True):
        runs += [run(first, 64.0, top), run(second, 64.0, top + PITCH), run(answer, 300.0, top)]
        shapes.append(
            Shape(Box(60.0, top - 4, 250.0, top + 30), filled=True, stroked=True, curved=False, colour="ffd3e9f8")
        )

    texts = [block.text for block in blocks(runs, tuple(shapes))]

    assert texts == [" ".join(questions[0]), "No", " ".join(questions[1]), "Yes"]
