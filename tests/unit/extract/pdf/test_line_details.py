"""Exponents, code and lists of definitions keep their meaning when the pieces of a line are joined."""

from __future__ import annotations

from octavo.extract.extracted import BlockKind, Box
from octavo.extract.pdf.content import PageContent, Shape, TextRun, Word
from octavo.extract.pdf.letters import HYPHEN, Vocabulary, join_lines
from octavo.extract.pdf.lines import Segment, rows_of
from octavo.extract.pdf.page_batches import PageBlock
from octavo.extract.pdf.paragraphs import Part
from octavo.extract.pdf.regions import lay_out


def run(text: str, left: float, top: float, size: float = 10.0, font: str = "Times", letter: float = 5.0) -> TextRun:
    words: list[Word] = []
    at = left
    for word in text.split(" "):
        words.append(Word(at, top, at + len(word) * letter, top + size, word))
        at += (len(word) + 1) * letter
    box = Box(left, top, at - letter, top + size)
    return TextRun(box, text, size, font, bold=False, italic=False, rotation=0.0, tag=None, words=tuple(words))


def blocks(*runs: TextRun, shapes: tuple[Shape, ...] = ()) -> tuple[PageBlock, ...]:
    return lay_out(PageContent(1, 595.0, 842.0, runs, shapes, ())).blocks


def texts(*runs: TextRun) -> list[str]:
    return [block.text for block in blocks(*runs)]


def test_an_exponent_never_joins_with_the_number_before_it() -> None:
    line = run("about 10", 60, 200), run("6", 100, 198, 6.0, letter=3.0), run("cells of size g", 106, 200)
    raised = run("a", 181, 198, 6.0, letter=3.0), run("were counted", 188, 200)
    assert texts(*line, *raised) == ["about 10⁶ cells of size g^a were counted"]


def test_a_small_number_on_the_line_or_after_a_word_stays_as_it_is() -> None:
    assert texts(run("see note", 60, 200), run("a", 100.5, 198, 6.0, letter=3.0)) == ["see notea"]
    assert texts(run("vector x", 60, 200), run("2", 100.5, 205, 6.0, letter=3.0)) == ["vector x2"]


def test_numbered_lines_of_code_keep_their_indents() -> None:
    places = (80, "for item in items:"), (104, "print(item)"), (104, "print(others)")
    lines = [
        run(text, left, 200 + 12 * row, font="Courier", letter=6.0)
        for row, (left, line) in enumerate(places)
        for left, text in ((60, str(row + 1)), (left, line))
    ]
    (code,) = blocks(*lines)
    assert code.kind is BlockKind.CODE
    assert code.text.split("\n")[1:-1] == ["1  for item in items:", "2      print(item)", "3      print(others)"]


def test_code_in_a_font_without_a_name_is_found_by_its_letters() -> None:
    code = [run("gap> list one", 60, 200 + 12 * row, font="", letter=5.2) for row in range(5)]
    assert [block.kind for block in blocks(*code)] == [BlockKind.CODE]
    prose = [
        run(text, 60, 200 + 12 * row, font="", letter=4.4 + 0.3 * row)
        for row, text in enumerate(("Lime is slaked in", "a pit that is dug", "before the wall is"))
    ]
    assert [block.kind for block in blocks(*prose)] == [BlockKind.PARAGRAPH]


def test_terms_and_definitions_stay_on_their_lines() -> None:
    rows = [("f", "find all connections of the net"), ("back", "remove them"), ("g", "more grid")]
    pieces = [piece for row, (term, text) in enumerate(rows)
              for piece in (run(term, 60, 200 + 12 * row), run(text, 100, 200 + 12 * row))]  # fmt: skip
    assert texts(*pieces) == ["f find all connections of the net\nback remove them\ng more grid"]


def test_one_line_beyond_the_edge_does_not_divide_the_others() -> None:
    full = "amber barges leave the quay and carry gravel to the"
    lines = [run(full, 60, 200 + 12 * row) for row in range(6)]
    long = run(full + " islands in the west", 60, 200 + 12 * 6)
    assert texts(*lines, long, run("end of it.", 60, 200 + 12 * 7))[0].count("\n") == 0


def test_an_adverb_keeps_its_hyphen_at_the_end_of_a_line() -> None:
    words = Vocabulary(["the city is populated"])
    assert words.undivided(f"densely{HYPHEN}populated") == "densely-populated"
    assert words.undivided(f"apply{HYPHEN}ing") == "applying"


def test_a_divided_word_is_written_as_in_most_of_the_document() -> None:
    words = Vocabulary(["Software and software", "soft-ware"])
    assert words.undivided(f"Soft{HYPHEN}ware") == "Software"
    words = Vocabulary(["a multi-user system", "multi-user mode", "multiuser"])
    assert words.undivided(f"multi{HYPHEN}user") == "multi-user"


def test_words_in_capitals_are_joined_in_texts_in_capitals_only() -> None:
    legal = ["THE AUTHOR DISCLAIMS ALL IMPLIED WARRAN-", "TIES."]
    assert join_lines(legal) == f"THE AUTHOR DISCLAIMS ALL IMPLIED WARRAN{HYPHEN}TIES."
    assert join_lines(["the table lists all codes of UTF-", "EBCDIC."]) == "the table lists all codes of UTF-EBCDIC."


def test_a_name_beside_the_middle_of_an_address_is_not_mixed_into_it() -> None:
    name = run("Philipp Maier", 60, 52, 12.0)
    address = [run(text, 420, 40 + 12 * at) for at, text in enumerate(["Station Road 15", "1234 Northtown", "Norway"])]
    prose = [run(LONG, 60, 200 + 12 * line) for line in range(6)]
    assert texts(*address[:2], name, address[2], *prose)[:2] == [
        "Philipp Maier",
        "Station Road 15\n1234 Northtown\nNorway",
    ]


