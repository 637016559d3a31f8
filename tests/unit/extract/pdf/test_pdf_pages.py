"""A page becomes the Markdown that shows what the page shows, with a place for every block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.extract.extracted import BlockKind, Extracted, Quality
from octavo.extract.markdown import read_blocks
from tests.support.pdf import Bookmark, Line, Part, Pdf, Picture, Words, paragraph, read_pdf

PROSE = [
    "The library keeps every page where a reader can find it again, and it says",
    "of every sentence on which page it was found, so that nobody has to believe",
    "what they can look up themselves. It keeps the order of the columns, and the",
    "rows of tables stay rows.",
]
Read = Callable[..., Extracted]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(*pages: list[Part], **about: object) -> Extracted:
        path = tmp_path / "an object without a name"
        path.write_bytes(Pdf(pages, **about).write())  # pyright: ignore[reportArgumentType]
        return read_pdf(path)

    return read


def test_a_paragraph_is_one_line_and_has_its_place(read: Read) -> None:
    extracted = read([*paragraph(PROSE, 200)])
    assert extracted.markdown == " ".join(PROSE)
    [block] = extracted.blocks
    assert (block.kind, block.page, block.start, block.end) == (BlockKind.PARAGRAPH, 1, 0, len(extracted.markdown))
    assert block.box is not None
    assert 65 < block.box.left < 75
    assert 185 < block.box.top < 200
    assert 235 < block.box.bottom < 250
    [page] = extracted.pages
    assert (page.number, page.label, page.start, page.end) == (1, "1", 0, len(extracted.markdown))
    assert (page.width, page.height) == (612, 792)


def test_line_ends_that_were_meant_stay(read: Read) -> None:
    address = ["Northwind Traders Ltd", "12 Quay Street", "Cork"]
    extracted = read([*paragraph(address, 100), *paragraph(PROSE, 300)])
    assert extracted.markdown == "  \n".join(address) + "\n\n" + " ".join(PROSE)


def test_a_word_divided_at_the_end_of_a_line_is_whole_again(read: Read) -> None:
    lines = [*PROSE[:2], "what they can look up themselves. It keeps the order of all the para-", "graphs of a page."]
    assert "all the paragraphs of a page." in read([*paragraph(lines, 200)]).markdown


def test_ligatures_and_soft_hyphens_are_letters(read: Read) -> None:
    extracted = read([Words("An e\ufb03cient \ufb01nd of co\u00adoperation\u200b"), *paragraph(PROSE, 300)])
    assert extracted.markdown.startswith("An efficient find of cooperation")


def test_a_font_that_uses_soft_hyphens_beside_signs_draws_hyphens(read: Read) -> None:
    lines = ["Jsi\u00adli online, vyber Menu\u00ad>Edit.", *PROSE]
    assert read([*paragraph(lines, 200)]).markdown.startswith("Jsi-li online, vyber Menu->Edit.")


def test_circles_that_are_typed_as_letters_are_a_list(read: Read) -> None:
    circles = [Words("o slaking of lime", 90, 300), Words("o building of walls", 90, 314)]
    extracted = read([*paragraph(PROSE, 200), *circles, *paragraph(PROSE, 340)])
    assert "- slaking of lime\n- building of walls" in extracted.markdown
    prose = ["A casa tem uma porta verde que os pedreiros fizeram antes do inverno, e", "o telhado foi feito depois, e"]
    lines = [*prose, "no fim pintaram as paredes com cal branca que ficou um ano na cova, e", "o jardim."]
    assert "\n- " not in read([*paragraph(lines, 200)]).markdown


def test_a_name_above_a_full_paragraph_is_not_part_of_it(read: Read) -> None:
    assert read([*paragraph(["Verdana", *PROSE], 200)]).markdown == "Verdana\n\n" + " ".join(PROSE)


def test_two_lines_at_the_top_that_end_with_a_number_are_not_a_header(read: Read) -> None:
    top = [Words("This line is long and is followed by others.", 57, 80), Words("Role 1", 57, 94)]
    assert "Role 1" in read([*top, Words("Role 2", 57, 108), Words("Role 3", 57, 122)]).markdown


def test_a_line_across_the_page_ends_its_columns(read: Read) -> None:
    bank = [Words("ACME Bank", 72, 100), Words("Statement: September", 420, 110), Words("Date: 30 May", 420, 124)]
    rows = [Words(f"Payment number {number} of the month", 72, 180 + 14 * number) for number in range(6)]
    rule, balance = Line(70, 150, 540, 150), Words("Balance: 38.20", 420, 300)
    markdown = read([*bank, rule, *rows, balance]).markdown
    assert markdown.index("Date: 30 May") < markdown.index("Payment number 0") < markdown.index("Balance")


def test_lines_of_a_program_are_code_in_any_font(read: Read) -> None:
    program = ["plugin.Signature = ink;", "plugin.Count = 1;", "plugin.Types = 1;", "plugin.Next = NULL;"]
    extracted = read([*paragraph(PROSE, 100), *paragraph(program, 200), *paragraph(PROSE, 300)])
    assert "```\n" + "\n".join(program) + "\n```" in extracted.markdown
    parts = ["first part of it;", "second part;", "third"]
    assert "```" not in read([*paragraph(PROSE, 100), *paragraph(parts, 200), *paragraph(PROSE, 300)]).markdown


def test_a_bullet_that_is_drawn_twice_is_one_bullet(read: Read) -> None:
    items = [Words("\u2022 \u2022 slaking of lime", 90, 300), Words("\u2022 \u2022 building of walls", 90, 314)]
    assert "- slaking of lime\n- building of walls" in read([*paragraph(PROSE, 200), *items]).markdown


def test_what_means_something_in_markdown_is_shown_as_it_is(read: Read) -> None:
    lines = [
        "# hash",
        "> quote",
        "| a | b |",
        "<b>tag</b> &amp; [x](y) `code` *star* snake_case a * b",
        "===",
        "1984. A year",
    ]
    extracted = read([Words(line, top=100 + 40 * number) for number, line in enumerate(lines)])
    assert {block.kind for block in extracted.blocks} == {BlockKind.PARAGRAPH}
    assert "snake_case a * b" in extracted.markdown
    assert "\\<b>tag\\</b> \\&amp; [x\\](y) \\`code\\` \\*star\\*" in extracted.markdown
    assert_markdown_says_the_same(extracted)


def test_lists(read: Read) -> None:
    extracted = read(
        [
            *paragraph(PROSE, 100),
            *(Words(f"\u2022 item {name}", top=200 + 14 * row) for row, name in enumerate(["one", "two", "# three"])),
            *paragraph(PROSE, 280),
            *(Words(f"{number}. step {number}", top=380 + 14 * number) for number in (1, 2, 3)),
        ]
    )
    assert "- item one\n- item two\n- item # three" in extracted.markdown
    assert "1. step 1\n2. step 2\n3. step 3" in extracted.markdown
    assert [block.kind for block in extracted.blocks] == [BlockKind.PARAGRAPH, BlockKind.LIST] * 2
    assert_markdown_says_the_same(extracted)


def test_a_table_with_lines(read: Read) -> None:
    cells = [["Name", "Year", "a|b"], ["Ada", "1815", "*x*"], ["Alan", "1912", "<y>"]]
    rules: list[Part] = [Line(72, 100 + 20 * row, 372, 100 + 20 * row) for row in range(4)]
    rules += [Line(72 + 100 * column, 100, 72 + 100 * column, 160) for column in range(4)]
    words = [
        Words(cell, 76 + 100 * column, 114 + 20 * row)
        for row, line in enumerate(cells)
        for column, cell in enumerate(line)
    ]
    extracted = read([*rules, *words, *paragraph(PROSE, 300)])
    assert extracted.markdown.startswith(
        "| Name | Year | a\\|b |\n| --- | --- | --- |\n| Ada | 1815 | \\*x\\* |\n| Alan | 1912 | \\<y> |\n\n"
    )
    assert extracted.blocks[0].kind is BlockKind.TABLE
    assert_markdown_says_the_same(extracted)


def test_code_keeps_its_indents(read: Read) -> None:
    code = ["def find(page):", "    for block in page:", "        yield block"]
    lines = [Words(line, top=300 + 12 * row, size=9, font="code") for row, line in enumerate(code)]
    extracted = read([*paragraph(PROSE, 100), *lines, *paragraph(PROSE, 400)])
    assert "```python\n" + "\n".join(code) + "\n```" in extracted.markdown
    assert_markdown_says_the_same(extracted)


def test_two_columns_are_read_one_after_the_other(read: Read) -> None:
    left = [f"left column line {number} of some words" for number in range(12)]
    right = [f"right column line {number} of some words" for number in range(12)]
    extracted = read([*paragraph(left, 100, left=60, size=10), *paragraph(right, 100, left=330, size=10)])
    words = extracted.markdown
    assert words.index("left column line 11") < words.index("right column line 0")


def test_right_to_left_is_read_in_its_own_order(read: Read) -> None:
    # As PDFs have it: the first letter is the rightmost.
    extracted = read([Words("שלום עולם זה טקסט"[::-1]), Words("مرحبا بالعالم"[::-1], top=160), *paragraph(PROSE, 300)])
    assert "שלום עולם זה טקסט" in extracted.markdown
    assert "مرحبا بالعالم" in extracted.markdown


def test_a_page_that_only_shows_a_picture_is_told_apart_from_a_blank_one(read: Read) -> None:
    extracted = read([*paragraph(PROSE, 100)], [], [Picture()], [*paragraph(PROSE, 100)])
    assert extracted.quality is Quality.PARTIAL
    assert extracted.pages_with_text == 2
    assert extracted.metadata.extra == {"pages": "4", "pages_with_text": "2", "pages_for_ocr": "3"}
    assert [(page.start, page.end) for page in extracted.pages[1:3]] == [(extracted.pages[0].end,) * 2] * 2
    assert "```" not in extracted.markdown


def test_blank_pages_lack_nothing(read: Read) -> None:
    assert read([*paragraph(PROSE, 100)], []).quality is Quality.FULL


def test_scans_are_empty_and_say_which_pages_to_read(read: Read) -> None:
    extracted = read([Picture()], [Picture()], [], [Picture()])
    assert (extracted.quality, extracted.markdown, extracted.word_count) == (Quality.EMPTY, "", 0)
    assert extracted.metadata.extra["pages_for_ocr"] == "1-2,4"


def test_a_stamp_on_a_scan_and_signs_without_meaning_are_not_what_a_page_says(read: Read) -> None:
    stamped: list[Part] = [Picture(), Words("Scanned on Monday", top=770, size=8)]
    extracted = read([*paragraph(PROSE, 100)], stamped, [Words("\ue001\ue002\ue003 \ue004\ue005")])
    assert extracted.metadata.extra["pages_for_ocr"] == "2-3"
    assert "Scanned on Monday" in extracted.markdown
    assert "\ue001" not in extracted.markdown


def test_labels(read: Read) -> None:
    pages = [[*paragraph(PROSE, 100)] for _ in range(5)]
    extracted = read(*pages, labels=[(0, "<</S/r>>"), (2, "<</S/D>>"), (4, "<</S/D/P(A-)/St 7>>")])
    assert [page.label for page in extracted.pages] == ["i", "ii", "1", "2", "A-7"]
    assert [page.number for page in extracted.pages] == [1, 2, 3, 4, 5]


def test_metadata(read: Read) -> None:
    info = {
        "Title": "Über Seiten",
        "Author": "A. Nobody",
        "CreationDate": "D:20240229120000+01'00'",
        "Subject": "Pages",
    }
    about = read([*paragraph(PROSE, 100)], info=info, language="de-AT").metadata
    assert (about.title, about.author, about.date, about.language) == (
        "Über Seiten",
        "A. Nobody",
        "2024-02-29",
        "de-AT",
    )
    assert about.extra["subject"] == "Pages"


@pytest.mark.parametrize("title", ["", "untitled", "Microsoft Word - draft.doc", "thesis.dvi"])
def test_a_title_that_is_none_is_the_first_heading(read: Read, title: str) -> None:
    page: list[Part] = [Words("On Pages", top=80, size=20, font="bold"), *paragraph(PROSE, 120)]
    assert read(page, info={"Title": title}).metadata.title == "On Pages"


def test_bookmarks_are_the_outline(read: Read) -> None:
    page: list[Part] = [Words("On Pages", top=80, size=20, font="bold"), *paragraph(PROSE, 120)]
    extracted = read(page, page, bookmarks=[Bookmark(1, "On pages", 1), Bookmark(2, "Somewhere", 2)])
    assert [(one.level, one.title, one.page, one.start) for one in extracted.outline] == [
        (1, "On pages", 1, 0),
        (2, "Somewhere", 2, extracted.pages[1].start),
    ]


def assert_markdown_says_the_same(extracted: Extracted) -> None:
    """The blocks are those that a reader of the Markdown sees."""
    for page in extracted.pages:
        seen = [(one.kind, one.start, one.end) for one in read_blocks(extracted.markdown[page.start : page.end])]
        told = [
            (one.kind, one.start - page.start, one.end - page.start)
            for one in extracted.blocks
            if one.page == page.number
        ]
        assert seen == told
