"""Calculates the progress, time left and health of an analysis from its counts. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from octavo.core.formatting import count_of, format_number
from octavo.core.texts import Texts, mark
from octavo.core.texts import gettext as _
from octavo.records.analyses import AnalysesHealth, Analysis, Percent
from octavo.records.jobs import Eta

# After this time without progress the analysis counts as stuck, even if jobs are still being retried.
STUCK_SECONDS = 5 * 60
LEAST_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers from which the progress of an analysis is calculated, read at one point in time.

    Segments that were split into shorter ones are not included.
    """

    status: str
    phase: str
    at_once: int
    segments: int
    segments_ready: int
    items: int
    items_done: int
    items_failed: int
    running: int
    waiting: int
    paused: int
    results: int
    results_completed: int
    samples: int
    mean_seconds: float | None
    low_seconds: float | None
    high_seconds: float | None
    idle_seconds: float
    live_workers: int
    error_message: str | None = None


def percent_of(counts: Counts) -> Percent:
    """Return three percentages: prepared segments (ranges of pages) as `upload`, finished items as `processing`, and
    all work as `overall`. An item is one prompt on one segment. `overall` reaches 100 only when the analysis is
    completed.
    """
    everything = counts.segments + counts.items + counts.results
    finished = counts.segments_ready + counts.items_done + counts.results_completed
    overall = 100 if counts.status == "completed" else min(99, _share(finished, everything))
    return Percent(_share(counts.segments_ready, counts.segments), _share(counts.items_done, counts.items), overall)


def eta_of(counts: Counts) -> Eta | None:
    """Estimate the remaining time as a range, from the quartiles of past durations.

    Returns None if it cannot be estimated.
    """
    left = counts.items - counts.items_done - counts.items_failed + counts.results - counts.results_completed
    if counts.status != "analyzing" or counts.samples < LEAST_SAMPLES or left <= 0:
        return None
    if counts.low_seconds is None or counts.high_seconds is None:
        return None
    rounds = ceil(left / max(1, min(counts.at_once, counts.running or counts.at_once)))
    return Eta(round(rounds * counts.low_seconds, 1), round(rounds * counts.high_seconds, 1))


def health_of(counts: Counts) -> AnalysesHealth:
    """Return a message about the most serious problem of an analysis or, if it has no problem, about its progress."""
    if counts.status == "completed":
        gaps = counts.error_message is not None
        return AnalysesHealth(ok=not gaps, message=counts.error_message or _("All prompts have been answered."))
    if counts.status == "stopped":
        return AnalysesHealth(
            ok=True, message=_("Stopped by you. Resume the analysis to answer the remaining prompts.")
        )
    problem = next((message for applies, message in _problems(counts) if applies), None)
    state = _("%(number)s running.", number=counts.running) if counts.running else _("Waiting in the queue.")
    return AnalysesHealth(ok=problem is None, message=problem or state)


OFFLINE = mark("Offline: passages only")
PHASES = Texts(
    {
        "initializing": "Waiting to start",
        "uploading": "Preparing pages",
        "processing": "Answering",
        "consolidating": "Combining answers",
        "completed": "Complete",
        "abandoned": "Stalled",
    }
)


def describe_progress(analysis: Analysis) -> str:
    """Describe a running analysis in one line: its phase, answers so far, retries and errors."""
    asking = analysis.status == "analyzing" and analysis.phase == "processing"
    counted = (
        _("%(done)s of %(total)s", done=format_number(analysis.items.done), total=format_number(analysis.items.total))
        if asking
        else ""
    )
    retries = count_of(analysis.retries, "retry", "retries") if analysis.retries else ""
    failed = _("%(failed)s failed", failed=format_number(analysis.items.failed)) if analysis.items.failed else ""
    paused = _("%(number)s paused", number=format_number(analysis.paused)) if analysis.paused else ""
    phase = _("Stopped") if analysis.status == "stopped" else PHASES[analysis.phase]
    if analysis.offline and analysis.status == "completed":
        phase = _(OFFLINE)
    first = " ".join(filter(None, (phase, counted)))
    return " · ".join(filter(None, (first, retries, failed, paused)))


def _problems(counts: Counts) -> list[tuple[bool, str]]:
    return [
        (counts.phase == "abandoned", _("No progress for two days. Restart the analysis.")),
        (counts.status == "error", counts.error_message or _("The analysis failed.")),
        (not counts.live_workers, _("No worker is running.")),
        (counts.paused > 0, _("%(number)s paused: the budget is used up.", number=counts.paused)),
        (counts.items_failed > 0, _("%(failed)s of %(total)s failed.", failed=counts.items_failed, total=counts.items)),
        (
            counts.idle_seconds > STUCK_SECONDS and not counts.running,
            _("No progress for %(minutes)s minutes.", minutes=int(counts.idle_seconds // 60)),
        ),
    ]


def _share(done: int, total: int) -> int:
    return done * 100 // total if total else 0
