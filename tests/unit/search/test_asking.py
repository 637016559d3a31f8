"""What is typed into the search box: taken apart, or refused with a reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.search.asking import MOST_CHARACTERS, MOST_WORDS, Asked, read_query
from octavo.search.errors import NothingAsked, QueryTooLong


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("bog moss", Asked(("bog", "moss"))),
        ('"raised bog" moss', Asked(("raised", "bog", "moss"), ("raised bog",))),
        ("„raised bog“", Asked(("raised", "bog"), ("raised bog",))),
        ("bog -moss", Asked(("bog",), (), ("moss",))),
        ('bog -"peat moss"', Asked(("bog",), (), ("peat moss",))),
        # A minus inside of a word, or before nothing, is only a sign.
        ("well-known 5 - 3", Asked(("well-known", "5", "3"))),
        # Never closed: to the end.
        ('bog "raised', Asked(("bog", "raised"), ("raised",))),
        ("a & b | !c", Asked(("a", "b", "!c"))),
        ("bog\0moss", Asked(("bog", "moss"))),
        ("水質檢查", Asked(("水質檢查",))),
    ],
)
def test_words_phrases_and_what_is_not_wanted(typed: str, asked: Asked) -> None:
    assert read_query(typed) == asked


@pytest.mark.parametrize("typed", ["", "   ", '""', "-moss", "!!! ??", "\ud800", "-", "\0"])
def test_nothing_to_look_for_is_refused(typed: str) -> None:
    with pytest.raises(NothingAsked):
        read_query(typed)


def test_too_much_is_refused() -> None:
    with pytest.raises(QueryTooLong, match="1001"):
        read_query("x" * (MOST_CHARACTERS + 1))


@given(st.text(max_size=MOST_CHARACTERS))
def test_whatever_is_typed_can_be_given_to_a_database(typed: str) -> None:
    try:
        asked = read_query(typed)
    except NothingAsked:
        return
    assert 0 < len(asked.words) <= MOST_WORDS
    for said in (*asked.words, *asked.phrases, *asked.excluded):
        assert said.strip()
        assert "\0" not in said
        said.encode()
