"""A monitoring system can read how long the work of the last hour took, and what was reused."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from octavo.ops.health import read_metrics, render_metrics
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


async def measure(desk: Desk) -> list[str]:
    async with desk.database.connection() as connection:
        return render_metrics(await read_metrics(connection)).splitlines()


async def test_the_metrics_have_times_by_stage_and_source(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    document = await add(desk, owner, "a.md", b"# Bogs\n\nMoss holds water.")
    async with working(desk, sandbox, folder):
        await finished(desk, owner, document)
    lines = await measure(desk)
    assert any(line.startswith('octavo_stage_seconds{source="markdown",stage="extracted"} ') for line in lines), lines
    assert not any(line.startswith("octavo_analysis_item_seconds ") for line in lines)
    await desk.one(AS_ANSWER, document)
    assert "octavo_analysis_item_seconds 3" in await measure(desk)


async def test_the_metrics_have_the_jobs_that_were_taken_over(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "a.md", b"# Bogs")
    assert "octavo_jobs_taken_over 0" in await measure(desk)
    await desk.one("UPDATE jobs SET taken_from = ARRAY[%s] WHERE document_id = %s RETURNING 1", owner, document)
    assert "octavo_jobs_taken_over 1" in await measure(desk)


async def test_the_metrics_have_reused_answers_and_files_that_expire_soon(desk: Desk, owner: UUID) -> None:
    await desk.one(CALL, owner, 5)
    await desk.one(REUSE)
    await desk.rows(FILE, owner)
    lines = set(await measure(desk))
    assert {'octavo_ai_answers{from="model"} 1', 'octavo_ai_answers{from="cache"} 1'} <= lines
    assert "octavo_ai_files_expiring 1" in lines
