"""`octavo top` shows the numbers of the installation in a table that fits the terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from rich.console import Console

from octavo.cli.top import draw
from octavo.records.jobs import Activity, KindActivity, SourceCost, Spending, StageTime, WorkerView

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
WORKER = WorkerView(
    UUID(int=1), "moor", 71, ["demo"], 10, 2, True, NOW, NOW - timedelta(seconds=4), NOW + timedelta(minutes=1)
)
BUSY = Activity(
    at=NOW,
    kinds=[KindActivity("process_document", 1200, 3, 2, 0, 1, 14, 220, 75.0)],
    workers=[WORKER],
    stages=[
        StageTime("process_document", "extracted", 20, 0.8412, 2.1),
        StageTime("process_document", "rules_run", 20, 0.0001, 0.0002),
    ],
    spending=Spending(1.25, 20.0, 12, 3, [SourceCost("pdf", 12, 0.5)]),
)
IDLE = Activity(NOW, [], [], [], Spending(0.0, 20.0, 0, 0, []))


def lines(activity: Activity, width: int = 120) -> list[list[str]]:
    console = Console(width=width, force_terminal=False)
    with console.capture() as drawn:
        console.print(draw(console, activity))
    return [line.split() for line in drawn.get().splitlines() if line.strip()]


def test_a_busy_installation_is_shown_with_all_its_numbers() -> None:
    shown = lines(BUSY)
    assert "2 of 10 slots in use" in " ".join(shown[0])
    assert "14 jobs in the last minute, 220 in the last hour" in " ".join(shown[0])
    assert "$1.25 of $20.00 this month, 12 new and 3 reused answers" in " ".join(shown[1])
    assert ["process_document", "1,200", "3", "2", "·", "1", "1", "min", "14", "220"] in shown
    assert ["moor", "71", "2", "of", "10", "4", "s", "ago", "alive"] in shown
    assert ["process_document:", "extracted", "20", "0.841", "s", "2.100", "s"] in shown
    assert ["pdf", "12", "$0.50"] in shown
    assert not any("rules_run" in line for line in shown)


def test_an_idle_installation_says_so() -> None:
    shown = [" ".join(line) for line in lines(IDLE)]
    assert "No unfinished or recent jobs." in shown
    assert "No worker is running. Start one with `octavo worker`." in shown


def test_no_line_is_longer_than_the_terminal() -> None:
    console = Console(width=90, force_terminal=False)
    with console.capture() as drawn:
        console.print(draw(console, BUSY))
    assert max(map(len, drawn.get().splitlines())) <= 90
