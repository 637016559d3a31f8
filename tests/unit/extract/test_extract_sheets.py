"""Spreadsheets and tables as text: readable values, and never a silent cut."""

from __future__ import annotations

import csv as standard_csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.errors import BadInput, Empty, OctavoError, TooLarge
from octavo.extract.decode import clean
from octavo.extract.extracted import BlockKind, Quality
from octavo.extract.formats import data as data_files
from octavo.extract.formats import xlsx
from octavo.extract.markdown import table_grid
from octavo.extract.office.ooxml import format_number
from tests.support.office import cell, core, markdown, read, rows
from tests.support.office import xlsx as workbook

patient = settings(deadline=None, max_examples=150)

DATES = '<cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/></cellXfs>'


def test_each_sheet_is_a_heading_and_its_tables(tmp_path: Path) -> None:
    first = rows(["Report"], [None], ["Name", "Height"], ["Roter Sand", 28.5], ["a|b *c*", 3.0])
    extracted = read(
        xlsx.PROCESSOR, tmp_path, workbook({"Towers &amp; more": first, "No": "", "Two": rows(["x", "y"])})
    )
    assert extracted.markdown == (
        "# Towers & more\n\nReport\n\n"
        "| Name | Height |\n| --- | --- |\n| Roter Sand | 28.5 |\n| a\\|b \\*c\\* | 3 |\n\n"
        "# Two\n\n| x | y |\n| --- | --- |"
    )
    assert [block.kind for block in extracted.blocks if block.kind is BlockKind.TABLE] == [BlockKind.TABLE] * 2
    assert extracted.quality is Quality.FULL


def test_dates_numbers_and_truth_are_readable(tmp_path: Path) -> None:
    content = (
        '<row r="1"><c r="A1" s="1"><v>45000</v></c><c r="B1" s="2"><v>45000.5</v></c><c r="C1" t="b"><v>1</v></c>'
        '<c r="D1"><v>0.30000000000000004</v></c><c r="E1"><v>1234567</v></c><c r="F1" t="e"><v>#DIV/0!</v></c></row>'
    )
    text = markdown(xlsx.PROCESSOR, tmp_path, workbook({"S": content}, styles=DATES))
    assert "| 2023-03-15 | 2023-03-15 12:00:00 | TRUE | 0.3 | 1234567 |" in text


def test_merged_cells_stand_in_every_place_they_cover(tmp_path: Path) -> None:
    content = rows([None, None, None, None], [None, "Head", None, "Last"], [None, "down", 1, 2], [None, None, 3, 4])
    merges = '<mergeCells><mergeCell ref="B2:C2"/><mergeCell ref="B3:B4"/></mergeCells>'
    assert markdown(xlsx.PROCESSOR, tmp_path, workbook({"S": content}, after=merges)) == (
        "# S\n\n| Head | Head | Last |\n| --- | --- | --- |\n| down | 1 | 2 |\n| down | 3 | 4 |"
    )


def test_what_is_left_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_grid, "MOST_ROWS", 3)
    monkeypatch.setattr(table_grid, "MOST_COLUMNS", 2)
    content = rows(["a", "b", "c"], *([n, n, n] for n in range(1000)))
    extracted = read(xlsx.PROCESSOR, tmp_path, workbook({"S": content}))
    assert extracted.markdown.endswith(
        "*Omitted: the rows after the first 3 (998 more) and the columns after the first 2 (1 more). "
        "The file contains everything.*"
    )
    assert extracted.quality is Quality.PARTIAL
    same = read(data_files.CSV, tmp_path, b"a,b,c\n" + b"1,2,3\n" * 1000)
    assert "(998 more)" in same.markdown
    assert same.quality is Quality.PARTIAL


def test_a_cell_that_is_cut_is_said_too(tmp_path: Path) -> None:
    extracted = read(data_files.CSV, tmp_path, b"a,b\n1," + b"long " * 1000 + b"\n")
    assert extracted.markdown.endswith("after the first 2,000 characters (1 cells). The file contains everything.*")
    assert extracted.quality is Quality.PARTIAL


def test_cells_at_both_ends_of_the_world_are_refused(tmp_path: Path) -> None:
    far = f'<row r="1">{cell("A1", 1)}</row><row r="1048576">{cell("XFD1048576", 1)}</row>'
    with pytest.raises(TooLarge, match="too many rows and columns"):
        read(xlsx.PROCESSOR, tmp_path, workbook({"S": far}))


def test_empty_cells_at_the_end_of_the_world_do_no_harm(tmp_path: Path) -> None:
    far = f'<row r="1">{cell("A1", "here")}</row><row r="1048576"><c r="XFD1048576" s="1"/></row>'
    assert markdown(xlsx.PROCESSOR, tmp_path, workbook({"S": far})) == "# S\n\nhere"


