"""Conversions as jobs. Those named "criterion" are what the requirements accept the job table by."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from octavo.convert.conversions import (
    count_download,
    expire_conversions,
    find_result,
    list_conversions,
    list_revisions,
    show_conversion,
    training_samples,
)
from octavo.convert.errors import Expired, MappingTaken, Outdated
from octavo.convert.mappings.shipped_mappings import mapping_from_text, summarise
from octavo.convert.mappings.stored_mappings import add_mapping
from octavo.convert.results import Correction, Corrections
from octavo.convert.submissions import ConversionIntake
from octavo.core.errors import BadInput, NotFound, OctavoError
from octavo.database import Connection, load_queries
from octavo.intake.errors import QuotaExceeded
from octavo.jobs.queue import cancel
from octavo.library.errors import NotReady
from octavo.sandbox import Sandbox
from tests.support.conversions import MOST_BYTES, SOURCE_DAYS, convert, converted, in_pieces, invoice
from tests.support.library import LIMITS, Desk
from tests.support.pdf import Pdf, Words
from tests.support.processing import OpenSandbox
from tests.support.working import add, working

PDF = invoice().write()
JOBS = "SELECT status, error_code, output FROM jobs WHERE kind = 'convert' ORDER BY created_at"
KINDS = "SELECT kind FROM events WHERE process_id = %s ORDER BY id"
MINE = "name: mine_v1\nextends: invoice_v1\ntitle: Mine"


@pytest.fixture
def sandbox() -> OpenSandbox:
    """The files are the test's own."""
    return OpenSandbox()


async def shift(desk: Desk, days: int) -> None:
    await desk.rows("UPDATE engine_clock SET shift = make_interval(days => %s) RETURNING 1", days)


async def finished(desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, body: bytes = PDF) -> UUID:
    begun = await convert(desk, owner, body)
    async with working(desk, sandbox, folder):
        assert (await converted(desk, owner, begun.id)).status == "complete"
    return begun.id


REFUSED = [
    (b"plain text, not a pdf", "invoice_v1", "NOT_PDF"),
    (b"", "invoice_v1", "EMPTY"),
    (PDF + b" " * MOST_BYTES, "invoice_v1", "TOO_LARGE"),
    (PDF, "no_such_v9", "UNKNOWN_MAPPING"),
]


@pytest.mark.parametrize(("body", "mapping", "code"), REFUSED, ids=[code for *_, code in REFUSED])
async def test_criterion_creating_a_job_never_fails_silently(
    desk: Desk, owner: UUID, body: bytes, mapping: str, code: str
) -> None:
    with pytest.raises(OctavoError) as refused:
        await convert(desk, owner, body, mapping)
    assert refused.value.code == code
    (job,) = await desk.rows(JOBS)
    assert (job["status"], job["error_code"]) == ("failed", code)
    await desk.check_books()
    assert await desk.one("SELECT count(*) FROM objects") == 0


async def test_criterion_one_pdf_is_exactly_one_job_with_its_hash_and_its_file(desk: Desk, owner: UUID) -> None:
    begun = await convert(desk, owner, PDF)
    assert begun.created
    assert [job["status"] for job in await desk.rows("SELECT status FROM jobs")] == ["queued"]
    async with desk.database.connection() as connection:
        found = await show_conversion(connection, owner, begun.id)
        source = await find_result(connection, owner, begun.id, "source")
    assert (found.bytes, found.sha256) == (len(PDF), source.sha256)
    await desk.check_books()


