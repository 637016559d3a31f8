"""Metrics in the Prometheus format. They are read from the database, so any process can serve them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from octavo import __version__
from octavo.core.types import JobStatus
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.views import count_jobs

QUERIES = load_queries("metrics")
# Times are means of at most this many recent jobs.
MOST_JOBS = 1000
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# States that may need attention; the others are history.
STATES = (
    *(JobStatus.QUEUED, JobStatus.PROCESSING),
    *(JobStatus.PAUSED, JobStatus.FAILED, JobStatus.DEAD_LETTER),
)


@dataclass(frozen=True, slots=True)
class Metric:
    """A Prometheus gauge with its values. Each value has a different set of labels."""

    name: str
    help: str
    values: list[tuple[dict[str, str], float]] = field(default_factory=list[tuple[dict[str, str], float]])


async def read_metrics(connection: Connection) -> list[Metric]:
    jobs = await count_jobs(connection)
    queue = await fetch_rows(connection, QUERIES.line, {})
    workers = {row["alive"]: row for row in await fetch_rows(connection, QUERIES.workers, {})}
    (spent,) = await fetch_rows(connection, QUERIES.spent, {})
    (answers,) = await fetch_rows(connection, QUERIES.answers, {})
    (files,) = await fetch_rows(connection, QUERIES.expiring_files, {})
    stages = await fetch_rows(connection, QUERIES.stage_times, {"most": MOST_JOBS})
    (taken_over,) = await fetch_rows(connection, QUERIES.taken_over, {})
    (item,) = await fetch_rows(connection, QUERIES.item_time, {"most": MOST_JOBS})
    alive, lost = workers.get(True, {}), workers.get(False, {})
    return [
        Metric("build_info", "Octavo version of this process.", [({"version": __version__}, 1)]),
        Metric("jobs", "Jobs by state.", [({"status": one}, jobs.get(one, 0)) for one in STATES]),
        Metric("jobs_queued", "Queued jobs by kind.", [({"kind": row["kind"]}, row["jobs"]) for row in queue]),
        Metric(
            "jobs_oldest_wait_seconds",
            "Waiting time of the oldest queued job, by kind.",
            [({"kind": row["kind"]}, row["waiting_seconds"]) for row in queue],
        ),
        Metric(
            "workers",
            "Running workers, and workers lost in the last hour.",
            [({"state": "alive"}, alive.get("workers", 0)), ({"state": "lost"}, lost.get("workers", 0))],
        ),
        Metric("worker_slots", "Job slots of the running workers.", [({}, alive.get("slots", 0))]),
        Metric("worker_slots_taken", "Job slots in use.", [({}, alive.get("running", 0))]),
        Metric(
            "worker_heartbeat_age_seconds",
            "Age of the oldest heartbeat among the running workers.",
            [({}, alive["heartbeat_seconds"])] if alive else [],
        ),
        Metric(
            "jobs_taken_over",
            "Jobs whose worker died or stopped responding since their last finished stage.",
            [({}, taken_over["jobs"])],
        ),
        Metric("ai_spent_usd", "Cost of model calls this month, in US dollars.", [({}, spent["spent_usd"])]),
        Metric(
            "ai_answers",
            "Model answers in the last hour: new answers, and cached answers, which cost nothing.",
            [({"from": name}, answers[column]) for name, column in (("model", "new"), ("cache", "reused"))],
        ),
        Metric(
            "ai_files_expiring", "Files stored at model providers that expire within an hour.", [({}, files["files"])]
        ),
        Metric(
            "stage_seconds",
            "Mean duration of a stage for documents completed in the last hour, by source type.",
            [({"source": row["source_type"], "stage": row["stage"]}, row["seconds"]) for row in stages],
        ),
        Metric(
            "analysis_item_seconds",
            "Mean time to answer a prompt for one segment, in the last hour.",
            [({}, item["seconds"])] if item["seconds"] is not None else [],
        ),
    ]


def render_metrics(metrics: Iterable[Metric]) -> str:
    lines: list[str] = []
    for one in metrics:
        lines += [f"# HELP octavo_{one.name} {one.help}", f"# TYPE octavo_{one.name} gauge"]
        lines += [f"octavo_{one.name}{_labels(labels)} {value:g}" for labels, value in one.values]
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    """Format the labels of a metric. Their values are names that Octavo defines, so nothing needs escaping."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""
