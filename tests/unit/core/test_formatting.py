"""Numbers, sizes and times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from octavo.core.formatting import count_of, format_bytes, format_day, format_dollars, format_eta, format_span
from octavo.records.jobs import Eta

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1536, "1.5 KB"),
        (8 << 20, "8.0 MB"),
        (200 << 20, "200 MB"),
        (5 << 30, "5.0 GB"),
        (3 << 40, "3.0 TB"),
    ],
)
def test_sizes(size: int, words: str) -> None:
    assert format_bytes(size) == words


@pytest.mark.parametrize(
    ("amount", "words"), [(0, "$0.00"), (0.0012, "$0.0012"), (0.01, "$0.01"), (3.125, "$3.12"), (1e6, "$1,000,000.00")]
)
def test_dollars(amount: float, words: str) -> None:
    assert format_dollars(amount) == words


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(seconds=20), "Just now"),
        (timedelta(minutes=2), "2 min ago"),
        (timedelta(hours=5), "Today"),
        (timedelta(hours=15), "Yesterday"),
        (timedelta(days=3), "12 Nov"),
        (timedelta(days=400), "11 Oct 2025"),
        (-timedelta(minutes=1), "Just now"),
    ],
)
def test_days_are_precise_while_they_are_fresh(ago: timedelta, words: str) -> None:
    assert format_day(NOW - ago, NOW) == words


@pytest.mark.parametrize(
    ("eta", "words"),
    [
        (None, None),
        (Eta(20, 35), "20\u201335 s"),
        (Eta(0, 0.2), "0\u20131 s"),
        (Eta(55, 100), "1\u20132 min"),
        (Eta(60, 91), "1\u20132 min"),
        (Eta(5000, 9000), "1\u20132 h"),
        (Eta(7200, 7300), "about 2 h"),
    ],
)
def test_an_eta_is_a_span_and_absent_when_nothing_is_known(eta: Eta | None, words: str | None) -> None:
    assert format_eta(eta) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(9, "9 s"), (840, "14 min"), (7300, "2 h"), (170_000, "47 h"), (260_000, "3 days")]
)
def test_spans(seconds: int, words: str) -> None:
    assert format_span(timedelta(seconds=seconds)) == words


def test_one_is_not_many() -> None:
    assert (count_of(1, "page"), count_of(1200, "page"), count_of(2, "entry", "entries")) == (
        "1 page",
        "1,200 pages",
        "2 entries",
    )