LONG = "A sentence that is as wide as its column continues after the"


def test_a_sentence_that_ends_in_typed_words_stays_one_paragraph() -> None:
    first, last = run(LONG, 72, 200), run("tool_name setting.", 60, 212, font="Courier", letter=6.0)
    code = run("call tool_name", 84, 240, font="Courier", letter=6.0)
    sentence, block = blocks(first, last, code)
    assert (sentence.kind, sentence.text) == (BlockKind.PARAGRAPH, f"{LONG} tool_name setting.")
    assert block.kind is BlockKind.CODE


def test_the_second_line_of_a_list_item_can_be_typed() -> None:
    lines = run("• one", 60, 188), run(f"• {LONG}", 60, 200), run("tool.", 70, 212, font="Courier", letter=6.0)
    (block,) = blocks(*lines)
    assert block.text == f"- one\n- {LONG} tool."


def test_a_line_in_several_fonts_is_not_code_if_its_spaces_are_narrow() -> None:
    words = Word(60, 200, 72, 210, "pe"), Word(74.6, 200, 124, 210, "(pending)")
    term = TextRun(Box(60, 200, 124, 210), "pe (pending)", 10.0, "mplus1mn", False, False, 0.0, None, words)
    assert [block.kind for block in blocks(term)] == [BlockKind.PARAGRAPH]
    assert [block.kind for block in blocks(run("ls -l file", 60, 200, font="mplus1mn", letter=5.0))] == [BlockKind.CODE]


def test_short_lines_of_numbered_code_are_code() -> None:
    lines = [
        run(text, left, 200 + 12 * row, size, font, letter)
        for row, code in enumerate(("}", "}", "\\end:"))
        for left, text, size, font, letter in ((60, f"45{row}", 6.0, "Times", 3.0), (80, code, 10.0, "Courier", 6.0))
    ]
    assert [block.kind for block in blocks(*lines)] == [BlockKind.CODE]


def test_a_term_above_its_indented_definition_is_a_separate_line() -> None:
    lines = run("Lime", 60, 200), run(LONG, 90, 212), run("wall is built and dried.", 90, 224)
    assert texts(*lines) == ["Lime", f"{LONG} wall is built and dried."]


def test_a_paragraph_below_a_list_is_not_part_of_its_last_item() -> None:
    lines = run(f"• {LONG}.", 60, 188), run("• sand", 60, 200), run("Mortar is mixed in a box", 60, 212)
    assert texts(*lines) == [f"- {LONG}.\n- sand", "Mortar is mixed in a box"]


def test_the_lines_of_an_index_in_typed_letters_are_not_code() -> None:
    entries = [
        run(f"find-lime{row}, {row}, 2{row}", 60, 200 + 12 * row, font="Courier", letter=6.0) for row in range(9)
    ]
    assert [block.kind for block in blocks(*entries)] == [BlockKind.PARAGRAPH]


def test_a_name_that_is_divided_with_an_arrow_is_joined() -> None:
    assert texts(run(f"{LONG} col\u2190-", 60, 200), run("Unit of a row", 60, 212)) == [f"{LONG} colUnit of a row"]


def test_a_chapter_number_beside_two_lines_comes_before_them() -> None:
    title = run("Installing and loading", 150, 62, 24.0, letter=12.0), run("the package", 230, 92, 24.0, letter=12.0)
    number = run("3", 60, 60, 60.0, letter=30.0)
    prose_lines = [run(LONG, 60, 200 + 12 * row) for row in range(6)]
    assert texts(number, *title, *prose_lines)[:2] == ["3", "Installing and loading the package"]


def test_a_section_number_is_separated_from_its_title() -> None:
    assert texts(run("3.3.5Application output", 60, 100), run("2.4Ghz radio", 60, 140)) == [
        "3.3.5 Application output",
        "2.4Ghz radio",
    ]


def test_a_japanese_line_inside_code_is_code() -> None:
    lines = (
        run("\\begin{list}", 60, 200, font="Courier"),
        run("逆数はいくつですか", 70, 212),
        run("\\end{list}", 60, 224, font="Courier"),
    )
    assert [block.kind for block in blocks(*lines)] == [BlockKind.CODE]
    below = run("逆数はいくつですか", 70, 260)
    assert [block.kind for block in blocks(lines[0], lines[2], below)] == [BlockKind.CODE, BlockKind.PARAGRAPH]


def test_a_numbered_title_in_large_typed_letters_is_not_code() -> None:
    title = run("5.15.2 manpage.sgml.ex", 60, 180, 14.0, font="Courier", letter=8.4)
    first, *_ = blocks(title, *(run(LONG, 60, 210 + 12 * row) for row in range(4)))
    assert (first.kind, first.text) == (BlockKind.PARAGRAPH, "5.15.2 manpage.sgml.ex")


def test_a_sentence_runs_through_a_typed_line() -> None:
    typed = "tool_name removes every name that has no value from"
    lines = run(LONG, 72, 200), run(typed, 60, 212, font="Courier", letter=6.0), run("the list.", 60, 224)
    assert texts(*lines) == [f"{LONG} {typed} the list."]


def test_a_picture_beside_a_paragraph_does_not_divide_it() -> None:
    picture = PageBlock(BlockKind.IMAGE, "", Box(300.0, 195.0, 460.0, 260.0), figure="image")
    beside = Segment(300.0, 195.0, 460.0, 260.0, block=(Part(picture),))
    lines = [
        Segment(60.0, 200.0 + 14 * number, 280.0, 210.0 + 14 * number, text=f"Line {number}") for number in range(6)
    ]
    rows = list(rows_of([*lines, beside]))
    assert rows == [[beside], *([line] for line in lines)]
