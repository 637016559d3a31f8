"""Every page is owned once whatever a document is like, limits are kept, and what is cut loses nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.ai.models import CallLimits
from octavo.analyse.segments import (
    Segment,
    SegmentLimits,
    check_coverage,
    limits_for_chunks,
    limits_for_pages,
    plan_segments,
    subdivide,
)

PLENTY = CallLimits(pages=1000, bytes=50 << 20, tokens=1_000_000)
shapes = st.builds(SegmentLimits, *(st.integers(1, 30),) * 3, st.integers(1, 5000))


@given(st.lists(st.integers(0, 2000), max_size=300), shapes)
def test_every_page_is_owned_once_and_no_limit_is_passed(tokens: list[int], shape: SegmentLimits) -> None:
    segments = plan_segments(tokens, shape)
    assert check_coverage([(one.first, one.last) for one in segments], len(tokens)).is_complete
    for one in segments:
        assert one.own <= shape.own
        assert 0 <= one.first - one.context_first <= shape.context
        if one.shown > 1:  # a single page that is too long has no smaller form
            assert one.shown <= shape.shown
            assert sum(tokens[one.context_first - 1 : one.last]) <= shape.tokens


@given(st.integers(1, 500), st.integers(0, 100), st.integers(0, 100))
def test_parts_stand_for_the_whole_and_get_smaller_until_nothing_is_left_to_cut(
    first: int, more: int, context: int
) -> None:
    segment = Segment(first, first + more, max(1, first - context))
    parts = subdivide(segment)
    if parts:
        offset = segment.first - 1
        assert check_coverage([(one.first - offset, one.last - offset) for one in parts], segment.own).is_complete
        assert all(one.context_first >= segment.context_first for one in parts)
        assert all(one.shown < segment.shown for one in parts)
    else:
        assert segment.shown == 1


@pytest.mark.parametrize(
    ("pages", "size", "own"),
    [
        (1000, 100 << 20, 100),  # 100 KB a page, as in the first example of the rule
        (1000, 300 << 20, 50),
        (100, 500 << 20, 10),  # pages of 5 MB: ten is the least, and 50 MB still take them
        (3, 1000, 100),
    ],
)
def test_the_size_of_pages_decides_how_many_a_segment_owns(pages: int, size: int, own: int) -> None:
    assert limits_for_pages(pages, size, PLENTY).own == own


def test_a_thousand_pages_have_their_context_before_them() -> None:
    segments = plan_segments([500] * 1000, limits_for_pages(1000, 100 << 20, PLENTY))
    assert len(segments) == 10
    assert segments[0] == Segment(1, 100, 1)
    assert segments[1] == Segment(101, 200, 26)
    assert plan_segments([500] * 40, limits_for_pages(40, 1 << 20, PLENTY)) == [Segment(1, 40, 1)]


def test_a_file_is_never_larger_than_a_provider_takes() -> None:
    shape = limits_for_pages(1000, 100 << 20, CallLimits(pages=100, bytes=5 << 20, tokens=200_000))
    assert all(one.shown <= 50 for one in plan_segments([2500] * 1000, shape))


def test_passages_are_counted_by_their_text() -> None:
    tokens = [300] * 1000
    shape = limits_for_chunks(tokens, PLENTY)
    assert (shape.own, shape.context) == (200, 150)
    assert len(plan_segments(tokens, shape)) == 5


def test_the_first_cut_leaves_about_eighty_pages_and_the_next_halves() -> None:
    assert [one.own for one in subdivide(Segment(1, 100, 1))] == [50, 50]
    assert [one.own for one in subdivide(Segment(1, 240, 1))] == [80, 80, 80]
    assert subdivide(Segment(1, 60, 1)) == [Segment(1, 30, 1), Segment(31, 60, 21)]
    assert subdivide(Segment(9, 9, 5)) == [Segment(9, 9, 9)]
    assert subdivide(Segment(9, 9, 9)) == []


def test_the_coverage_check_lists_missing_and_repeated_pages() -> None:
    proof = check_coverage([(1, 10), (8, 12), (15, 20)], 22)
    assert (proof.missing, proof.doubled) == (((13, 14), (21, 22)), ((8, 10),))
    assert proof.explain("pages") == "pages 13 to 14, 21 to 22 are missing; pages 8 to 10 are covered twice"
    assert not check_coverage([(1, 3)], 2).is_complete
