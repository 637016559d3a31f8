"""The lines that are shown of a passage, and the places of the found words in them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.search.hits import BEGIN, END, LENGTH, cut_snippet, read_marks

ODD = ["[", "![", "[a](", "](", "# ", "#", "|", "-", "_", "*", " ", "\\", "a. ", "a", "水", f"{BEGIN}a{END} "]
words = st.lists(st.tuples(st.text("abc.#*|_ \n[]()水", min_size=1, max_size=12), st.booleans()), max_size=120)


def mark(word: str) -> str:
    return f"{BEGIN}{word}{END}"


@given(words)
def test_marks_are_inside_and_hold_found_words(parts: list[tuple[str, bool]]) -> None:
    marked = " ".join(mark(text) if found else text for text, found in parts)
    snippet = cut_snippet(marked)
    assert len(snippet.text) <= LENGTH + 4
    assert BEGIN not in snippet.text
    assert END not in snippet.text
    end = 0
    for start, stop in snippet.marks:
        assert end <= start < stop <= len(snippet.text)
        end = stop
    plain, _ = read_marks(marked)
    assert 0 <= snippet.at <= len(plain)


def test_it_is_cut_where_the_found_words_stand_together() -> None:
    filler = "Nothing of interest is said here at all. " * 20
    text = f"{mark('peat')} once. {filler}Then {mark('peat')} and {mark('moss')} meet. {filler}"
    snippet = cut_snippet(text)
    assert [snippet.text[start:end] for start, end in snippet.marks] == ["peat", "moss"]
    assert snippet.text.startswith("… Then peat and moss meet.")
    assert snippet.text.endswith("…")
    assert read_marks(text)[0][snippet.at :].startswith("peat and moss")


def test_marks_of_markdown_are_not_shown() -> None:
    table = "\\# | a | b |\n|---|---|"
    text = f"## A **bold** {mark('bog')}\n\n{table}\n\n- see [the *map*](http://example.org/x) of snake_case"
    assert cut_snippet(text).text == "A bold bog: # a b see the map of snake_case"


def test_what_was_found_by_meaning_alone_begins_at_the_beginning() -> None:
    assert cut_snippet("word " * 200).text.startswith("word word")


@pytest.mark.parametrize("part", ODD)
def test_four_times_the_text_takes_about_four_times_as_long(part: str) -> None:
    def spent(size: int) -> float:
        marked = mark("found") + part * (size // len(part))
        times: list[float] = []
        for _ in range(3):
            start = time.process_time()
            cut_snippet(marked)
            times.append(time.process_time() - start)
        return min(times)

    # Linear is 4, quadratic 16; a chunk has at most 15,000 characters.
    assert spent(16_000) < 9 * max(spent(4000), 0.01)
