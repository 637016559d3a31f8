"""Which words a misspelled one may have been meant to be."""

from __future__ import annotations

import pytest

from octavo.search.query_terms import rank_similar, replace_words


@pytest.mark.parametrize(
    ("word", "other", "is_similar"),
    [("notce", "notice", True), ("peroid", "period", True), ("notice", "notice", False), ("cables", "tables", True),
     ("bridge", "fridges", False), ("bridges", "fridge", True), ("moss", "water", False)],
)  # fmt: skip
def test_long_words_may_have_two_edits_and_others_one(word: str, other: str, is_similar: bool) -> None:
    assert rank_similar(word, {other: 1}) == ([other] if is_similar else [])


def test_fewest_changes_come_first_then_the_same_beginning_then_common_words() -> None:
    listed = {"cables": 1, "tables": 3, "gables": 2, "fables": 3, "cabled": 1}
    assert rank_similar("ables", listed) == ["fables", "tables", "gables", "cables"]
    assert rank_similar("cablse", {"cables": 1, "cabled": 3}) == ["cables"]
    assert rank_similar("zebra", {"cables": 3}) == []


def test_only_the_misspelled_words_of_a_query_are_replaced() -> None:
    assert replace_words('"Notce" peroid -moss', {"notce": "notice", "peroid": "period"}) == '"notice" period -moss'
    assert replace_words("anything", {}) is None
