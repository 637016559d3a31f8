"""Which words a misspelled one may have been meant to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.search.query_terms import count_changes, rank_similar, replace_words

words = st.text("abcdef", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("word", "other", "changes"),
    [("notce", "notice", 1), ("peroid", "period", 1), ("notice", "notice", 0), ("ab", "ba", 1), ("cables", "tables", 1),
     ("bridge", "fridges", 2), ("moss", "water", 3)],
)  # fmt: skip
def test_changes_are_counted_as_people_make_them(word: str, other: str, changes: int) -> None:
    assert count_changes(word, other, 2) == changes


@given(words, words)
def test_the_order_does_not_matter_and_the_limit_only_cuts(word: str, other: str) -> None:
    assert count_changes(word, other, 20) == count_changes(other, word, 20)
    assert count_changes(word, other, 2) == min(count_changes(word, other, 20), 3)


def test_fewest_changes_come_first_then_the_same_beginning_then_common_words() -> None:
    listed = {"cables": 1, "tables": 3, "gables": 2, "fables": 3, "cabled": 1}
    assert rank_similar("ables", listed) == ["fables", "tables", "gables", "cables"]
    assert rank_similar("cablse", {"cables": 1, "cabled": 3}) == ["cables"]
    assert rank_similar("zebra", {"cables": 3}) == []


def test_only_the_misspelled_words_of_a_query_are_replaced() -> None:
    assert replace_words('"Notce" peroid -moss', {"notce": "notice", "peroid": "period"}) == '"notice" period -moss'
    assert replace_words("anything", {}) is None
