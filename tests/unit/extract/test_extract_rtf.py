"""Rich text: its words, its tables, and nothing of its pictures."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from octavo.core.errors import Empty, OctavoError
from octavo.extract.formats.rtf import PROCESSOR
from tests.support.office import markdown, read


def rtf(body: str, info: str = "") -> bytes:
    fonts = r"{\fonttbl{\f0\froman\fcharset0 Times New Roman;}}"
    return (rf"{{\rtf1\ansi\ansicpg1252\deff0{fonts}{{\info{info}}}" + body + "}").encode("ascii")


def test_paragraphs_and_characters(tmp_path: Path) -> None:
    body = r"First {\b bold} one with \'fc and \u8364? and \u-10179?\u-8704?.\par Second \emdash  one.\par"
    assert markdown(PROCESSOR, tmp_path, rtf(body)) == "First bold one with ü and € and 😀.\n\nSecond — one."


def test_tables(tmp_path: Path) -> None:
    row = r"\trowd\cellx1\cellx2 {0}\cell {1}\cell\row "
    body = (
        "Before\\par "
        + row.replace("{0}", "a").replace("{1}", "*b*")
        + row.replace("{0}", "c").replace("{1}", "d")
        + "After"
    )
    assert markdown(PROCESSOR, tmp_path, rtf(body)) == "Before\n\n| a | \\*b\\* |\n| --- | --- |\n| c | d |\n\nAfter"


def test_what_it_says_of_itself(tmp_path: Path) -> None:
    info = r"{\title The \'dcbersicht}{\author Ann}{\creatim\yr2020\mo3\dy4\hr1}"
    about = read(PROCESSOR, tmp_path, rtf("Text", info)).metadata
    assert (about.title, about.author, about.date) == ("The Übersicht", "Ann", "2020-03-04")


def test_pictures_cost_nothing(tmp_path: Path) -> None:
    body = r"Some words before it.\par {\pict\pngblip\picw10 " + "89504e47" * 1_000_000 + r"}\par And some after it."
    began = time.process_time()
    assert markdown(PROCESSOR, tmp_path, rtf(body)) == "Some words before it.\n\nAnd some after it."
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
