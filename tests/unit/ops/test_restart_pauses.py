"""What dies quickly is started again ever more slowly, what ran long is forgiven, and a kill is told from a crash."""

from __future__ import annotations

import signal

import pytest

from octavo.ops import processes
from octavo.ops.processes import Backoff, count_oom_kills, was_killed


def test_the_pause_doubles_up_to_a_limit() -> None:
    backoff = Backoff(first_seconds=0.1, most_seconds=1.0)
    assert [round(backoff.after_run(0), 1) for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_a_run_that_lasted_is_forgiven() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.after_run(1)
    assert backoff.after_run(backoff.reset_after_seconds) == backoff.first_seconds


@pytest.mark.parametrize(
    ("code", "killed"),
    [
        (-signal.SIGKILL, True),
        (-signal.SIGTERM, True),
        (-signal.SIGSEGV, False),
        (-signal.SIGABRT, False),
        (1, False),
    ],
)
def test_a_kill_is_distinguished_from_a_crash(code: int, killed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "count_oom_kills", lambda: 7)
    assert was_killed(code, 7) is killed


@pytest.mark.parametrize(("before", "now"), [(7, 8), (None, 7), (7, None)])
def test_a_kill_that_may_be_for_lack_of_memory_is_not_from_outside(
    before: int | None, now: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "count_oom_kills", lambda: now)
    assert not was_killed(-signal.SIGKILL, before)


def test_the_kernel_counts_kills_for_lack_of_memory() -> None:
    counted = count_oom_kills()
    assert counted is None or counted >= 0
