"""The library of prompts, what owners hear of an analysis, and what is left when one is deleted."""

from __future__ import annotations

from uuid import UUID

import pytest

from octavo.analyse import analyses, prompts
from octavo.analyse.errors import BuiltInPrompt, NoPrompts, NotReadable
from octavo.analyse.prompts import PromptFields
from octavo.core.errors import NotFound
from octavo.database import load_queries
from octavo.deliver.deliveries import relay_once
from octavo.deliver.subscribers import list_notifications
from octavo.jobs.kinds import sync_kinds
from octavo.pipeline import known_kinds
from tests.support.analyses import Study
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import Trouble
from tests.support.library import Desk

DOCTOR = load_queries("doctor")


async def test_new_words_are_a_new_version_and_the_old_ones_are_kept(desk: Desk, owner: UUID) -> None:
    async with desk.database.transaction() as connection:
        made = await prompts.add_prompt(connection, owner, PromptFields(title="Money", content="How much?"))
        same = await prompts.change_prompt(connection, owner, made.id, PromptFields(title="Sums", active=False))
        assert (same.version, same.title, same.active) == (1, "Sums", False)
        other = await prompts.change_prompt(connection, owner, made.id, PromptFields(content="How many crowns?"))
        assert other.version == 2
        versions = await prompts.list_versions(connection, owner, made.id)
        assert [(one.version, one.content) for one in versions] == [(2, "How many crowns?"), (1, "How much?")]
        await prompts.delete_prompt(connection, owner, made.id)
        with pytest.raises(NotFound):
            await prompts.show_prompt(connection, owner, made.id)


async def test_what_came_along_is_everybodys_and_changed_by_nobody(desk: Desk, owner: UUID) -> None:
    async with desk.database.transaction() as connection:
        first = (await prompts.list_prompts(connection, owner))[0]
        assert (first.title, first.built_in, first.active) == ("Summary", True, True)
        with pytest.raises(BuiltInPrompt):
            await prompts.change_prompt(connection, owner, first.id, PromptFields(title="Mine"))
        with pytest.raises(BuiltInPrompt):
            await prompts.delete_prompt(connection, owner, first.id)


async def test_what_cannot_be_analysed_is_refused_and_leaves_nothing(book: Study) -> None:
    desk, stranger = book.desk, await book.desk.new_owner()
    async with desk.database.connection() as connection:
        foreign = await book.prompt()
        with pytest.raises(NotFound):
            await analyses.start_analysis(connection, stranger, book.document, [foreign])
        with pytest.raises(NotFound):
            await analyses.start_analysis(connection, book.owner, book.document, [UUID(int=1)])
        await book.run("UPDATE prompts SET active = false")
        with pytest.raises(NoPrompts):
            await analyses.start_analysis(connection, book.owner, book.document)
        await book.run("UPDATE documents SET text_ready = false")
        with pytest.raises(NotReadable):
            await analyses.start_analysis(connection, book.owner, book.document, [foreign])
    assert await desk.one("SELECT count(*) FROM analyses") == 0


async def test_the_owner_hears_of_the_end_and_of_errors_once(study: Study, gemini: FakeGemini) -> None:
    gemini.script.extend([Trouble.BAD_KEY] * 3)
    asked = await study.prompt()
    async with study.work():
        good_one = await study.start([asked], at_once=1)
        assert (await study.ended(good_one)).status == "error"
        async with study.desk.database.transaction() as connection:
            await analyses.restart_analysis(connection, study.owner, good_one)
        assert (await study.ended(good_one)).status == "completed"
    while await relay_once(study.desk.database):
        pass
    async with study.desk.database.connection() as connection:
        page = await list_notifications(connection, study.owner, unread=False, cursor=None, limit=50)
        assert (await (await connection.execute(DOCTOR.wrong_analyses)).fetchall()) == []
    told = [(one.type, one.level, one.sentence, one.link) for one in page.items]
    assert told == [
        ("analysis.completed", "news", "The analysis of “book.pdf” is complete.", f"/analyses/{good_one}"),
        (
            "analysis.failed",
            "error",
            "The analysis of “book.pdf” failed (ANALYSIS_INCOMPLETE).",
            f"/analyses/{good_one}",
        ),
    ]


async def test_stopping_makes_no_notice_and_an_answer_with_a_gap_makes_one_that_says_so(
    study: Study, gemini: FakeGemini
) -> None:
    stopped = await study.start([await study.prompt()])
    async with study.desk.database.transaction() as connection:
        await analyses.stop_analysis(connection, study.owner, stopped)
    assert (await study.show(stopped)).status == "stopped"
    gemini.script.append(Trouble.BAD_KEY)
    async with study.work():
        await study.ended(await study.start([await study.prompt("Who pays?")], at_once=1))
    while await relay_once(study.desk.database):
        pass
    async with study.desk.database.connection() as connection:
        page = await list_notifications(connection, study.owner, unread=False, cursor=None, limit=50)
        assert (await (await connection.execute(DOCTOR.wrong_analyses)).fetchall()) == []
    sentence = "The analysis of “book.pdf” is complete, but some parts of the document have no answer."
    assert [(one.type, one.level, one.sentence) for one in page.items] == [("analysis.completed", "news", sentence)]


async def test_a_deleted_analysis_leaves_no_files_that_no_other_one_has(study: Study) -> None:
    asked, files = await study.prompt(), "SELECT count(*) FROM artifacts WHERE starts_with(kind, 'segment:')"
    async with study.work():
        first, second = [await study.start([asked]) for _ in range(2)]
        for one in (first, second):
            await study.ended(one)
    for one, left in ((first, 3), (second, 0)):
        async with study.desk.database.transaction() as connection:
            await analyses.delete_analysis(connection, study.owner, one)
        assert await study.desk.one(files) == left
    assert await study.desk.one("SELECT count(*) FROM analysis_items") == 0


async def test_kinds_are_known_before_a_worker_ever_started(desk: Desk) -> None:
    before = (
        "SELECT name, max_attempts, time_limit, limit_renewed_by_stage FROM job_kinds WHERE name = ANY (%s) ORDER BY 1"
    )
    names = ["analyse_document", "answer_segment", "consolidate_answers"]
    known = await desk.rows(before, names)
    async with desk.database.transaction() as connection:
        await sync_kinds(connection, known_kinds())
    assert await desk.rows(before, names) == known
