"""A quote is found among the words of its page, however it is broken and marked, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from octavo.extract.extracted import Box
from octavo.extract.pdf.placed_words import PlacedWord
from octavo.extract.pictures.quotes import find_quote, locate
from tests.support.analyses import sentence, write_book


def line(top: float, *words: str) -> list[PlacedWord]:
    return [PlacedWord(word, Box(50.0 * at, top, 50.0 * at + 45, top + 10)) for at, word in enumerate(words)]


PAGE = [*line(10, "The", "board", "and", "the", "dred-"), *line(25, "ger", "signed", "on", "4", "May.")]


def test_each_line_of_a_quote_has_a_box() -> None:
    assert locate(PAGE, "the **dredger** signed") == [Box(150, 10, 245, 20), Box(0, 25, 95, 35)]


def test_what_was_left_out_has_none() -> None:
    assert locate(PAGE, "The board … 4 May") == [Box(0, 10, 95, 20), Box(150, 25, 245, 35)]


def test_a_word_is_found_rather_than_a_part_of_another_one() -> None:
    words = line(10, "another", "other")
    assert locate(words, "other") == [words[1].box]


def test_words_that_are_not_there_have_no_box() -> None:
    assert locate(PAGE, "The board signed") == []


def test_the_box_lies_where_the_words_of_a_pdf_are_drawn(tmp_path: Path) -> None:
    book = tmp_path / "book.pdf"
    book.write_bytes(write_book(3))
    found = find_quote(book, 2, sentence(2))
    (box,) = found.boxes
    assert found.width > box.right > box.left > 0
    assert not find_quote(book, 2, sentence(3)).boxes
