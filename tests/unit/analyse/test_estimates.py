"""What people are told of an analysis follows from what was counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from octavo.analyse.progress import Counts, eta_of, health_of, percent_of
from octavo.records.jobs import Eta

HALF = Counts(
    status="analyzing",
    phase="processing",
    at_once=5,
    segments=10,
    segments_ready=10,
    items=50,
    items_done=25,
    items_failed=0,
    running=5,
    waiting=20,
    paused=0,
    results=5,
    results_completed=2,
    samples=25,
    mean_seconds=4.0,
    low_seconds=3.0,
    high_seconds=5.0,
    idle_seconds=2.0,
    live_workers=2,
)


def test_percentages_count_finished_work() -> None:
    percent = percent_of(HALF)
    assert (percent.upload, percent.processing, percent.overall) == (100, 50, 56)
    almost = replace(HALF, items_done=50, results_completed=5)
    assert percent_of(almost).overall == 99
    assert percent_of(replace(almost, status="completed", phase="completed")).overall == 100
    assert (
        percent_of(replace(HALF, segments=0, segments_ready=0, items=0, items_done=0, results_completed=0)).overall == 0
    )


def test_the_time_left_depends_on_the_number_of_parallel_items() -> None:
    assert eta_of(HALF) == Eta(18.0, 30.0)  # 25 items and 3 answers, five at once
    assert eta_of(replace(HALF, samples=2)) is None
    assert eta_of(replace(HALF, status="error")) is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, "5 running."),
        ({"running": 0}, "Waiting in the queue."),
        ({"live_workers": 0}, "No worker is running."),
        ({"paused": 3}, "3 paused: the budget is used up."),
        ({"items_failed": 1}, "1 of 50 failed."),
        ({"running": 0, "idle_seconds": 960.0}, "No progress for 16 minutes."),
        ({"status": "error", "phase": "abandoned"}, "No progress for two days. Restart the analysis."),
        ({"status": "error", "error_message": "Some pages could not be asked."}, "Some pages could not be asked."),
        ({"status": "completed", "phase": "completed"}, "All prompts have been answered."),
    ],
)
def test_the_most_serious_problem_comes_first(changed: dict[str, object], message: str) -> None:
    assert health_of(replace(HALF, **changed)).message == message  # pyright: ignore[reportArgumentType]