def test_a_packed_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        read(xlsx.PROCESSOR, tmp_path, workbook({"S": rows(["a"])}, more={"xl/sharedStrings.xml": bytes(40 << 20)}))


def test_the_workbook_says_who_made_it(tmp_path: Path) -> None:
    about = read(
        xlsx.PROCESSOR, tmp_path, workbook({"S": rows(["a"])}, more={"docProps/core.xml": core("T", "Ann")})
    ).metadata
    assert (about.title, about.author) == ("T", "Ann")


def test_damage_is_told_and_no_words_are_empty(tmp_path: Path) -> None:
    with pytest.raises(Empty):
        read(xlsx.PROCESSOR, tmp_path, workbook({"S": ""}))
    with pytest.raises(BadInput):
        read(xlsx.PROCESSOR, tmp_path, workbook({"S": ""}, more={"xl/workbook.xml": "<workbook"}))
    with pytest.raises(OctavoError):
        read(xlsx.PROCESSOR, tmp_path, workbook({"S": "<row><c r='A1'><v>"}))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("Name,Height\nA,1\nB,2\n", "| Name | Height |\n| --- | --- |\n| A | 1 |\n| B | 2 |"),
        ("Name;Größe\nA;1,5\nB;2,5\n", "| Name | Größe |\n| --- | --- |\n| A | 1,5 |\n| B | 2,5 |"),
        ("a\tb\n1\t2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("sep=|\na|b,c\n1|2\n", "| a | b,c |\n| --- | --- |\n| 1 | 2 |"),
        ("1,2\n3,4\n", "| Column 1 | Column 2 |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"),
        (
            'a,b\n"x, y","two\nlines"\n"say ""hi""",\n',
            '| a | b |\n| --- | --- |\n| x, y | two lines |\n| say "hi" |  |',
        ),
        ("a,b\n\n1,2\n\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("a,b\n1,2,3\n", "| a | b |  |\n| --- | --- | --- |\n| 1 | 2 | 3 |"),
        ("a,b\n<b>,*x*\n", "| a | b |\n| --- | --- |\n| \\<b> | \\*x\\* |"),
    ],
    ids=["comma", "semicolon", "tab", "declared", "no head", "quotes", "empty lines", "ragged", "marks"],
)
def test_tables_as_text(tmp_path: Path, data: str, expected: str) -> None:
    assert markdown(data_files.CSV, tmp_path, data.encode()) == expected


def test_the_encoding_is_found(tmp_path: Path) -> None:
    assert "| Köln | 5 |" in markdown(data_files.CSV, tmp_path, "Stadt;Zahl\nKöln;5\nGießen;7\n".encode("utf-16"))


def test_a_quotation_mark_that_is_never_closed_swallows_nothing(tmp_path: Path) -> None:
    text = markdown(data_files.CSV, tmp_path, ('a,b\n1,"x\n' + "2,yy\n" * 250_000).encode())
    assert "yy" in text
    assert text.count("\n") > 1000


@pytest.mark.parametrize("data", [b"", b"\n\n", b",,\n,,\n", b";"], ids=["nothing", "lines", "cells", "one"])
def test_no_words_are_empty_here_too(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(Empty):
        read(data_files.CSV, tmp_path, data)


words = st.text(st.sampled_from('abcdefgh ,;"|\t'), min_size=1, max_size=8).map(lambda text: f"w{text}w")


@patient
@given(
    st.integers(2, 4).flatmap(
        lambda width: st.lists(st.lists(words, min_size=width, max_size=width), min_size=3, max_size=8)
    ),
    st.sampled_from(",;\t"),
)
def test_what_a_program_wrote_is_found_again(table: list[list[str]], separator: str) -> None:
    memory = io.StringIO()
    standard_csv.writer(memory, delimiter=separator, quoting=standard_csv.QUOTE_ALL).writerows(table)
    text = memory.getvalue().replace("\r\n", "\n")
    assert data_files.find_separator(text) == separator
    assert list(data_files.read_rows(text, separator))[: len(table)] == table


@patient
@given(st.text(max_size=300))
def test_any_text_is_a_table_or_empty(text: str) -> None:
    try:
        extracted = data_files.from_text(clean(text))
    except Empty:
        return
    assert extracted.word_count > 0


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (0.1534, "0%", "15%"),
        (2.345, "0.00", "2.35"),
        (-1234.5, '#,##0.00 "€";[Red]-#,##0.00 "€"', "-1,234.50 €"),
        (1234.5, "[$$-409]#,##0.00", "$1,234.50"),
        (0, '_-* #,##0.00_-;\\-* #,##0.00_-;_-* "-"??_-;_-@_-', "-"),
        (-5, '_-* #,##0.00_-;\\-* #,##0.00_-;_-* "-"??_-;_-@_-', "-5.00"),
        (12_345_678, '0.0,,"M"', "12.3M"),
        (7, "000", "007"),
        (3, "0.##", "3"),
        (12345, "0.00E+00", "1.23E+04"),
        (5, "# ?/?", None),
        (5, "General", None),
        (5, "[>=3]0;0.0", None),
        (3, "yyyy-mm-dd", None),
        (1e300, "0.00", None),
        (float("nan"), "0.00", None),
    ],
)
def test_numbers_are_written_as_displayed_or_not_formatted(value: float, code: str, expected: str | None) -> None:
    assert format_number(value, code) == expected


