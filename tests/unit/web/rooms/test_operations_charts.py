"""The queue's depth is followed from what came and went, and its numbers are round."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from octavo.web.rooms.operations.pages import Point, draw_depth, follow_depth, round_up

NOW = datetime(2026, 3, 4, 12, 10, tzinfo=UTC)


def test_the_highest_of_each_half_hour_is_kept() -> None:
    changes = [
        (NOW - timedelta(hours=30), 2),  # before the chart begins
        (NOW - timedelta(hours=1), 5),
        (NOW - timedelta(minutes=55), -6),  # 11:15, the same half hour
        (NOW - timedelta(minutes=5), 1),
    ]
    points = follow_depth(changes, NOW, 24)
    assert len(points) == 49
    assert points[0] == Point(datetime(2026, 3, 3, 12, 0, tzinfo=UTC), 2)
    assert [point.number for point in points[-4:]] == [2, 7, 1, 2]
    assert points[-1].at == datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def test_a_chart_fills_its_box() -> None:
    chart = draw_depth([Point(NOW + timedelta(minutes=30 * place), number) for place, number in enumerate([0, 40, 20])])
    assert chart.line == "0,100 1,0 2,50"
    assert chart.area == "0,100 0,100 1,0 2,50 2,100"
    assert chart.numbers == (40, 20, 0)
    assert (chart.times[0], chart.times[-1]) == (chart.points[0].at, chart.points[-1].at)
    assert chart.highest.number == 40


def test_nothing_is_a_flat_line() -> None:
    chart = draw_depth(follow_depth([], NOW, 24))
    assert set(chart.line.split()) == {f"{place},100" for place in range(49)}
    assert chart.highest.number == 0


@pytest.mark.parametrize(
    ("number", "round_one"),
    [(0, 2), (1, 2), (3, 4), (10, 10), (11, 20), (61, 80), (101, 200), (999, 1000), (1001, 2000)],
)
def test_the_scale_ends_at_a_round_number_whose_half_is_round(number: int, round_one: int) -> None:
    assert round_up(number) == round_one
