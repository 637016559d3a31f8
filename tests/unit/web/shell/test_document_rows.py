"""A row says of a document what fits in a line."""

from __future__ import annotations

import pytest

from octavo.web.shell.document_rows import plain_words


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        ("# The Slow Water\n\nPeat *holds* `rain` for [years](https://example.org).", "Peat holds rain for years."),
        ("> quoted\n\n- one\n- two", "quoted one two"),
        ("---\n\n![a bog](x.png) and <b>moss</b>", "a bog and moss"),
        ("| a | b |\n|---|---|\n", "| a | b |"),
        ("See my_file_name.pdf and _private", "See my_file_name.pdf and _private"),
        ("_Peat_ and __moss__, my\\_file\\_name, a_b_c _d_e_", "Peat and moss, my_file_name, a_b_c d_e"),
        ("", ""),
    ],
    ids=["title and emphasis", "quote and list", "picture and tag", "table", "names", "underscores", "nothing"],
)
def test_an_opening_is_plain_words_without_the_title(markdown: str, words: str) -> None:
    assert plain_words(markdown, "The Slow Water") == words
