"""Rich text: its words with their formatting, headings, lists, tables, notes and pictures."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from octavo.core.errors import Empty, NotFound, OctavoError
from octavo.extract.detect import Hints
from octavo.extract.extracted import SourceType
from octavo.extract.formats import read_figure
from octavo.extract.formats.rtf import PROCESSOR
from tests.support.office import markdown, read


def rtf(body: str, info: str = "") -> bytes:
    fonts = r"{\fonttbl{\f0\froman\fcharset0 Times New Roman;}}"
    return (rf"{{\rtf1\ansi\ansicpg1252\deff0{fonts}{{\info{info}}}" + body + "}").encode("ascii")


def test_paragraphs_and_characters(tmp_path: Path) -> None:
    body = r"First {\b bold} one with \'fc and \u8364? and \u-10179?\u-8704?.\par Second \emdash  one.\par"
    assert markdown(PROCESSOR, tmp_path, rtf(body)) == "First **bold** one with ü and € and 😀.\n\nSecond — one."


def test_tables(tmp_path: Path) -> None:
    row = r"\trowd\cellx1\cellx2 {0}\cell {1}\cell\row "
    body = (
        "Before\\par "
        + row.replace("{0}", "a").replace("{1}", "*b*")
        + row.replace("{0}", "c").replace("{1}", "d")
        + "After"
    )
    assert markdown(PROCESSOR, tmp_path, rtf(body)) == "Before\n\n| a | \\*b\\* |\n| --- | --- |\n| c | d |\n\nAfter"


def test_merged_cells_and_tables_in_tables(tmp_path: Path) -> None:
    first = r"\trowd\clmgf\cellx1\clmrg\cellx2\clvmgf\cellx3\pard\intbl Name\cell\cell Down\cell\row "
    second = r"\trowd\cellx1\cellx2\clvmrg\cellx3\pard\intbl a\par b\cell {\itap2 x\nestcell y\nestcell}\cell\cell\row "
    written = markdown(PROCESSOR, tmp_path, rtf(first + second + r"\pard After"))
    assert written == "| Name | Name | Down |\n| --- | --- | --- |\n| a b | x y | Down |\n\nAfter"


def test_headings_by_style_and_lists(tmp_path: Path) -> None:
    styles = r"{\stylesheet{\ql Normal;}{\s1\ql\b\fs32 \sbasedon0 heading 1;}{\s7\outlinelevel1 Mine;}}"
    body = r"\pard\s1 One\par\pard\s7 Two\par\pard\ls1{\listtext\'b7\tab}bullet\par"
    body += r"\pard\ls1\ilvl1{\listtext 1.\tab}number\par\pard - typed\par Text."
    written = markdown(PROCESSOR, tmp_path, rtf(styles + body))
    assert written == "# One\n\n## Two\n\n- bullet\n  1. number\n- typed\n\nText."


def test_without_styles_larger_and_bold_lines_are_headings(tmp_path: Path) -> None:
    body = r"{\fs40 The title\par}{\fs24 {\b A part}\par Words of the text, which go on for a while.\par"
    body += r"{\b Not a heading, because it ends.}\par}"
    written = markdown(PROCESSOR, tmp_path, rtf(body))
    assert written.startswith("# The title\n\n## A part\n\nWords of the text")
    assert written.endswith("**Not a heading, because it ends.**")


def test_notes_links_and_comments(tmp_path: Path) -> None:
    body = r'Text{\footnote\pard {\chftn} The note.} and {\field{\*\fldinst HYPERLINK "https://x.org"}{\fldrslt link}}'
    body += r"{\*\atnid A}{\*\atnauthor Ann}\chatn{\*\annotation Why?}.\par{\header not this}{\deleted nor this}"
    assert markdown(PROCESSOR, tmp_path, rtf(body)) == (
        "Text[^1] and [link](https://x.org).\n\n> Comment by Ann: Why?\n\n[^1]: The note."
    )


def test_code_pages_of_fonts(tmp_path: Path) -> None:
    fonts = r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial Cyr;}{\f2\fcharset128 Mincho;}}"
    body = r"\f1 \'cf\'f0\'e8\'e2\'e5\'f2 \f2 \'93\'8c\'8b\'9e \f0 na\'efve{\uc2 \u1046 \'c6\'c6}"
    assert markdown(PROCESSOR, tmp_path, rtf(fonts + body)) == "Привет 東京 naïveЖ"


def test_pictures_can_be_read(tmp_path: Path) -> None:
    body = r"{\header{\pict\pngblip 0102}}A{\*\shppict{\pict\pngblip\picw9 89504e470d0a}}"
    body += r"{\nonshppict{\pict\wmetafile8 0f}} B {\pict\wmetafile8 010203}"
    file = tmp_path / "file.rtf"
    file.write_bytes(rtf(body))
    extracted = PROCESSOR.extract(file, Hints(SourceType.RTF))
    assert [one.member for one in extracted.figures] == ["pict:2", None]
    assert read_figure(file, SourceType.RTF, "pict:2") == b"\x89PNG\r\n"
    with pytest.raises(NotFound):
        read_figure(file, SourceType.RTF, "pict:9")


def test_what_it_says_of_itself(tmp_path: Path) -> None:
    info = r"{\title The \'dcbersicht}{\author Ann}{\creatim\yr2020\mo3\dy4\hr1}"
    about = read(PROCESSOR, tmp_path, rtf("Text", info)).metadata
    assert (about.title, about.author, about.date) == ("The Übersicht", "Ann", "2020-03-04")


def test_pictures_cost_nothing(tmp_path: Path) -> None:
    body = r"Some words before it.\par {\pict\pngblip\picw10 " + "89504e47" * 1_000_000 + r"}\par And some after it."
    began = time.process_time()
    assert (
        markdown(PROCESSOR, tmp_path, rtf(body)) == "Some words before it.\n\n![](figures/1.png)\n\nAnd some after it."
    )
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "data",
    [
        b"{\\rtf1 \\u99999999999? x}",
        b"{\\rtf1 " + b"{" * 100_000,
        b"{\\rtf1 \\ansicpg99 \\'ff}",
        b"{\\rtf1 {\\pict\\bin x}",
    ],
    ids=["character", "open", "code page", "picture"],
)
def test_damage_is_read_or_named(tmp_path: Path, data: bytes) -> None:
    with suppress(OctavoError):
        assert read(PROCESSOR, tmp_path, data).word_count


def test_no_words_are_empty(tmp_path: Path) -> None:
    with pytest.raises(Empty):
        read(PROCESSOR, tmp_path, rtf(r"\par\par"))


def test_powers_symbols_and_bullets_of_word_are_kept(tmp_path: Path) -> None:
    fonts = r"{\fonttbl{\f0\fcharset0 Arial;}{\f3\froman\fcharset2{\*\panose 05050102010706020507}Symbol;}}"
    text = rf"{{\rtf1\ansi{fonts}\pard 10{{\super 6}} of {{\f3\'61\'b3}}b, {{\super 2}}x\nosupersub\par"
    text += r"{\listtext o\tab}\pard\ls1\ilvl0 Item\par}"
    assert markdown(PROCESSOR, tmp_path, text.encode()) == "10^6 of α≥b, 2x\n\n- Item"  # noqa: RUF001


def test_empty_rows_above_a_table_are_not_its_header(tmp_path: Path) -> None:
    rows = r"\trowd\cellx1\cellx2\intbl\cell\cell\row\trowd\cellx1\cellx2\intbl A\cell B\cell\row"
    assert markdown(PROCESSOR, tmp_path, rf"{{\rtf1 {rows}}}".encode()) == "| A | B |\n| --- | --- |"