def test_cells_have_the_number_format_of_their_style(tmp_path: Path) -> None:
    styles = (
        '<numFmts><numFmt numFmtId="170" formatCode="#,##0.00 &quot;€&quot;"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="10"/><xf numFmtId="170"/></cellXfs>'
    )
    content = (
        f'<row r="3">{cell("B3", "Share")}{cell("C3", "Sum")}</row>'
        '<row r="4"><c r="B4" s="1"><v>0.1534</v></c><c s="2" r="C4"><v>1234.5</v></c></row>'
        '<row r="5"><c r="B5"><v>0.1534</v></c><c r="C5" t="b" s="2"><v>1</v></c></row>'
    )
    assert markdown(xlsx.PROCESSOR, tmp_path, workbook({"S": content}, styles=styles)).endswith(
        "| 15.34% | 1,234.50 € |\n| 0.1534 | TRUE |"
    )


def test_a_formula_without_a_result_is_shown_and_makes_the_text_partial(tmp_path: Path) -> None:
    content = (
        f'<row r="1">{cell("A1", "Sum")}{cell("B1", 3)}</row><row r="2">{cell("A2", "Twice")}'
        '<c r="B2"><f>SUM(B1,&quot;3&quot;)*2</f><v></v></c></row><row r="3"><c r="A3"><f>1+1</f><v/></c></row>'
        '<row r="4"><c r="A4"><f>1+2</f><v>3</v></c></row>'
    )
    extracted = read(xlsx.PROCESSOR, tmp_path, workbook({"S": content}))
    assert extracted.quality is Quality.PARTIAL
    assert extracted.markdown == (
        '# S\n\n| Sum | 3 |\n| --- | --- |\n| Twice | =SUM(B1,"3")\\*2 |\n| =1+1 |  |\n| 3 |  |\n\n'
        "*Omitted: the results of formulas (2). The file does not contain them.*"
    )


def test_rows_stay_whole_where_an_empty_column_runs_through_them(tmp_path: Path) -> None:
    content = rows(
        ["Power"], [1, None, "Voltage", None, "kV", ":", 130], [2, None, "Phases", None, None, ":", 3], ["Notes"],
        [1, None, "Converted"],
    )  # fmt: skip
    assert markdown(xlsx.PROCESSOR, tmp_path, workbook({"S": content})) == (
        "# S\n\nPower\n\n| 1 | Voltage | kV | : | 130 |\n| --- | --- | --- | --- | --- |\n| 2 | Phases |  | : | 3 |\n"
        "| Notes |  |  |  |  |\n| 1 | Converted |  |  |  |"
    )


def test_tables_side_by_side_stay_apart(tmp_path: Path) -> None:
    content = rows(["a", "b", None, "c", "d"], [1, 2, None, 3, 4], [5, 6])
    assert markdown(xlsx.PROCESSOR, tmp_path, workbook({"S": content})).count("| --- | --- |") == 2


def test_a_column_that_merged_cells_cover_everywhere_is_no_column(tmp_path: Path) -> None:
    content = rows(["Package", None, "Revision"], ["A-1", None, "B"])
    merges = '<mergeCells><mergeCell ref="A1:B1"/><mergeCell ref="A2:B2"/></mergeCells>'
    assert markdown(xlsx.PROCESSOR, tmp_path, workbook({"S": content}, after=merges)) == (
        "# S\n\n| Package | Revision |\n| --- | --- |\n| A-1 | B |"
    )


def test_errors_are_shown_as_in_the_sheet(tmp_path: Path) -> None:
    content = (
        f'<row r="1">{cell("A1", "Ratio")}{cell("B1", "Name")}</row>'
        '<row r="2"><c r="A2" t="e"><f>1/0</f><v>#DIV/0!</v></c><c r="B2" t="e"><v>#N/A</v></c></row>'
    )
    assert markdown(xlsx.PROCESSOR, tmp_path, workbook({"S": content})).endswith("| #DIV/0! | #N/A |")
