"""Computes the coordinates and labels of SVG charts. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

STEP = timedelta(minutes=30)
MINUTE = timedelta(minutes=1)
HEIGHT = 100
TIMES = 5


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the chart: the maximum queue length in the half hour that starts at `at`."""

    at: datetime
    number: int


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as an SVG that is stretched to its frame. `line` and `area` are points of the SVG.

    The labels are outside the SVG, because they must not be stretched.
    """

    line: str
    area: str
    width: int
    numbers: tuple[int, int, int]
    times: list[datetime]
    points: list[Point]
    highest: Point
    height: int = HEIGHT


def follow_depth(changes: Iterable[tuple[datetime, int]], now: datetime, hours: int) -> list[Point]:
    """The maximum queue length in each half hour, computed from the changes in each minute."""
    by_minute = dict[datetime, int](changes)
    at = now.replace(minute=now.minute // 30 * 30, second=0, microsecond=0) - timedelta(hours=hours)
    depth = sum(change for minute, change in by_minute.items() if minute < at)
    points: list[Point] = []
    while at <= now:
        highest, begin = depth, at
        while at < begin + STEP:
            depth += by_minute.get(at, 0)
            highest = max(highest, depth)
            at += MINUTE
        points.append(Point(begin, highest))
    return points


def draw_depth(points: Sequence[Point]) -> Chart:
    top = round_up(max(point.number for point in points))
    line = " ".join(f"{index},{HEIGHT - HEIGHT * one.number / top:.4g}" for index, one in enumerate(points))
    last = len(points) - 1
    return Chart(
        line=line,
        area=f"0,{HEIGHT} {line} {last},{HEIGHT}",
        width=last,
        numbers=(top, top // 2, 0),
        times=[points[last * part // (TIMES - 1)].at for part in range(TIMES)],
        points=list(points),
        highest=max(points, key=lambda point: point.number),
    )


def round_up(number: int) -> int:
    """The next round number, for the top of the scale. Half of it is a whole number, for the middle of the scale."""
    step = 2
    while step * 5 < number:
        step *= 10
    return next(step * times for times in range(1, 6) if step * times >= number)
