"""Whatever stops an analysis, it goes on without a person, or says what it waits for: one test for each way to stop."""

from __future__ import annotations

import asyncio
import threading
from uuid import UUID

import pytest

from octavo.ai.gateway_setup import open_gateway
from octavo.analyse import analyses
from octavo.analyse.progress import recover_all
from octavo.core.settings import Settings
from octavo.jobs import queue
from tests.support.analyses import Study, answer_well, read_pages
from tests.support.deliveries import SKIP_WAITS_AT_REST
from tests.support.fake_ai import Asked, FakeGemini
from tests.support.fake_ai.server import SECRET, Trouble
from tests.support.processes import PATIENCE_SECONDS

TWO_DAYS = "UPDATE engine_clock SET shift = shift + interval '49 hours'"


async def recover(study: Study) -> tuple[int, int]:
    return await recover_all(study.desk.database)


@pytest.mark.parametrize("point", ["claim.after@1", "stage.commit.before@1"])
async def test_stuck_initializing_goes_on_with_another_worker(study: Study, point: str) -> None:
    """Seed: stuck in `initializing`, worker crash, expired lock."""
    analysis = await study.start([await study.prompt()])
    await study.break_off(point)
    assert (await study.show(analysis)).status in ("queued", "analyzing")
    async with study.work():
        assert (await study.ended(analysis)).status == "completed"


@pytest.mark.parametrize("number", [2, 4])
async def test_stuck_uploading_goes_on_at_the_segment_where_it_stopped(study: Study, number: int) -> None:
    """Seed: resuming interrupted splits."""
    analysis = await study.start([await study.prompt()])
    await study.break_off(f"stage.commit.after@{number}")
    assert (await study.show(analysis)).phase == "uploading"
    async with study.work():
        assert (await study.ended(analysis)).status == "completed"
    cut = await study.desk.rows(
        "SELECT part, attempt FROM job_stages WHERE job_id = %s AND stage = 'cutting'", analysis
    )
    assert sorted((row["part"], row["attempt"]) for row in cut) == sorted(
        (part, 1 if place < number - 1 else 2) for place, part in enumerate(["1", "11", "21"])
    )


@pytest.mark.parametrize("point", ["claim.after@1", "stage.commit.before@1", "stage.commit.after@1"])
async def test_stuck_processing_goes_on_and_nothing_is_paid_for_twice(
    study: Study, gemini: FakeGemini, point: str
) -> None:
    """Seed: stuck in `processing`, stuck item, expired lock; also a crash when the answer was there and not kept."""
    analysis = await study.start([await study.prompt()], at_once=1)
    await study.prepare()
    await study.break_off(point)
    async with study.work():
        assert (await study.ended(analysis)).status == "completed"
    assert sorted(filter(None, map(read_pages, gemini.asked))) == [(1, 10), (11, 20), (21, 25)]


async def test_stuck_consolidating_is_put_together_by_another_worker(study: Study, gemini: FakeGemini) -> None:
    """Seed: stuck in `consolidating`."""
    analysis = await study.start([await study.prompt()])
    gemini.answer = lambda asked: answer_well(asked) if read_pages(asked) else "not JSON"
    async with study.work():
        await study.wait("SELECT 1 FROM jobs WHERE kind = 'consolidate_answers' AND failures > 0")
    gemini.answer = answer_well
    assert (await study.show(analysis)).phase == "consolidating"
    await study.run("UPDATE engine_clock SET shift = shift + interval '1 minute'")
    async with study.work():
        assert (await study.ended(analysis)).status == "completed"


async def test_what_lost_its_job_gets_another(study: Study) -> None:
    """Seed: nothing is in line although something is left to do. The schedule finds it."""
    analysis = await study.start([await study.prompt()])
    await study.prepare()
    await study.run("DELETE FROM jobs WHERE kind IN ('answer_segment', 'consolidate_answers')")
    assert await recover(study) == (3, 0)
    assert await recover(study) == (0, 0)
    async with study.work():
        assert (await study.ended(analysis)).status == "completed"


