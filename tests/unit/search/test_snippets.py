"""The lines that are shown of a passage, and the places of the found words in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from octavo.search.snippets import BEGIN, END, LENGTH, cut_snippet, read_marks

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
