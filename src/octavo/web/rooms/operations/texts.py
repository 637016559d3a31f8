"""Texts about health and jobs for the operations pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from octavo.core.formatting import count_of, format_span
from octavo.core.types import JobStatus
from octavo.jobs.views import WorkerView
from octavo.ops.health import Check
from octavo.web.shell.document_status import Tone

SLOW_AFTER = timedelta(minutes=10)
# The filters in order, with label and tone.
STATES: dict[str, tuple[str, Tone]] = {
    "queued": ("Queued", ""),
    "working": ("Working", ""),
    "backing_off": ("Waiting to retry", ""),
    "paused": ("Paused", "warn"),
    "failed": ("Failed", "bad"),
    "dead_letter": ("Failed for good", "bad"),
}
# Hidden in the list without a filter.
OTHER_STATES = {"complete": "Done", "cancelled": "Cancelled"}
CHIPS: dict[JobStatus, tuple[Tone, str, str]] = {
    JobStatus.QUEUED: ("", "clock", "Queued"),
    JobStatus.PROCESSING: ("run", "again", "Working"),
    JobStatus.COMPLETE: ("ok", "check", "Done"),
    JobStatus.FAILED: ("bad", "error", "Failed"),
    JobStatus.DEAD_LETTER: ("bad", "error", "Failed for good"),
    JobStatus.PAUSED: ("warn", "pause", "Paused"),
    JobStatus.CANCELLED: ("", "close", "Cancelled"),
}


@dataclass(frozen=True, slots=True)
class Health:
    """The health of the installation in words.

    `tone`, `glyph` and `chip` are the colour, icon and text of the status label. `wrong` has one message per problem.
    """

    tone: Tone
    glyph: str
    chip: str
    wrong: tuple[str, ...]


def describe_health(checks: Sequence[Check], workers: Sequence[WorkerView], waits: timedelta | None) -> Health:
    """Describe the most severe problems: failed checks and missing workers or, if there are none, a slow queue."""
    down = tuple(f"The {check.name} check failed: {check.detail}" for check in checks if not check.ok)
    if not any(worker.alive for worker in workers):
        down += ("No worker is running, so no jobs are processed. Start one with `octavo worker`.",)
    if down:
        return Health("bad", "error", "Not healthy", down)
    if waits and waits > SLOW_AFTER:
        return Health("warn", "warning", "Slow", (f"A job has been waiting for {format_span(waits)}.",))
    return Health("ok", "check", "Healthy", ())


def describe_load(workers: Sequence[WorkerView], waits: timedelta | None, dead_letters: int) -> list[str]:
    alive = count_of(sum(worker.alive for worker in workers), "worker")
    waiting = f"oldest waiting {format_span(waits)}" if waits else "no jobs waiting"
    return [alive, waiting, *([count_of(dead_letters, "failed job")] if dead_letters else [])]


def waiting_time(oldest: datetime | None, now: datetime) -> timedelta | None:
    return max(now - oldest, timedelta()) if oldest else None
