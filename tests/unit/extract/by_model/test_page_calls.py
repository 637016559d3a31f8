"""Calls of a model cover every page, share some with the next, and their answers fit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.extract.by_model import CallLimits, PageRange, estimate_tokens, plan_calls

limits_of = st.builds(
    CallLimits,
    single_pages=st.integers(0, 50),
    batch_pages=st.integers(1, 30),
    overlap_pages=st.integers(0, 12),
    output_tokens=st.integers(1, 5000),
)


def test_up_to_200_pages_are_one_call() -> None:
    assert plan_calls([200] * 200) == [PageRange(1, 200)]


def test_more_are_calls_of_100_that_share_10() -> None:
    assert plan_calls([400] * 300) == [PageRange(1, 100), PageRange(91, 190), PageRange(181, 280), PageRange(271, 300)]


def test_what_does_not_fit_into_one_answer_is_never_one_call() -> None:
    assert plan_calls([700] * 150) == [PageRange(1, 74), PageRange(65, 138), PageRange(129, 150)]


def test_a_page_that_is_too_long_is_alone() -> None:
    assert plan_calls([60_000] * 3) == [PageRange(1, 1), PageRange(2, 2), PageRange(3, 3)]


def test_nothing_needs_no_call() -> None:
    assert plan_calls([]) == []


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=120), limits_of)
def test_every_page_is_read_and_every_answer_fits(tokens: list[int], limits: CallLimits) -> None:
    calls = plan_calls(tokens, limits)
    assert (calls[0].first, calls[-1].last) == (1, len(tokens))
    for before, after in pairwise(calls):
        assert before.first < after.first <= before.last + 1
        assert before.last < after.last
        assert before.last - after.first + 1 <= limits.overlap_pages
    for call in calls:
        pages = call.last - call.first + 1
        assert pages <= limits.batch_pages or calls == [call]
        assert pages == 1 or sum(tokens[call.first - 1 : call.last]) <= limits.tokens


@given(st.integers(201, 3000))
def test_a_long_book_shares_ten_pages_at_every_border(pages: int) -> None:
    assert {before.last - after.first + 1 for before, after in pairwise(plan_calls([400] * pages))} == {10}


@pytest.mark.parametrize(("text", "least"), [("", 1), ("word " * 400, 500), ("吾輩は猫である。" * 100, 800)])
def test_tokens_are_rather_too_many(text: str, least: int) -> None:
    assert least <= estimate_tokens(text) <= least + 50
