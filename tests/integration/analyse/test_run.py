"""Prompts asked of a book: all of it is covered, answers are cited, and nothing is paid for twice."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from octavo.analyse import analyses
from octavo.core.settings import Settings
from octavo.pipeline import Tools
from octavo.pipeline.analyse_document import SegmentFiles
from tests.support.analyses import Study, read_pages, sentence
from tests.support.engine import engine_on, most_at_once
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import Trouble
from tests.support.library import Desk
from tests.support.processing import OpenSandbox
from tests.support.working import add, finished


async def test_offline_the_right_page_is_quoted(book: Study) -> None:
    asked = await book.prompt("What is the harbour fee of pier 17?")
    analysis = await book.start([asked])
    async with book.work():
        shown = await book.ended(analysis)
    assert (shown.status, shown.phase, shown.percent.overall) == ("completed", "completed", 100)
    assert (shown.segments.done, shown.items.done, shown.items.total) == (3, 3, 3)
    assert (shown.units, shown.cost_usd, shown.health.ok) == (25, 0, True)
    (result,) = await book.results(analysis)
    assert result.content
    assert sentence(17) in result.content
    assert any(one.page == 17 and one.verified and one.quote == sentence(17) for one in result.citations)
    assert all(one.verified for one in result.citations)
    assert result.made_by == "local"
    assert await book.desk.one("SELECT count(*) FROM artifacts WHERE starts_with(kind, 'segment:')") == 0


async def test_a_model_sees_each_segment_as_a_file_and_all_answers_become_one(study: Study, gemini: FakeGemini) -> None:
    first, second = await study.prompt("What is the fee?", 1), await study.prompt("Who pays?", 2)
    analysis = await study.start([first, second])
    async with study.work():
        shown = await study.ended(analysis)
    assert (shown.status, shown.items.done, shown.items.total) == ("completed", 6, 6)
    assert sorted(filter(None, map(read_pages, gemini.asked))) == sorted([(1, 10), (11, 20), (21, 25)] * 2)
    assert gemini.sent == 3  # each file once, for both prompts
    results = await study.results(analysis)
    assert [(one.title, one.content) for one in results] == [
        ("What is the fee?", "3 parts."),
        ("Who pays?", "3 parts."),
    ]
    assert [(one.page, one.verified) for one in results[0].citations] == [(1, True), (11, True), (21, True)]
    assert results[0].made_by == "gemini:gemini-2.5-flash"
    assert shown.tokens == sum(bill.read + bill.written for bill in gemini.bills)
    assert shown.cost_usd > 0
    items = await study.items(analysis)
    assert [(one.first, one.last, one.status, one.attempts) for one in items[:3]] == [
        (1, 10, "done", 1),
        (11, 20, "done", 1),
        (21, 25, "done", 1),
    ]


async def test_in_sequential_mode_each_segment_gets_the_previous_answer(study: Study, gemini: FakeGemini) -> None:
    analysis = await study.start([await study.prompt()], mode="sequential")
    async with study.work():
        assert (await study.ended(analysis)).status == "completed"
    questions = [one for one in gemini.asked if read_pages(one)]
    assert list(map(read_pages, questions)) == [(1, 10), (11, 20), (21, 25)]
    assert "Read up to" not in questions[0].text
    assert "Read up to 10." in questions[1].text
    assert "Read up to 20." in questions[2].text


async def test_a_segment_that_is_too_long_is_replaced_by_its_parts(study: Study, gemini: FakeGemini) -> None:
    gemini.script.append(Trouble.TOO_LONG)
    analysis = await study.start([await study.prompt()], at_once=1)
    async with study.work():
        shown = await study.ended(analysis)
    assert (shown.status, shown.items.total, shown.segments.total) == ("completed", 4, 4)
    answered = sorted((one.first, one.last) for one in await study.items(analysis) if one.status == "done")
    assert answered == [(1, 5), (6, 10), (11, 20), (21, 25)]
    assert [one.page for one in (await study.results(analysis))[0].citations] == [1, 6, 11, 21]
    again = await study.start([await study.prompt("Who pays?")], at_once=1)
    async with study.work():
        assert (await study.ended(again)).items.total == 3


async def test_the_same_question_is_paid_for_once_and_repeated_only_on_request(
    study: Study, gemini: FakeGemini
) -> None:
    asked = await study.prompt()
    async with study.work():
        analysis = await study.start([asked], at_once=1)
        await study.ended(analysis)
        calls = len(gemini.bills)
        await study.ended(await study.start([asked], at_once=1))
        assert len(gemini.bills) == calls
        item = (await study.items(analysis))[1]
        async with study.desk.database.transaction() as connection:
            assert await analyses.ask_again(connection, study.owner, analysis, item=item.id) == 1
        assert (await study.ended(analysis)).status == "completed"
        assert len(gemini.bills) == calls + 1 + 1  # the item, and what is put together from it
        async with study.desk.database.transaction() as connection:
            assert await analyses.ask_again(connection, study.owner, analysis, prompt=asked) == 3
        assert (await study.ended(analysis)).status == "completed"
        assert len(gemini.bills) == calls + 2 + 4


async def test_changed_prompts_run_only_the_new_items(study: Study, gemini: FakeGemini) -> None:
    stays, goes, comes = [await study.prompt(f"Question {number}?", number) for number in range(3)]
    async with study.work():
        analysis = await study.start([stays, goes])
        await study.ended(analysis)
        calls = len(gemini.bills)
        async with study.desk.database.transaction() as connection:
            await analyses.change_prompts(connection, study.owner, analysis, [stays, comes])
        shown = await study.ended(analysis)
    assert (shown.status, shown.items.total) == ("completed", 6)
    assert len(gemini.bills) == calls + 4
    assert [one.prompt_id for one in await study.results(analysis)] == [stays, comes]


async def test_parallel_items_stay_within_the_cap_and_follow_the_prompt_order(study: Study, database_info: str) -> None:
    asked = [await study.prompt(f"Question {number}?", number) for number in range(4)]
    analysis = await study.start(asked, at_once=2)
    async with study.work():
        await study.ended(analysis)
    with engine_on(database_info) as engine:
        assert most_at_once(engine)[f"analysis:{analysis}"] <= 2
        engine.check_invariants()
    begun = await study.desk.rows(
        """SELECT r.execution_order FROM events e JOIN analysis_items i ON i.job_id = e.process_id
           JOIN analysis_results r USING (analysis_id, prompt_id) WHERE e.state_after = 'processing' ORDER BY e.id"""
    )
    orders = [row["execution_order"] for row in begun]
    assert orders == sorted(orders)


async def test_a_document_without_pages_goes_by_passages(desk: Desk, owner: UUID, folder: Path) -> None:
    text = "\n\n".join(f"## Part {number}\n\n" + f"{sentence(number)} " + "Gulls cry. " * 200 for number in range(1, 9))
    study = Study(desk, owner, await add(desk, owner, "book.md", text.encode()), folder, OpenSandbox())
    async with study.work():
        await finished(desk, owner, study.document)
        analysis = await study.start([await study.prompt("What is the harbour fee of pier 6?")])
        shown = await study.ended(analysis)
    assert (shown.status, shown.unit) == ("completed", "passages")
    (result,) = await study.results(analysis)
    assert sentence(6) in (result.content or "")
    assert all(one.verified for one in result.citations)


async def test_two_analyses_that_cut_the_same_pages_share_the_file_of_the_first(book: Study) -> None:
    """Its file may be in use, so the second one does not replace it."""
    asked = [await book.prompt()]
    tools = Tools(Settings(data_dir=book.folder), book.desk.database, book.desk.bucket, book.sandbox)
    files: list[SegmentFiles] = []
    for _ in range(2):
        await book.start(asked)
        files.append(SegmentFiles(await book.begin_attempt(tools), book.document))
    first, second = [await one.put("segment-1-10.pdf", b"%PDF") for one in files]
    for mine, made in zip(files, (first, second), strict=True):
        async with book.desk.database.transaction() as connection:
            mine.begin_saving()
            await mine.keep(connection, "segment:1-10", made, "application/pdf")
        await mine.remove_unused()
    assert await book.desk.one("SELECT key FROM artifacts WHERE kind = 'segment:1-10'") == first["key"]
    stored = {info.key async for info in book.desk.bucket.list()}
    assert (str(first["key"]) in stored, str(second["key"]) in stored) == (True, False)
