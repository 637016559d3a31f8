"""A monitoring system can read how long the work of the last hour took, and what was reused."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.parser import text_string_to_metric_families

from octavo.ai.ledger import Budgets
from octavo.core.settings import Settings
from octavo.jobs.queue import release_workers
from octavo.ops.metrics import COUNTS, Counts, read_metrics, render_metrics
from octavo.sandbox import Sandbox
from tests.support.library import Desk
from tests.support.working import add, finished, working

CALL = """
    INSERT INTO ai_calls (id, request_hash, owner_id, purpose, provider, model, state, estimate_usd, response,
                          created_at, expires_at, ended_at)
    VALUES (gen_random_uuid(), sha256('a'), %s, 'classify', 'gemini', 'm', 'settled', 0, '{}', engine_now(),
            engine_now(), engine_now() - make_interval(mins => %s)) RETURNING id"""
REUSE = """
    INSERT INTO ai_reuses (call_id, owner_id, saved_usd, at)
    SELECT id, owner_id, 1, engine_now() FROM ai_calls RETURNING 1"""
# A job that took three seconds, as if it had answered a prompt about a segment.
AS_ANSWER = """
    UPDATE jobs SET kind = 'answer_segment', started_at = completed_at - interval '3 seconds'
    WHERE document_id = %s AND kind = 'process_document' RETURNING 1"""
FILE = """
    INSERT INTO provider_files (provider, account, owner_id, sha256, name, uri, expires_at)
    SELECT 'gemini', 'a', %s, sha256(minutes::text::bytea), 'f', 'u', engine_now() + make_interval(mins => minutes)
    FROM unnest(ARRAY[-5, 30, 90]) AS minutes RETURNING 1"""


CLAIMED = """
    UPDATE jobs SET status = 'processing', leased_by = gen_random_uuid(), started_at = engine_now(), attempt = 1,
                    lease_expires_at = engine_now() + interval '1 minute', deadline_at = engine_now() + interval '1 day'
    WHERE document_id = %s AND kind = 'process_document' RETURNING leased_by"""


async def total(desk: Desk, name: str, **labels: str) -> float:
    """What all processes together report for one series."""
    families = text_string_to_metric_families("\n".join(await measure(desk)) + "\n")
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def measure(desk: Desk) -> list[str]:
    async with desk.database.connection() as connection:
        return render_metrics(await read_metrics(connection, Budgets.of(Settings()))).splitlines()


async def test_the_metrics_have_times_by_stage_and_source(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    document = await add(desk, owner, "a.md", b"# Bogs\n\nMoss holds water.")
    await COUNTS.add(desk.database)
    extracted = {"kind": "process_document", "stage": "extracted"}
    complete = {"kind": "process_document", "outcome": "complete"}
    stages = await total(desk, "octavo_stage_duration_seconds_count", **extracted)
    jobs = await total(desk, "octavo_job_duration_seconds_count", **complete)
    queue = {"kind": "process_document", "lane": "interactive"}
    waits = await total(desk, "octavo_job_wait_seconds_count", **queue)
    waited = await total(desk, "octavo_job_wait_seconds_sum", **queue)
    later = "UPDATE jobs SET queued_at = queued_at - interval '7 seconds' WHERE document_id = %s RETURNING kind"
    assert await desk.one(later, document) == "process_document"
    async with working(desk, sandbox, folder):
        await finished(desk, owner, document)
    lines = await measure(desk)
    await COUNTS.add(desk.database)
    assert await total(desk, "octavo_stage_duration_seconds_count", **extracted) == stages + 1
    assert await total(desk, "octavo_stage_duration_seconds_bucket", le="+Inf", **extracted) == stages + 1
    assert await total(desk, "octavo_job_duration_seconds_count", **complete) == jobs + 1
    assert await total(desk, "octavo_job_wait_seconds_count", **queue) == waits + 1
    assert await total(desk, "octavo_job_wait_seconds_sum", **queue) >= waited + 7
    assert any(line.startswith('octavo_stage_seconds{source="markdown",stage="extracted"} ') for line in lines), lines
    assert not any(line.startswith("octavo_analysis_item_seconds ") for line in lines)
    await desk.one(AS_ANSWER, document)
    assert "octavo_analysis_item_seconds 3.0" in await measure(desk)


async def test_the_metrics_have_the_jobs_that_were_taken_over(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "a.md", b"# Bogs")
    assert "octavo_jobs_taken_over 0.0" in await measure(desk)
    await desk.one("UPDATE jobs SET taken_from = ARRAY[%s] WHERE document_id = %s RETURNING 1", owner, document)
    assert "octavo_jobs_taken_over 1.0" in await measure(desk)


async def test_the_metrics_have_reused_answers_and_files_that_expire_soon(desk: Desk, owner: UUID) -> None:
    await desk.one(CALL, owner, 5)
    await desk.one(REUSE)
    await desk.rows(FILE, owner)
    lines = set(await measure(desk))
    assert {'octavo_ai_answers{from="model"} 1.0', 'octavo_ai_answers{from="cache"} 1.0'} <= lines
    assert "octavo_ai_files_expiring 1.0" in lines


class Process:
    """What another process counts: the same metrics in its own memory."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.counts = Counts(registry)
        self.seconds = Histogram("octavo_job_duration_seconds", "", ["kind", "outcome"], registry=registry)
        self.hits = Counter("octavo_ai_cache_hits", "", ["purpose"], registry=registry)


async def test_the_counts_of_all_processes_are_added(desk: Desk) -> None:
    one, other = Process(), Process()
    one.seconds.labels("demo", "complete").observe(0.2)
    other.seconds.labels("demo", "complete").observe(3)
    other.hits.labels("classify").inc()
    for process in (one, other, one):
        await process.counts.add(desk.database)
    one.seconds.labels("demo", "complete").observe(0.3)
    await one.counts.add(desk.database)
    assert await total(desk, "octavo_job_duration_seconds_count", kind="demo") == 3
    assert await total(desk, "octavo_job_duration_seconds_sum", kind="demo") == pytest.approx(3.5)
    assert await total(desk, "octavo_job_duration_seconds_bucket", kind="demo", le="0.5") == 2
    assert await total(desk, "octavo_ai_cache_hits_total", purpose="classify") == 1


async def test_counts_that_could_not_be_added_are_added_later(desk: Desk) -> None:
    process = Process()
    process.hits.labels("classify").inc(2)
    await desk.rows("ALTER TABLE metric_totals RENAME TO away")
    await process.counts.try_to_add(desk.database)
    await desk.rows("ALTER TABLE away RENAME TO metric_totals")
    assert await total(desk, "octavo_ai_cache_hits_total", purpose="classify") == 0
    await process.counts.try_to_add(desk.database)
    assert await total(desk, "octavo_ai_cache_hits_total", purpose="classify") == 2


async def test_take_overs_are_counted_by_reason(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "a.md", b"# Bogs")
    worker = await desk.one(CLAIMED, document)
    async with desk.database.transaction() as connection:
        await release_workers(connection, [worker], killed=True)
    assert await total(desk, "octavo_job_takeovers_total", reason="worker_killed") == 1
