"""Reports to load balancers and people whether this process is ready. The checks are quick and have no side effects.

Also reports metrics in the Prometheus format. They are read from the database, so any process can serve them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from octavo import __version__
from octavo.core.errors import DatabaseUnavailable, NotPossibleHere, OctavoError
from octavo.core.formatting import format_bytes
from octavo.core.types import JobStatus
from octavo.database import Connection, Database, fetch_rows, load_queries, require_current
from octavo.jobs.views import count_jobs
from octavo.records.jobs import Check
from octavo.storage import Bucket

log = structlog.get_logger()
TIMEOUT_SECONDS = 3
# Connections that are all in use for this long are stuck, not busy.
EXHAUSTED_SECONDS = 5
PROBE_KEY = "probe/readiness"


@dataclass(frozen=True, slots=True)
class Disk:
    """Local folders to which Octavo writes, and the free space that each of them needs."""

    folders: Sequence[Path]
    least_bytes: int


async def check_readiness(database: Database, bucket: Bucket, place: str, disk: Disk) -> list[Check]:
    """Check the database, its connections, the storage and the disks in parallel, each with a timeout."""
    checks = await asyncio.gather(
        _limited("database", _check_database(database)),
        _limited("connections", _check_connections(database)),
        _limited("storage", _check_storage(bucket, place)),
        _limited("disk", _check_disk(disk)),
    )
    for check in checks:
        if not check.ok:
            log.warning("not ready", check=check.name, detail=check.detail)
    return list(checks)


async def _limited(name: str, answer: Awaitable[str]) -> Check:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return Check(name, ok=True, detail=await answer)
    except OctavoError as error:
        return Check(name, ok=False, detail=error.line)
    except TimeoutError:
        return Check(name, ok=False, detail=f"No response within {TIMEOUT_SECONDS} seconds.")


async def _check_database(database: Database) -> str:
    """Check that the database server responds. If the connection pool is exhausted, a separate connection is used."""
    if database.seconds_exhausted() > 0:
        async with await database.connect_unpooled() as connection:
            return await _describe_server(connection)
    async with database.connection(wait_seconds=TIMEOUT_SECONDS) as connection:
        return await _describe_server(connection)


async def _describe_server(connection: Connection) -> str:
    state = await require_current(connection)
    version = connection.info.server_version
    return f"PostgreSQL {version // 10000}.{version % 10000}, schema {state.applied}"


async def _check_connections(database: Database) -> str:
    seconds = database.seconds_exhausted()
    if seconds >= EXHAUSTED_SECONDS:
        raise DatabaseUnavailable(f"All connections of this process have been in use for {seconds:.0f} seconds.")
    return "available" if seconds == 0 else "all in use"


async def _check_disk(disk: Disk) -> str:
    free = await asyncio.to_thread(lambda: [(free_bytes(folder), folder) for folder in disk.folders])
    for space, folder in free:
        if space < disk.least_bytes:
            raise NotPossibleHere(f"Only {format_bytes(space)} free in {folder}. Free some space.")
    return f"{format_bytes(min(free)[0])} free" if free else "no local disk is used"


def free_bytes(folder: Path) -> int:
    """Return the free space for the current user on the disk that contains a folder.

    Returns 0 if the disk has no free inodes.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    disk = os.statvfs(folder)
    return 0 if disk.f_files and not disk.f_favail else disk.f_bavail * disk.f_frsize


async def _check_storage(bucket: Bucket, place: str) -> str:
    await bucket.stat(PROBE_KEY)
    return place


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