async def test_a_dead_letter_leaves_a_stated_gap_that_is_filled_when_it_is_requeued(
    study: Study, gemini: FakeGemini
) -> None:
    """Seed: dead letter; errors reach the owner, and the rest of the analysis is finished."""
    bad, good = await study.prompt("Bad?", 1), await study.prompt("Good?", 2)
    gemini.answer = lambda asked: (
        "no JSON" if "Bad?" in asked.text and read_pages(asked) == (11, 20) else answer_well(asked)
    )
    analysis = await study.start([bad, good], at_once=1)
    await study.prepare()
    await study.run("UPDATE jobs SET max_attempts = 1 WHERE kind = 'answer_segment'")
    async with study.work():
        shown = await study.ended(analysis)
        assert (shown.status, shown.items.failed, shown.health.ok) == ("completed", 1, False)
        assert shown.error
        assert shown.error.code == "ANALYSIS_INCOMPLETE"
        assert "AI_ANSWER_UNUSABLE" in {one.code for one in shown.errors}
        first, second = await study.results(analysis)
        assert (first.status, second.status, second.gaps) == ("completed", "completed", [])
        assert [(one.first, one.last, one.error.code) for one in first.gaps] == [(11, 20, "AI_ANSWER_UNUSABLE")]
        assert (first.content or "").startswith("> Not answered: page 11 to 20. ")
        assert [(one.first, one.last) for one in first.parts] == [(1, 10), (21, 25)]
        gemini.answer = answer_well
        dead = await study.desk.one("SELECT id FROM jobs WHERE status = 'dead_letter'")
        async with study.desk.database.transaction() as connection:
            await queue.requeue(connection, dead)
        shown = await study.ended(analysis)
    assert (shown.status, shown.error, shown.health.ok) == ("completed", None, True)
    first = (await study.results(analysis))[0]
    assert (first.gaps, first.content) == ([], "3 parts.")


async def test_a_page_that_is_too_long_for_every_model_fails_alone(study: Study, gemini: FakeGemini) -> None:
    """Seed: token limit exceeded, also by the last part that can be cut."""

    routed = gemini.converse

    def converse(asked: Asked) -> object:
        pages = read_pages(asked)
        if pages and pages[0] <= 13 <= pages[1]:
            return gemini.refuse(Trouble.TOO_LONG)
        return routed(asked)

    gemini.converse = converse  # pyright: ignore[reportAttributeAccessIssue]
    analysis = await study.start([await study.prompt()])
    async with study.work():
        shown = await study.ended(analysis)
    assert (shown.status, shown.items.failed) == ("completed", 1)
    (result,) = await study.results(analysis)
    assert (result.content or "").startswith("> Not answered: page 13. ")
    (failed,) = [one for one in await study.items(analysis) if one.status == "failed"]
    assert (failed.first, failed.last) == (13, 13)
    assert failed.error
    assert failed.error.code == "AI_TOKEN_LIMIT"
    done = sorted((one.first, one.last) for one in await study.items(analysis) if one.status == "done")
    assert sum(last - first + 1 for first, last in done) == 24


async def test_a_file_that_the_provider_forgot_is_sent_again(study: Study, gemini: FakeGemini) -> None:
    """Seed: an expired file needs a person there. Here it does not."""
    analysis = await study.start([await study.prompt()], at_once=1)
    async with study.work():
        await study.wait("SELECT 1 FROM analysis_items WHERE status = 'done'")
        gemini.files.clear()
        assert (await study.ended(analysis)).status == "completed"
        gemini.files.clear()
        async with study.desk.database.transaction() as connection:
            await analyses.ask_again(connection, study.owner, analysis)
        assert (await study.ended(analysis)).status == "completed"
    assert gemini.sent >= 6


@pytest.mark.parametrize("trouble", [Trouble.RATE_LIMIT, Trouble.BROKEN, Trouble.CUT])
async def test_provider_faults_are_retried_later(study: Study, gemini: FakeGemini, trouble: Trouble) -> None:
    """Seed: timeout, 503 and 429 are tried again by themselves."""
    gemini.retry_after = "1"
    gemini.script.extend([trouble] * 2)
    analysis = await study.start([await study.prompt()], at_once=1)
    async with study.work():
        await let_time_pass(study, analysis)
        shown = await study.ended(analysis)
    assert (shown.status, shown.items.failed) == ("completed", 0)