async def test_criterion_the_same_pdf_and_mapping_is_the_same_job_on_its_way_and_finished(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    begun = await asyncio.gather(*(convert(desk, owner, PDF, name=f"{number}.pdf") for number in range(8)))
    assert len({one.id for one in begun}) == 1
    assert sum(one.created for one in begun) == 1
    async with working(desk, sandbox, folder):
        await converted(desk, owner, begun[0].id)
    again = await convert(desk, owner, PDF)
    assert (again.id, again.created) == (begun[0].id, False)
    assert len(await desk.rows(JOBS)) == 1
    await desk.check_books()


async def test_another_mapping_another_owner_and_what_failed_are_no_duplicates(desk: Desk, owner: UUID) -> None:
    first = await convert(desk, owner, PDF)
    assert (await convert(desk, owner, PDF, "receipt_v1")).created
    assert (await convert(desk, await desk.new_owner(), PDF)).created
    async with desk.database.transaction() as connection:
        await cancel(connection, first.id)
    assert (await convert(desk, owner, PDF)).created


async def test_criterion_results_only_when_complete_and_errors_only_when_failed(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    good, locked = await convert(desk, owner, PDF), await convert(desk, owner, invoice("B-1").write("secret"))
    one_value = Pdf([[Words("A letter", 72, 100), Words("Date: 2024-08-15", 72, 120)]])
    empty = await convert(desk, owner, one_value.write())
    async with desk.database.connection() as connection:
        with pytest.raises(NotReady):
            _ = (await show_conversion(connection, owner, good.id)).complete_record
    async with working(desk, sandbox, folder):
        ends = [await converted(desk, owner, one.id) for one in (good, locked, empty)]
    assert [(one.status, one.error_code, one.record is None) for one in ends] == [
        ("complete", None, False),
        ("failed", "ENCRYPTED", True),
        ("failed", "NOT_THIS_KIND", True),  # one value is not evidence
    ]
    assert await desk.rows("SELECT id FROM jobs j WHERE broken_invariant(j) IS NOT NULL") == []
    kinds = [row["kind"] for row in await desk.rows(KINDS, good.id)]
    assert kinds[0] == "created"
    assert kinds[-1] == "complete"
    await desk.check_books()


async def test_a_letter_is_refused_as_an_invoice(desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path) -> None:
    letter = await convert(desk, owner, Pdf([[Words("Dear Sir, thank you for your letter, and for the tea.")]]).write())
    async with working(desk, sandbox, folder):
        assert (await converted(desk, owner, letter.id)).error_code == "NOT_THIS_KIND"


async def test_criterion_a_crashed_lease_is_taken_over_and_done_once(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    begun = await convert(desk, owner, PDF)
    await desk.rows(
        "UPDATE jobs SET status = 'processing', attempt = 1, lease_token = 1, leased_by = gen_random_uuid(),"
        " lease_expires_at = engine_now() - interval '1 second', deadline_at = engine_now() + interval '1 hour',"
        " started_at = engine_now() RETURNING id"
    )
    async with working(desk, sandbox, folder):
        assert (await converted(desk, owner, begun.id)).status == "complete"
    assert await desk.one("SELECT count(*) FROM revisions") == 1
    assert await desk.one("SELECT lease_token FROM jobs") > 1


async def test_criterion_the_queue_lists_only_mine_by_an_index(desk: Desk, owner: UUID) -> None:
    stranger = await desk.new_owner()
    mine = [(await convert(desk, owner, invoice(f"A-{number}").write())).id for number in range(3)]
    await convert(desk, stranger, PDF)
    async with desk.database.connection() as connection:
        page = await list_conversions(connection, owner, status=None, cursor=None, limit=2)
        rest = await list_conversions(connection, owner, status=None, cursor=page.next_cursor, limit=2)
        assert [one.id for one in (*page.items, *rest.items)] == mine[::-1]
        assert rest.next_cursor is None
        with pytest.raises(NotFound):
            await show_conversion(connection, stranger, mine[0])
        await connection.execute(b"SET enable_seqscan = off")
        values = {"owner": owner, "status": None, "before": None, "limit": 50}
        plan = await (await connection.execute(b"EXPLAIN " + load_queries("conversions").page, values)).fetchall()
    assert "conversions_owner_created" in str(plan)


async def test_a_document_of_the_library_is_converted_without_a_copy(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    document, text = await add(desk, owner, "in.pdf", PDF), await add(desk, owner, "a.txt", b"Invoice no: 1")
    intake = ConversionIntake(desk.database, desk.bucket, MOST_BYTES, SOURCE_DAYS)
    begun = await intake.submit_document(owner, document, "invoice_v1")
    assert (await convert(desk, owner, PDF)).id == begun.id
    with pytest.raises(NotFound):
        await intake.submit_document(await desk.new_owner(), document, "invoice_v1")
    with pytest.raises(OctavoError) as refused:
        await intake.submit_document(owner, text, "invoice_v1")
    assert refused.value.code == "NOT_PDF"
    async with working(desk, sandbox, folder):
        assert (await converted(desk, owner, begun.id)).document_id == document
    await desk.check_books()


async def test_sources_count_against_the_quota_as_long_as_they_are_kept(desk: Desk, owner: UUID) -> None:
    other = invoice("B-18").write()
    intake = ConversionIntake(desk.database, desk.bucket, MOST_BYTES, SOURCE_DAYS, len(PDF) + len(other) - 1)
    first = await intake.submit_file(owner, "a.pdf", lambda: "invoice_v1", in_pieces(PDF))
    for wanted in (other, other):
        with pytest.raises(QuotaExceeded):
            await intake.submit_file(owner, "b.pdf", lambda: "invoice_v1", in_pieces(wanted))
    full = replace(LIMITS, stored_bytes=len(PDF) + 10)
    with pytest.raises(QuotaExceeded):
        await desk.add(owner, b"A note of more than ten bytes.", full)
    assert (await intake.submit_file(owner, "a.pdf", lambda: "invoice_v1", in_pieces(PDF))).id == first.id
    assert [job["error_code"] for job in await desk.rows(JOBS)] == [None, "QUOTA_EXCEEDED", "QUOTA_EXCEEDED"]
    async with desk.database.transaction() as connection:
        await cancel(connection, first.id)
    await shift(desk, SOURCE_DAYS + 1)
    assert await expire_conversions(desk.database, desk.bucket) == 1
    assert (await intake.submit_file(owner, "b.pdf", lambda: "invoice_v1", in_pieces(other))).created
    await desk.add(owner, b"A note", full)
    await desk.check_books()


async def test_sources_and_results_go_when_their_time_is_over(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    conversion = await finished(desk, owner, sandbox, folder)
    assert await expire_conversions(desk.database, desk.bucket) == 0
    await shift(desk, 8)
    assert await expire_conversions(desk.database, desk.bucket) == 1
    async with desk.database.connection() as connection:
        assert (await find_result(connection, owner, conversion)).bytes > 0
        with pytest.raises(Expired):
            await find_result(connection, owner, conversion, "source")
    await shift(desk, 31)
    assert await expire_conversions(desk.database, desk.bucket) == 1
    async with desk.database.connection() as connection:
        archived = await show_conversion(connection, owner, conversion)
    assert archived.archived_at
    with pytest.raises(Expired):
        _ = archived.complete_record
    assert [row["kind"] for row in await desk.rows(KINDS, conversion)][-2:] == ["expired", "expired"]
    assert [info async for info in desk.bucket.list()] == []
    assert (await convert(desk, owner, PDF)).created
    await desk.check_books()


async def test_a_result_can_go_with_its_first_download(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    conversion = await finished(desk, owner, sandbox, folder)
    async with desk.database.transaction() as connection:
        await count_download(connection, conversion, expire_now=True)
    assert await expire_conversions(desk.database, desk.bucket) == 1
    async with desk.database.connection() as connection:
        shown = await show_conversion(connection, owner, conversion)
        with pytest.raises(Expired):
            await find_result(connection, owner, conversion)
    assert (shown.download_count, shown.first_downloaded_at is not None) == (1, True)
    assert [row["kind"] for row in await desk.rows(KINDS, conversion)][-2:] == ["downloaded", "expired"]


async def test_corrections_are_revisions_with_who_and_when_and_new_xml(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    conversion = await finished(desk, owner, sandbox, folder)
    user = UUID(int=7)
    await desk.rows(
        "INSERT INTO users (id, owner_id, email, password_hash) VALUES (%s, %s, 'a@b.c', 'x') RETURNING id", user, owner
    )
    corrections = Corrections(desk.database, desk.bucket, result_days=30)
    with pytest.raises(BadInput, match="is not a valid amount"):
        await corrections.correct(owner, conversion, user, [Correction("total", "12,5")])
    with pytest.raises(BadInput, match="has no field"):
        await corrections.correct(owner, conversion, user, [Correction("mood", "good")])
    wanted = [Correction("total", "13.00"), Correction("lines[1].description", "Tea"), Correction("invoice_date", None)]
    await corrections.correct(owner, conversion, user, wanted)
    async with desk.database.connection() as connection:
        made = await list_revisions(connection, owner, conversion)
        (sample,) = await training_samples(connection, owner)
        file = await find_result(connection, owner, conversion)
    assert [(one.number, one.made_by, one.user_id) for one in made] == [(1, "engine", None), (2, "person", user)]
    document = await desk.bucket.read(file.key)
    assert b">13.00</TotalAmount>" in document
    assert b"<InvoiceDate xsi:nil" in document
    assert b"Tea" in document
    assert [row[1] for row in sample["found"] if row[0] == "total"] == ["12.50"]
    assert [row[1] for row in sample["corrected"] if row[0] == "total"] == ["13.00"]
    await desk.check_books()


async def test_two_corrections_at_once_do_not_swallow_each_other(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    conversion = await finished(desk, owner, sandbox, folder)
    corrections = Corrections(desk.database, desk.bucket, result_days=30)
    tried = (corrections.correct(owner, conversion, None, [Correction("total", f"{number}.00")]) for number in range(4))
    answers = await asyncio.gather(*tried, return_exceptions=True)
    assert answers.count(None) + sum(isinstance(one, Outdated) for one in answers) == len(answers)
    assert await desk.one("SELECT count(*) FROM revisions WHERE made_by = 'person'") == answers.count(None)
    await desk.check_books()


EVIL = "name: evil_v1\nxml: E\nfields: {number: {type: text, xml: N, required: true, patterns: ['(a+)+$']}}"


async def test_a_pattern_that_does_not_end_fails_its_conversion_only_and_is_not_tried_again(
    desk: Desk, owner: UUID, folder: Path
) -> None:
    async with desk.database.transaction() as connection:
        await add_own(connection, owner, "evil.yaml", EVIL)
    page = [Words("a" * 60 + "!", 72, 100), Words("Invoice 12", 72, 120), Words("of today", 72, 140)]
    evil = await convert(desk, owner, Pdf([page]).write(), "evil_v1")
    good = await convert(desk, owner, PDF)
    async with aclosing(Sandbox()) as real, working(desk, real, folder):
        failed, fine = [await converted(desk, owner, one.id) for one in (evil, good)]
    assert (failed.status, failed.error_code) == ("failed", "SLOW_PATTERN")
    assert "number: '(a+)+$': more than 1 second of processor time" in (failed.error_message or "")
    assert fine.status == "complete"
    assert await desk.one("SELECT attempt FROM jobs WHERE id = %s", evil.id) == 1


async def add_own(connection: Connection, owner: UUID, file: str, text: str) -> None:
    await add_mapping(connection, owner, summarise(mapping_from_text(text, file)), file, text)


async def test_a_mapping_of_ones_own_is_used_and_never_changes(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    async with desk.database.transaction() as connection:
        await add_own(connection, owner, "mine.yaml", MINE)
        await add_own(connection, owner, "again.yaml", MINE)
        with pytest.raises(MappingTaken):
            await add_own(connection, owner, "mine.yaml", MINE.replace("Mine", "Other"))
    begun = await convert(desk, owner, PDF, "mine_v1")
    async with working(desk, sandbox, folder):
        found = await converted(desk, owner, begun.id)
    assert json.loads(found.record or "")["mapping"] == "mine_v1"
    with pytest.raises(OctavoError) as refused:
        await convert(desk, await desk.new_owner(), PDF, "mine_v1")
    assert refused.value.code == "UNKNOWN_MAPPING"


@pytest.mark.parametrize(("more", "code"), [("keywords: [Invoice]", None), ("keywords: [Nordlicht]", "NOT_THIS_KIND")])
@pytest.mark.parametrize("excluded", [False, True])
async def test_a_mapping_is_only_used_for_documents_with_its_keywords(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, more: str, code: str | None, excluded: bool
) -> None:
    if excluded:
        more, code = more.replace("keywords", "exclude_keywords"), None if code else "NOT_THIS_KIND"
    async with desk.database.transaction() as connection:
        await add_own(connection, owner, "mine.yaml", f"name: mine_v1\nextends: invoice_v1\n{more}\n")
    begun = await convert(desk, owner, PDF, "mine_v1")
    async with working(desk, sandbox, folder):
        found = await converted(desk, owner, begun.id)
    assert (found.status, found.error_code) == ("failed" if code else "complete", code)


async def test_a_visitors_conversions_and_mappings_become_the_persons(desk: Desk, owner: UUID) -> None:
    visitor = await desk.new_owner()
    await desk.rows("UPDATE owners SET kind = 'anonymous' WHERE id = %s RETURNING id", visitor)
    async with desk.database.transaction() as connection:
        await add_own(connection, visitor, "mine.yaml", MINE)
    theirs, twin = await convert(desk, visitor, invoice("C-3").write()), await convert(desk, visitor, PDF)
    own = await convert(desk, owner, PDF)
    await desk.rows("SELECT merge_owner(%s, %s)", visitor, owner)
    rows = await desk.rows("SELECT id, owner_id, live FROM conversions")
    assert {row["owner_id"] for row in rows} == {owner}
    assert {row["id"]: row["live"] for row in rows} == {theirs.id: True, twin.id: False, own.id: True}
    assert await desk.one("SELECT owner_id FROM mappings") == owner
