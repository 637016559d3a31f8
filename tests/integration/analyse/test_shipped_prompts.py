"""Offline, the shipped prompts state what is there, and never deny it. Stronger models are asked before `local`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from uuid import UUID

import pytest

from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import open_gateway
from octavo.analyse import prompts
from octavo.core.settings import Settings
from tests.integration.analyse.test_recovery import let_time_pass
from tests.support.analyses import Study, answer_well, read_pages
from tests.support.fake_ai import Asked, FakeGemini
from tests.support.fake_ai.server import SECRET, Trouble
from tests.support.library import Desk
from tests.support.processing import OpenSandbox
from tests.support.working import add, finished

CONTRACT = """# Lease of a tower crane

This contract is made on 14 March 2024 between Brenner Hoists GmbH, represented by Ada Brenner, and Quarry Lane
Builders Ltd.

The lessee must pay a rent of 4,250 EUR per month. The lessor shall inspect the crane every 90 days.
"""
EXPECTED = {
    "People and organisations": ("Ada Brenner", "Quarry Lane Builders Ltd"),
    "Dates and deadlines": ("14 March 2024", "every 90 days"),
    "Money": ("4,250 EUR",),
    "Obligations and risks": ("must pay a rent", "shall inspect the crane"),
}


@pytest.fixture
async def fallback(desk: Desk, gemini: FakeGemini) -> AsyncIterator[Gateway]:
    """A model and, after it, the rules."""
    given = {"providers": "gemini,local", "gemini_key": SECRET, "gemini_url": gemini.url, "embedding_model": "local"}
    async with aclosing(open_gateway(Settings.model_validate(given), desk.database)) as opened:
        yield opened


async def test_a_contract_full_of_names_dates_sums_and_duties_is_answered_with_them(
    desk: Desk, owner: UUID, folder: Path
) -> None:
    study = Study(desk, owner, await add(desk, owner, "lease.md", CONTRACT.encode()), folder, OpenSandbox())
    async with desk.database.connection() as connection:
        shipped = [one.id for one in await prompts.list_prompts(connection, owner)]
    async with study.work():
        await finished(desk, owner, study.document)
        analysis = await study.start(shipped)
        assert (await study.ended(analysis)).status == "completed"
    results = {one.title: one for one in await study.results(analysis)}
    for title, words in EXPECTED.items():
        content = results[title].content or ""
        assert [word for word in words if word not in content] == []
        assert results[title].citations
        assert all(one.verified for one in results[title].citations)
        assert results[title].answered_by == ["local"]


async def test_a_segment_that_is_too_long_is_cut_before_the_rules_answer(
    book: Study, gemini: FakeGemini, fallback: Gateway
) -> None:
    routed = gemini.converse

    def converse(asked: Asked) -> object:
        pages = read_pages(asked)
        return gemini.refuse(Trouble.TOO_LONG) if pages and pages[1] - pages[0] > 4 else routed(asked)

    gemini.converse = converse  # pyright: ignore[reportAttributeAccessIssue]
    analysis = await book.start([await book.prompt()])
    async with book.work(gateway=fallback):
        assert (await book.ended(analysis)).status == "completed"
    (result,) = await book.results(analysis)
    assert result.answered_by == ["gemini:gemini-2.5-flash"]
    assert [(one.first, one.last) for one in result.parts] == [(1, 5), (6, 10), (11, 15), (16, 20), (21, 25)]


async def test_a_page_that_no_model_accepts_is_answered_by_rules_and_labelled(
    book: Study, gemini: FakeGemini, fallback: Gateway
) -> None:
    routed = gemini.converse

    def converse(asked: Asked) -> object:
        pages = read_pages(asked)
        return gemini.refuse(Trouble.TOO_LONG) if pages and pages[0] <= 13 <= pages[1] else routed(asked)

    gemini.converse = converse  # pyright: ignore[reportAttributeAccessIssue]
    analysis = await book.start([await book.prompt()])
    async with book.work(gateway=fallback):
        assert (await book.ended(analysis)).status == "completed"
    (result,) = await book.results(analysis)
    assert {(one.first, one.last): one.answered_by for one in result.parts}[13, 13] == "local"
    assert set(result.answered_by) == {"gemini:gemini-2.5-flash", "local"}


async def test_a_model_that_is_away_for_a_moment_is_asked_again_before_the_rules_answer(
    book: Study, gemini: FakeGemini, fallback: Gateway
) -> None:
    gemini.script.extend([Trouble.BROKEN] * 2)
    analysis = await book.start([await book.prompt()], at_once=1)
    async with book.work(gateway=fallback):
        await let_time_pass(book, analysis)
    (result,) = await book.results(analysis)
    assert result.answered_by == ["gemini:gemini-2.5-flash"]
    assert (await book.show(analysis)).retries > 0


async def test_a_failed_segment_does_not_stop_the_segments_after_it(study: Study, gemini: FakeGemini) -> None:
    gemini.answer = lambda asked: "no JSON" if read_pages(asked) == (1, 10) else answer_well(asked)
    analysis = await study.start([await study.prompt()], mode="sequential")
    await study.prepare()
    await study.run("UPDATE jobs SET max_attempts = 1 WHERE kind = 'answer_segment'")
    async with study.work():
        shown = await study.ended(analysis)
    (result,) = await study.results(analysis)
    assert (shown.status, [(one.first, one.last) for one in result.gaps]) == ("completed", [(1, 10)])
    assert [(one.first, one.last) for one in result.parts] == [(11, 20), (21, 25)]


async def test_the_heartbeat_is_that_of_the_worker_that_runs_it(study: Study) -> None:
    analysis = await study.start([await study.prompt()])
    await study.prepare()
    await study.run("UPDATE jobs SET progressed_at = engine_now() - interval '1 hour' WHERE progressed_at IS NOT NULL")
    before = (await study.show(analysis)).last_heartbeat
    await study.run(
        """WITH worker AS (INSERT INTO workers (id, host, pid, kinds, slots, started_at, heartbeat_at, expires_at)
               VALUES (gen_random_uuid(), 'here', 1, '{}', 1, engine_now(), engine_now(), engine_now()) RETURNING id)
           UPDATE jobs SET status = 'processing', admitted = true, attempt = 1, lease_token = lease_token + 1,
               leased_by = (SELECT id FROM worker), lease_expires_at = engine_now() + interval '1 minute',
               deadline_at = engine_now() + interval '1 hour', started_at = engine_now()
           WHERE id = (SELECT id FROM jobs WHERE kind = 'answer_segment' AND admitted LIMIT 1)"""
    )
    after = (await study.show(analysis)).last_heartbeat
    assert before
    assert after
    assert (after - before).total_seconds() > 3000