async def let_time_pass(study: Study, analysis: UUID) -> None:
    """Backoffs take no time: the clock goes on until nothing waits for it any more."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await study.show(analysis)).status in ("queued", "analyzing"):
            await study.run(SKIP_WAITS_AT_REST)
            await asyncio.sleep(0.02)


async def test_when_all_models_are_exhausted_it_waits_and_the_next_model_answers_where_there_is_one(
    study: Study, gemini: FakeGemini
) -> None:
    """Seed: all models exhausted."""
    gemini.script.append(Trouble.QUOTA)
    given = {"providers": "gemini,local", "gemini_key": SECRET, "gemini_url": gemini.url, "embedding_model": "local"}
    both = open_gateway(Settings.model_validate(given), study.desk.database)
    analysis = await study.start([await study.prompt("What is the harbour fee of pier 3?")], at_once=1)
    async with study.work(gateway=both):
        await let_time_pass(study, analysis)
        assert (await study.ended(analysis)).status == "completed"
    await both.aclose()
    first = (await study.items(analysis))[0]
    assert first.made_by == "local"
    assert first.failed_models == [{"model": "gemini:gemini-2.5-flash", "fault": "out_of_quota"}]


async def test_waiting_for_the_budget_is_never_abandoned(study: Study) -> None:
    analysis = await study.start([await study.prompt()])
    await study.prepare()
    for row in await study.desk.rows("SELECT id FROM jobs WHERE status = 'queued'"):
        async with study.desk.database.transaction() as connection:
            await queue.pause(connection, row["id"], code="OVER_BUDGET", message="Nothing left.")
    await study.run(TWO_DAYS)
    assert await recover(study) == (0, 0)
    shown = await study.show(analysis)
    assert (shown.status, shown.paused) == ("analyzing", 3)


async def test_abandoned_after_two_days_without_progress_and_restarted_by_one_call(study: Study) -> None:
    """Seed: abandoned, over 48 hours. Only what nothing would move any more: here its preparation stopped for good."""
    analysis = await study.start([await study.prompt()])
    await study.run("ALTER TABLE jobs DISABLE TRIGGER analysis_follows")
    async with study.desk.database.transaction() as connection:
        await queue.cancel(connection, analysis)
    await study.run("ALTER TABLE jobs ENABLE TRIGGER analysis_follows")
    assert await recover(study) == (0, 0)
    await study.run(TWO_DAYS)
    assert await recover(study) == (0, 1)
    shown = await study.show(analysis)
    assert (shown.status, shown.phase, shown.health.ok) == ("error", "abandoned", False)
    assert shown.error
    assert shown.error.code == "ABANDONED"
    async with study.desk.database.transaction() as connection:
        await analyses.restart_analysis(connection, study.owner, analysis)
    async with study.work():
        assert (await study.ended(analysis)).status == "completed"


async def test_an_analysis_without_progress_is_reported_once_within_minutes(study: Study) -> None:
    analysis = await study.start([await study.prompt()])
    await study.prepare()
    told = "SELECT kind FROM events WHERE process_id = %s AND kind = 'analysis.stalled'"
    await recover(study)
    assert await study.desk.rows(told, analysis) == []
    await study.run("UPDATE analyses SET progressed_at = progressed_at - interval '6 minutes'")
    for _ in range(2):
        await recover(study)
    assert len(await study.desk.rows(told, analysis)) == 1
    await study.run("UPDATE analyses SET progressed_at = engine_now()")
    await study.run("UPDATE engine_clock SET shift = shift + interval '6 minutes'")
    await recover(study)
    assert len(await study.desk.rows(told, analysis)) == 2


async def test_what_waits_for_a_worker_is_never_abandoned(study: Study) -> None:
    analysis = await study.start([await study.prompt()])
    await study.run(TWO_DAYS)
    assert await recover(study) == (0, 0)
    async with study.work():
        assert (await study.ended(analysis)).status == "completed"


async def test_stopped_keeps_its_answers_and_goes_on_from_there(study: Study, gemini: FakeGemini) -> None:
    analysis = await study.start([await study.prompt()], at_once=1)
    stopped = threading.Event()

    def answer(asked: Asked) -> str:
        if read_pages(asked) == (11, 20):
            stopped.wait(30)
        return answer_well(asked)

    gemini.answer = answer
    async with study.work():
        await study.wait("SELECT 1 FROM analysis_items WHERE status = 'done'")
        async with study.desk.database.transaction() as connection:
            await analyses.stop_analysis(connection, study.owner, analysis)
        stopped.set()
        shown = await study.show(analysis)
        assert (shown.status, shown.error, shown.items.failed) == ("stopped", None, 0)
        assert (shown.health.ok, shown.health.message.startswith("Stopped by you.")) == (True, True)
        assert not await study.desk.rows(
            "SELECT 1 FROM jobs WHERE parent_id = %s AND status IN ('queued', 'processing')", analysis
        )
        async with study.desk.database.transaction() as connection:
            await analyses.restart_analysis(connection, study.owner, analysis)
        assert (await study.ended(analysis)).status == "completed"
    asked = sorted(filter(None, map(read_pages, gemini.asked)))
    assert len(asked) <= 4  # at most the one that was under way is asked twice


async def test_a_reprocessed_document_needs_a_new_analysis(study: Study) -> None:
    analysis = await study.start([await study.prompt()])
    await study.run("UPDATE pages SET revision = 2; UPDATE artifacts SET revision = 2 WHERE revision = 1")
    async with study.work():
        shown = await study.ended(analysis)
    assert shown.error
    assert shown.error.code == "ANALYSIS_OUTDATED"
