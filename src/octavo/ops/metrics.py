"""What a monitoring system asks for, in the form of Prometheus. Counted in the database, so any process can tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from octavo import __version__
from octavo.core.types import JobStatus
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.views import count_jobs

QUERIES = load_queries("metrics")
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Those that somebody may have to do something about; the rest is history, and long.
STATES = (
    *(JobStatus.QUEUED, JobStatus.PROCESSING),
    *(JobStatus.PAUSED, JobStatus.FAILED, JobStatus.DEAD_LETTER),
)


@dataclass(frozen=True, slots=True)
class Metric:
    """One gauge; each value has the labels that tell it from the others."""

    name: str
    help: str
    values: list[tuple[dict[str, str], float]] = field(default_factory=list[tuple[dict[str, str], float]])


async def read_metrics(connection: Connection) -> list[Metric]:
    jobs = await count_jobs(connection)
    line = await fetch_rows(connection, QUERIES.line, {})
    workers = {row["alive"]: row for row in await fetch_rows(connection, QUERIES.workers, {})}
    (spent,) = await fetch_rows(connection, QUERIES.spent, {})
    alive, lost = workers.get(True, {}), workers.get(False, {})
    return [
        Metric("build_info", "The version that answers.", [({"version": __version__}, 1)]),
        Metric("jobs", "Jobs by state.", [({"status": one}, jobs.get(one, 0)) for one in STATES]),
        Metric("jobs_queued", "Jobs in line by kind.", [({"kind": row["kind"]}, row["jobs"]) for row in line]),
        Metric(
            "jobs_oldest_wait_seconds",
            "For how long the first job in line has been waiting, by kind.",
            [({"kind": row["kind"]}, row["waiting_seconds"]) for row in line],
        ),
        Metric(
            "workers",
            "Workers that run, and those that ended without a word in the last hour.",
            [({"state": "alive"}, alive.get("workers", 0)), ({"state": "lost"}, lost.get("workers", 0))],
        ),
        Metric("worker_slots", "Jobs that the running workers can do at once.", [({}, alive.get("slots", 0))]),
        Metric("worker_slots_taken", "Jobs that they are doing.", [({}, alive.get("running", 0))]),
        Metric(
            "worker_heartbeat_age_seconds",
            "Since when the running worker that was silent for longest has given no sign of life.",
            [({}, alive["heartbeat_seconds"])] if alive else [],
        ),
        Metric("ai_spent_usd", "What models cost in this month.", [({}, spent["spent_usd"])]),
    ]


def render_metrics(metrics: Iterable[Metric]) -> str:
    lines: list[str] = []
    for one in metrics:
        lines += [f"# HELP octavo_{one.name} {one.help}", f"# TYPE octavo_{one.name} gauge"]
        lines += [f"octavo_{one.name}{_labels(labels)} {value:g}" for labels, value in one.values]
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    """Names of states and kinds are ours, so nothing in them has to be written differently."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""
