"""Metrics in the Prometheus format: the state of the queue, and the counts of all processes.

Each process counts in memory (`core/instruments.py`) and adds its counts to the database every few seconds. Any web
process can therefore report the sum for all web processes and workers on all machines, and workers need no port. A
process that is killed loses the counts of its last seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from psycopg.types.json import Jsonb

from octavo import __version__
from octavo.ai.ledger import Budgets
from octavo.core.errors import DatabaseUnavailable
from octavo.core.instruments import REGISTRY
from octavo.core.types import JobStatus
from octavo.database import Connection, Database, Row, explain, fetch_rows, load_queries
from octavo.jobs.views import count_jobs

log = structlog.get_logger()
QUERIES = load_queries("metrics")
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ADD_SECONDS, PATIENCE_SECONDS = 10.0, 2.0
# Times are means of at most this many recent jobs.
MOST_JOBS = 1000
# States that may need attention; the others are history.
STATES = (
    *(JobStatus.QUEUED, JobStatus.PROCESSING),
    *(JobStatus.PAUSED, JobStatus.FAILED, JobStatus.DEAD_LETTER),
)
# Counted by the database, because no process sees all of them.
TAKEOVERS = "octavo_job_takeovers"
Labels = tuple[tuple[str, str], ...]
Series = tuple[str, Labels]


# Counting ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Counts:
    """The counts of this process, and the counts that it has already added to the database."""

    registry: CollectorRegistry = REGISTRY
    _added: dict[Series, float] = field(default_factory=dict[Series, float])
    _is_adding: bool = False

    async def add(self, database: Database) -> float:
        """Add new counts to the totals of all processes. Returns the number of seconds until the next call is due."""
        new = {series: value for series, value in _samples(self.registry) if self._added.get(series) != value}
        if new and not self._is_adding:
            self._is_adding = True
            try:
                async with database.connection() as connection:
                    await connection.execute(QUERIES.add_totals, {"changes": Jsonb(self._changes(new))})
                    self._added |= new
            finally:
                self._is_adding = False
        return ADD_SECONDS

    def _changes(self, new: Mapping[Series, float]) -> list[dict[str, Any]]:
        return [
            {"name": name, "labels": dict(labels), "value": value - self._added.get((name, labels), 0.0)}
            for (name, labels), value in new.items()
        ]

    async def keep_adding(self, database: Database) -> None:
        """Add the counts to the database every few seconds until cancelled, and one last time after that."""
        try:
            while True:
                await self.try_to_add(database)
                await asyncio.sleep(ADD_SECONDS)
        finally:
            await self.try_to_add(database)

    async def try_to_add(self, database: Database) -> None:
        """Add the counts. If the database is not available, they are added later."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.add(database)
        except (DatabaseUnavailable, psycopg.Error, TimeoutError) as error:
            log.info("counts not added", reason=explain(error))


COUNTS = Counts()


def _samples(registry: CollectorRegistry) -> Iterator[tuple[Series, float]]:
    for metric in registry.collect():
        for sample in metric.samples:
            if not sample.name.endswith("_created"):
                yield (sample.name, tuple(sorted(sample.labels.items()))), sample.value


# Reporting ---------------------------------------------------------------------------------------------------------


async def read_metrics(connection: Connection, budgets: Budgets) -> list[Metric]:
    return [
        *await _read_queue(connection),
        *await _read_workers(connection),
        *await _read_models(connection, budgets),
        *await _read_times(connection),
        *await _read_totals(connection),
    ]


def render_metrics(metrics: Iterable[Metric]) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(list(metrics)))
    return generate_latest(registry).decode()


