"""The figures of the extraction benchmarks mean what they are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.extraction.judging import cells_of, edit_similarity, foreign_words, items_of, plain, share_found

WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=12)


def distance(one: list[str], other: list[str]) -> int:
    """The textbook method, row by row."""
    row = list(range(len(other) + 1))
    for place, token in enumerate(one, 1):
        diagonal, row[0] = row[0], place
        for column, each in enumerate(other, 1):
            cost = diagonal if token == each else 1 + min(diagonal, row[column], row[column - 1])
            diagonal, row[column] = row[column], cost
    return row[-1]


@given(WORDS, WORDS)
def test_edit_similarity_is_the_share_of_tokens_that_can_stay(one: list[str], other: list[str]) -> None:
    assert edit_similarity(one, other) == pytest.approx(1 - distance(one, other) / max(len(one), len(other)))


def test_an_empty_text_is_similar_to_nothing_but_itself() -> None:
    assert (edit_similarity([], []), edit_similarity(["a"], []), edit_similarity([], ["a"])) == (1.0, 0.0, 0.0)


def test_marks_of_markdown_are_not_text() -> None:
    text = plain("# A **bold** [link](https://example.org)<br>&lt;b&gt; a\\_b")
    assert text.split() == ["A", "bold", "link", "<b>", "a_b"]


def test_cells_and_list_items_are_found_as_often_as_they_are_there() -> None:
    table = "| Name | Height |\n|---|---|\n| Roter Sand | 28.5 |\n| Neuwerk | 28.5 |\n"
    assert list(cells_of(table)) == ["Name", "Height", "RoterSand", "28.5", "Neuwerk", "28.5"]
    assert share_found(cells_of(table), ["28.5", "Name", "other"]) == (2, 6)
    assert list(items_of("- one\n* two\n1. three\nfour")) == ["one", "two", "three"]


def test_words_are_foreign_only_if_their_letters_are_not_there() -> None:
    assert foreign_words("in-memory data, naïve", "in-\nmemory da ta na\u0131\u0308ve") == ["naïve"]
    assert foreign_words("**Invented** words", "real words") == ["invented"]
