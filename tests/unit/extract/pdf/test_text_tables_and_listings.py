"""Tables with sentences, charts, program listings and edges of pages are read as printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from octavo.extract.extracted import BlockKind, Extracted
from octavo.extract.pdf.letters import clean_letters, has_split_letters
from tests.support.pdf import Line, Part, Pdf, Picture, Words, read_pdf

SENTENCE = "Amber barges leave the quay at dawn and carry gravel to the island where masons wait."
OPTIONS = [
    ("depth", "4", ["Sets how many levels of a basin are dredged", "before the barge is moved to the next one."]),
    ("gauge", "none", ["Names the gauge whose level is compared."]),
    ("limit", "off", ["Stops the dredger if the water is lower than", "the level that the harbour master announced."]),
    ("watch", "dawn", ["Chooses the hours in which the lock is open."]),
]


def read(path: Path, *pages: Sequence[Part]) -> Extracted:
    (path / "page.pdf").write_bytes(Pdf(list(pages)).write())
    return read_pdf(path / "page.pdf")


def options(top: float, *, header: bool = True) -> list[Part]:
    parts: list[Part] = []
    if header:
        parts += [Line(72, top - 12, 540, top - 12), Line(72, top + 6, 540, top + 6)]
        parts += [Words(text, left, top) for text, left in (("Option", 76), ("Default", 170), ("Description", 330))]
        top += 20
    for name, value, text in OPTIONS:
        parts += [Words(name, 76, top), Words(value, 176, top)]
        parts += [Words(line, 260, top + 13 * row) for row, line in enumerate(text)]
        top += 13 * len(text) + 8
    return [*parts, Line(72, top, 540, top)] if header else parts


def rows(found: Extracted) -> list[str]:
    return [line for line in found.markdown.split("\n") if line.startswith("|") and "---" not in line]


def test_sentences_below_headings_between_lines_are_cells_of_their_rows(tmp_path: Path) -> None:
    expected = [f"| {name} | {value} | {' '.join(text)} |" for name, value, text in OPTIONS]
    assert rows(read(tmp_path, options(100))) == ["| Option | Default | Description |", *expected]


def test_labels_beside_sentences_are_a_table_without_any_lines(tmp_path: Path) -> None:
    found = read(tmp_path, [Words(SENTENCE, 72, 60), *options(120, header=False), Words(SENTENCE, 72, 330)])
    assert rows(found) == [f"| {name} | {value} | {' '.join(text)} |" for name, value, text in OPTIONS]
    assert found.markdown.startswith(SENTENCE)


def test_columns_of_running_text_are_not_a_table(tmp_path: Path) -> None:
    text = ["Lime is slaked in", "a pit that is dug", "one year before the", "wall is begun and", "then it is left to"]
    columns = [Words(line, left, 100 + 13 * row) for left in (72, 230, 390) for row, line in enumerate(text)]
    assert rows(read(tmp_path, columns)) == []


def test_wide_equal_spaces_between_words_do_not_make_cells(tmp_path: Path) -> None:
    words = ["References", "basin::gauge_of_water,", "angle,", "dredger::depth_of_basin,", "lock"]
    parts: list[Part] = []
    for row in range(5):
        left = 72.0
        for word in words[row:] + words[:row]:
            parts.append(Words(word, left, 100 + 13 * row, font="code", size=9))
            left += 5.4 * len(word) + 14
    assert rows(read(tmp_path, parts)) == []


def test_the_lines_below_a_header_and_above_a_footer_are_not_a_table(tmp_path: Path) -> None:
    codes = [("01/11 02/05 03/00 M L", "one octet for each character of the set")] * 4
    parts: list[Part] = [Line(72, 50, 540, 50), Line(72, 745, 540, 745), Words(SENTENCE, 72, 100)]
    parts += [
        Words(text, left, 200 + 18 * row)
        for row, pair in enumerate(codes)
        for text, left in zip(pair, (90, 300), strict=True)
    ]
    found = read(tmp_path, parts)
    assert rows(found) == []
    assert "01/11 02/05 03/00 M L one octet for each character of the set" in found.markdown


def test_tick_marks_on_two_axes_are_a_chart_with_its_labels(tmp_path: Path) -> None:
    parts: list[Part] = [Words(SENTENCE, 72, 60), Line(150, 150, 150, 350), Line(150, 350, 450, 350)]
    for step in range(5):
        parts += [Line(144, 150 + 50 * step, 150, 150 + 50 * step), Words(f"x{step}", 124, 153 + 50 * step, 9)]
        parts += [Line(150 + 75 * step, 350, 150 + 75 * step, 356), Words(f"y{step}", 146 + 75 * step, 367, 9)]
        parts += [Line(160 + 40 * step, 340 - 30 * step, 200 + 40 * step, 310 - 30 * step)]
    found = read(tmp_path, [*parts, Words("A title of the axis", 260, 380, 9), Words(SENTENCE, 72, 450)])
    assert [block.kind for block in found.blocks] == [BlockKind.PARAGRAPH, BlockKind.IMAGE, BlockKind.PARAGRAPH]
    assert "x1" not in found.markdown


def test_a_listing_whose_letters_are_printed_one_by_one_is_code(tmp_path: Path) -> None:
    program = [
        "for (item : items) {",
        "  total = total + item;",
        "  if (total > limit)",
        "    stop(total, limit);",
        "}",
    ]
    parts: list[Part] = [Words(SENTENCE, 72, 60)]
    for row, line in enumerate(program):
        parts += [Words(letter, 90 + 9 * at, 120 + 12 * row, 8) for at, letter in enumerate(line) if letter != " "]
    found = read(tmp_path, parts)
    assert (
        "for (item : items) {\n  total = total + item;\n  if (total > limit)\n    stop(total, limit);" in found.markdown
    )


def test_aligned_code_and_labels_in_code_stay_code(tmp_path: Path) -> None:
    output = [
        "out_1    -->     system:one",
        "out_2    -->     system:two",
        "Missing:         44",
        "Additional:      79",
    ]
    parts: list[Part] = [Words("To connect the channels of a file:", 72, 80)]
    parts += [Words(line, 90, 110 + 12 * row, 10, "code") for row, line in enumerate(output)]
    (code,) = (block for block in read(tmp_path, parts).blocks if block.kind is BlockKind.CODE)
    assert all(word in code.text for line in output for word in line.split())


def test_a_scan_with_a_web_address_below_it_is_read_by_ocr(tmp_path: Path) -> None:
    address = "https://records.example.org/viewer?id=82658815&key1=70&key2=275&county=150&name=WASHINGTON 1/50"
    found = read(tmp_path, [Picture(), Words(address, 40, 780, 8)])
    assert found.metadata.extra["pages_for_ocr"] == "1"


def test_a_label_that_is_repeated_inside_pages_is_not_a_running_header(tmp_path: Path) -> None:
    pages: list[list[Part]] = []
    for number in range(4):
        pages.append([Words("Project Description:", 72, 50), Words(SENTENCE, 72, 90), Words(f"Lock {number}", 72, 300)])
        pages[-1] += [Words("Project Description:", 72, 400 + number), Words(SENTENCE, 72, 440 + number)]
    assert read(tmp_path, *pages).markdown.count("Project Description:") == 8


def test_section_titles_at_the_top_of_pages_with_little_space_are_headers(tmp_path: Path) -> None:
    names = ["lime", "roofs", "barges", "locks", "quays"]
    pages = [[Words(f"CHAPTER OF {name}", 72, 40), Words(SENTENCE, 72, 66), Words(SENTENCE, 72, 80)] for name in names]
    assert "CHAPTER" not in read(tmp_path, *pages).markdown


def test_a_grave_accent_before_its_letter_is_joined_with_it() -> None:
    assert clean_letters("per`o est`a a l\u2019encap\u00b8calament") == "però està a l\u2019encapçalament"
    assert clean_letters("est`a") == "està"
    assert clean_letters("the command `run`") == "the command `run`"


def test_words_of_indian_scripts_in_pieces_are_recognised() -> None:
    broken = "বাং লা দে শে র মুক্তি আমা দে র জা তী য় জী বনে র একটি অত্য ন্ত অধ্যা য় এটি আমা দে র স্বা ধী নতা সং স্কৃতি " * 2
    assert has_split_letters(broken)
    assert not has_split_letters(
        "বাংলাদেশের মুক্তিযুদ্ধ আমাদের জাতীয় জীবনের একটি অত্যন্ত গুরুত্বপূর্ণ অধ্যায় এটি আমাদের স্বাধীনতা সংস্কৃতি পরিচয় " * 3
    )