class _Collected(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def _gauge(name: str, text: str, values: Iterable[tuple[Mapping[str, str], float | None]]) -> Metric:
    """Create a gauge from pairs of labels and values. Values that are None are left out."""
    known = [(labels, value) for labels, value in values if value is not None]
    gauge = GaugeMetricFamily(f"octavo_{name}", text, labels=list(known[0][0]) if known else ())
    for labels, value in known:
        gauge.add_metric(list(labels.values()), value)
    return gauge


async def _read_queue(connection: Connection) -> list[Metric]:
    jobs = await count_jobs(connection)
    queue = await fetch_rows(connection, QUERIES.line, {})
    (taken_over,) = await fetch_rows(connection, QUERIES.taken_over, {})
    return [
        _gauge("build_info", "Octavo version of this process.", [({"version": __version__}, 1)]),
        _gauge("jobs", "Jobs by state.", [({"status": one}, jobs.get(one, 0)) for one in STATES]),
        _gauge("jobs_queued", "Queued jobs by kind.", [({"kind": row["kind"]}, row["jobs"]) for row in queue]),
        _gauge(
            "jobs_oldest_wait_seconds",
            "Waiting time of the oldest queued job, by kind.",
            [({"kind": row["kind"]}, row["waiting_seconds"]) for row in queue],
        ),
        _gauge(
            "jobs_taken_over",
            "Jobs whose worker died or stopped responding since their last finished stage.",
            [({}, taken_over["jobs"])],
        ),
    ]


async def _read_workers(connection: Connection) -> list[Metric]:
    workers = {row["alive"]: row for row in await fetch_rows(connection, QUERIES.workers, {})}
    alive, lost = workers.get(True, {}), workers.get(False, {})
    return [
        _gauge(
            "workers",
            "Running workers, and workers lost in the last hour.",
            [({"state": "alive"}, alive.get("workers", 0)), ({"state": "lost"}, lost.get("workers", 0))],
        ),
        _gauge("worker_slots", "Total job slots of the running workers.", [({}, alive.get("slots", 0))]),
        _gauge("worker_slots_taken", "Job slots in use.", [({}, alive.get("running", 0))]),
        _gauge(
            "worker_heartbeat_age_seconds",
            "Age of the oldest heartbeat among the running workers.",
            [({}, alive.get("heartbeat_seconds"))],
        ),
    ]


async def _read_models(connection: Connection, budgets: Budgets) -> list[Metric]:
    (spent,) = await fetch_rows(connection, QUERIES.spent, {"limits": budgets.limits})
    (answers,) = await fetch_rows(connection, QUERIES.answers, {})
    (files,) = await fetch_rows(connection, QUERIES.expiring_files, {})
    costs = await fetch_rows(connection, QUERIES.source_costs, {})
    return [
        _gauge("ai_spent_usd", "Cost of model calls this month, in US dollars.", [({}, spent["spent_usd"])]),
        _gauge("ai_budget_usd", "Monthly model budget for all owners, in US dollars.", [({}, spent["budget_usd"])]),
        _gauge(
            "ai_source_cost_usd",
            "Cost of model calls in the last hour, by source type of the document.",
            [({"source": row["source_type"]}, row["cost_usd"]) for row in costs],
        ),
        _gauge(
            "ai_answers",
            "Model answers in the last hour: new answers, and cached answers, which cost nothing.",
            [({"from": name}, answers[column]) for name, column in (("model", "new"), ("cache", "reused"))],
        ),
        _gauge(
            "ai_files_expiring",
            "Files that are stored at model providers and expire within an hour.",
            [({}, files["files"])],
        ),
    ]


async def _read_times(connection: Connection) -> list[Metric]:
    stages = await fetch_rows(connection, QUERIES.stage_times, {"most": MOST_JOBS})
    (item,) = await fetch_rows(connection, QUERIES.item_time, {"most": MOST_JOBS})
    return [
        _gauge(
            "stage_seconds",
            "Mean duration of a stage for documents completed in the last hour, by source type.",
            [({"source": row["source_type"], "stage": row["stage"]}, row["seconds"]) for row in stages],
        ),
        _gauge(
            "analysis_item_seconds",
            "Mean time to answer a prompt for one segment, in the last hour.",
            [({}, item["seconds"])],
        ),
    ]


async def _read_totals(connection: Connection) -> list[Metric]:
    """Read the counts of all processes. Metrics of another version of Octavo are left out."""
    samples: dict[str, list[Row]] = {}
    for row in await fetch_rows(connection, QUERIES.totals, {}):
        samples.setdefault(row["name"], []).append(row)
    takeovers = CounterMetricFamily(TAKEOVERS, "Jobs that were taken from workers that died or stopped responding.")
    return [_with_totals(one, samples) for one in (*REGISTRY.collect(), takeovers)]


SUFFIXES: Mapping[str, tuple[str, ...]] = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",)}


def _with_totals(metric: Metric, samples: Mapping[str, list[Row]]) -> Metric:
    filled = Metric(metric.name, metric.documentation, metric.type)
    for suffix in SUFFIXES[metric.type]:
        for row in sorted(samples.get(f"{metric.name}{suffix}", ()), key=_order):
            filled.add_sample(row["name"], row["labels"], row["value"])
    return filled


def _order(row: Row) -> tuple[Any, ...]:
    """Return the sort key of a row: its labels, then the limit of its bucket."""
    labels = {name: value for name, value in row["labels"].items() if name != "le"}
    return sorted(labels.items()), float(row["labels"].get("le", 0))


def metric_names(metrics: Iterable[Metric]) -> set[str]:
    """Return the names of these metrics in monitoring systems. Some have a suffix, such as `_total`."""
    return {f"{one.name}{suffix}" for one in metrics for suffix in SUFFIXES.get(one.type, ("",))}
