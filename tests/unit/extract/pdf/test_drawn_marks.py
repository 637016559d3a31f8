"""Bullets, numbers on discs and underscores that are drawn as shapes become part of the text."""

from __future__ import annotations

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, Shape, TextRun, Word
from octavo.extract.pdf.drawn_marks import with_drawn_marks


def run(text: str, left: float, top: float, font: str = "Times") -> TextRun:
    words: list[Word] = []
    at = left
    for word in text.split(" "):
        words.append(Word(at, top, at + 5 * len(word), top + 10, word))
        at += 5 * len(word) + 4
    box = Box(left, top, words[-1].right, top + 10)
    return TextRun(box, text, 10.0, font, False, False, 0.0, None, tuple(words))


def filled(left: float, top: float, right: float, bottom: float, *, curved: bool = True) -> Shape:
    return Shape(Box(left, top, right, bottom), filled=True, stroked=False, curved=curved, colour="ff000000")


def texts(*parts: TextRun | Shape, images: tuple[Box, ...] = ()) -> list[str]:
    runs = tuple(part for part in parts if isinstance(part, TextRun))
    shapes = tuple(part for part in parts if isinstance(part, Shape))
    return [one.text for one in with_drawn_marks(PageContent(1, 600, 800, runs, shapes, ()), images).runs]


def lines(font: str = "Times") -> list[TextRun]:
    return [run("first point of three", 70, 100 + 14 * row, font) for row in range(3)]


def dots(count: int) -> list[Shape]:
    return [filled(58, 103 + 14 * row, 62, 107 + 14 * row) for row in range(count)]


def test_dots_before_several_lines_are_bullets() -> None:
    assert texts(*lines(), *dots(3)).count("•") == 3
    assert texts(*lines(), images=tuple(dot.box for dot in dots(3))).count("•") == 3


def test_one_dot_dots_in_a_line_and_trees_of_files_are_not_bullets() -> None:
    assert "•" not in texts(*lines(), *dots(1))
    assert "•" not in texts(*lines(), *dots(3), *(run("before", 20, 100 + 14 * row) for row in range(3)))
    assert "•" not in texts(*lines("Courier"), *dots(3))


def test_a_number_on_a_disc_is_the_number_of_an_item() -> None:
    disc = filled(47, 98, 61, 112)
    assert texts(run("1", 51, 100), run("Write a letter", 70, 100), disc) == ["1.", "Write a letter"]
    assert texts(run("1", 51, 100), run("Write a letter", 70, 100)) == ["1", "Write a letter"]


def test_a_short_line_between_two_words_is_an_underscore() -> None:
    line = filled(75.2, 108, 78.8, 108.6, curved=False)
    assert texts(run("ocean name here", 50, 100), line) == ["ocean_name here"]
    assert texts(run("ocean name here", 50, 100), filled(50, 110, 58, 110.6, curved=False)) == ["ocean name here"]


def test_empty_squares_before_labels_are_check_boxes() -> None:
    squares = [Shape(Box(54, 100 + 14 * row, 64, 110 + 14 * row), False, True, False, None) for row in range(3)]
    assert texts(*lines(), *squares).count("☐") == 3
    assert "☐" not in texts(*lines(), squares[0])
    assert "☐" not in texts(*lines(), *squares, *(run("x", 56, 100 + 14 * row) for row in range(3)))
