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
    Batch,
    count_download,
    delete_conversion,
    expire_conversions,
    find_result,
    kept_history,
    list_batches,
    list_conversions,
    list_revisions,
    show_conversion,
    training_samples,
)
from octavo.convert.corrections import Correction, Corrections, RowChange
from octavo.convert.errors import Expired, MappingTaken, Outdated, ShippedMapping, UnknownMapping
from octavo.convert.mappings.shipped_mappings import mapping_from_text, summarise
from octavo.convert.mappings.stored_mappings import add_mapping, delete_mapping, find_mapping
from octavo.convert.submissions import ConversionIntake, begin_batch
from octavo.core.errors import BadInput, NotFound, OctavoError
from octavo.database import Connection, load_queries
from octavo.deliver.deliveries import relay_once
from octavo.deliver.subscribers import list_notifications
from octavo.intake.errors import QuotaExceeded
from octavo.jobs.queue import cancel
from octavo.library.documents import Filters
from octavo.library.errors import NotReady
from octavo.library.facts import list_facts, say_facts
from octavo.sandbox import Sandbox
from tests.support.conversions import MOST_BYTES, SOURCE_DAYS, convert, converted, in_pieces, invoice
from tests.support.library import LIMITS, Desk
from tests.support.pdf import Pdf, Words
from tests.support.processes import PATIENCE_SECONDS
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


async def test_a_mistyped_mapping_is_refused_before_a_job_exists(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "in.pdf", PDF)
    intake = ConversionIntake(desk.database, desk.bucket, MOST_BYTES, SOURCE_DAYS)
    for refuse in (convert(desk, owner, PDF, "no_such_v9"), intake.submit_document(owner, document, "no_such_v9")):
        with pytest.raises(UnknownMapping, match="invoice_v1"):
            await refuse
    assert await desk.rows(JOBS) == []
    await desk.check_books()


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
        values = dict.fromkeys(("id_part", "status", "batch", "document", "before")) | {"owner": owner, "limit": 50}
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


async def test_a_batch_is_queued_in_parts_and_reported_once(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One document was converted before, one is not a PDF, one is not an invoice, and one is a stranger's."""
    monkeypatch.setattr("octavo.convert.submissions.BATCH_DOCUMENTS", 2)
    bodies = [invoice(f"A-{number}").write() for number in range(3)]
    documents = [await add(desk, owner, f"{number}.pdf", body) for number, body in enumerate(bodies)]
    documents.append(await add(desk, owner, "letter.pdf", Pdf([[Words("Dear Sir, thank you for the tea.")]]).write()))
    documents.append(await add(desk, owner, "note.txt", b"Invoice no: 1"))
    documents.append(await add(desk, await desk.new_owner(), "b.pdf", PDF))
    await convert(desk, owner, bodies[0])
    async with desk.database.transaction() as connection:
        mapping = await find_mapping(connection, owner, "invoice_v1")
        batch = await begin_batch(connection, owner, mapping, documents=documents)
        every = await begin_batch(
            connection, owner, await find_mapping(connection, owner, "receipt_v1"), filters=Filters()
        )
    async with working(desk, sandbox, folder):
        found = await until_batch_ends(desk, owner, batch)
        assert (await until_batch_ends(desk, owner, every)).total == 4
    assert (found.total, found.ended, found.existing, found.skipped) == (3, 3, 1, 2)
    (told,) = await desk.rows("SELECT detail FROM events WHERE kind = 'conversion.batch' AND process_id = %s", batch)
    assert told["detail"]["reason"] == "2 converted · 1 failed · 1 already converted · 2 not PDF"
    while await relay_once(desk.database):
        pass
    async with desk.database.connection() as connection:
        notices = (await list_notifications(connection, owner, unread=False, cursor=None, limit=100)).items
    ours = [one for one in notices if one.type.startswith("conversion.")]
    assert sorted(one.type for one in ours) == ["conversion.batch", "conversion.batch", "conversion.completed"]
    sentences = {one.process_id: (one.sentence, one.link) for one in ours}
    reason = "A batch of conversions is done: 2 converted · 1 failed · 1 already converted · 2 not PDF."
    assert sentences[batch] == (reason, f"/conversions?batch={batch}")
    await desk.check_books()


async def until_batch_ends(desk: Desk, owner: UUID, batch: UUID) -> Batch:
    async with asyncio.timeout(PATIENCE_SECONDS), desk.database.connection() as connection:
        while not (found := (await list_batches(connection, owner, batch))[0]).completed_at:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return found


async def test_corrections_outlive_the_conversion_and_are_used_when_the_file_is_converted_again(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    first = await finished(desk, owner, sandbox, folder)
    corrections = Corrections(desk.database, desk.bucket, result_days=30)
    tea = RowChange("lines", "add", values={"description": "Tea", "amount": "12.50"})
    wanted = [Correction("invoice_number", "A-18"), Correction("due_date", "2024-09-15")]
    await corrections.correct(owner, first, None, wanted, rows=[tea], person="Visitor")
    await shift(desk, 40)
    assert await expire_conversions(desk.database, desk.bucket) == 1
    second = await finished(desk, owner, sandbox, folder)
    assert second != first
    async with desk.database.connection() as connection:
        made = await list_revisions(connection, owner, second)
        samples = await training_samples(connection, owner)
        history = await kept_history(connection, owner, second)
    assert [(one.made_by, one.person) for one in made] == [("engine", None), ("person", "Visitor")]
    values = {row[0]: row for row in json.loads(made[1].record)["values"]}
    assert [values[name][1] for name in ("invoice_number", "due_date", "description")] == ["A-18", "2024-09-15", "Tea"]
    assert (values["invoice_number"][7], values["invoice_number"][-2]) == ("confirmed", "Visitor")
    assert [one["conversion"] for one in samples] == [str(first), str(second)]
    assert [one["changes"][0] for one in history] == [
        {"name": "invoice_number", "before": "A-17", "after": "A-18"},
        {"carried": True},
    ]
    await shift(desk, 500)
    await expire_conversions(desk.database, desk.bucket)
    async with desk.database.connection() as connection:
        assert await training_samples(connection, owner) == []
    await desk.check_books()


async def test_a_deleted_conversion_leaves_its_document_and_a_deleted_mapping_its_conversions(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    document = await add(desk, owner, "in.pdf", PDF)
    async with desk.database.transaction() as connection:
        await add_own(connection, owner, "mine.yaml", MINE)
    mine = await convert(desk, owner, PDF, "mine_v1")  # shares the file of the document
    async with desk.database.transaction() as connection:
        await delete_mapping(connection, owner, "mine_v1")
        for name, error in (("mine_v1", NotFound), ("invoice_v1", ShippedMapping)):
            with pytest.raises(error):
                await delete_mapping(connection, owner, name)
    async with working(desk, sandbox, folder):
        found = await converted(desk, owner, mine.id)
    assert (found.status, found.document_id, found.source_expires_at) == ("complete", document, None)
    waiting = await convert(desk, owner, PDF, "receipt_v1")
    for one in (mine.id, waiting.id):
        async with desk.database.transaction() as connection:
            with pytest.raises(NotFound):
                await delete_conversion(connection, await desk.new_owner(), one)
            keys = await delete_conversion(connection, owner, one)
        await desk.bucket.delete(keys)
    assert await desk.one("SELECT count(*) FROM conversions") == 0
    assert await desk.one("SELECT count(*) FROM mapping_texts") == 0
    assert await desk.one("SELECT count(*) FROM documents") == 1
    await desk.check_books()


async def test_fields_are_facts_of_the_document_and_facts_of_a_person_are_used(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    document = await add(desk, owner, "in.pdf", PDF)
    intake = ConversionIntake(desk.database, desk.bucket, MOST_BYTES, SOURCE_DAYS)
    begun = await intake.submit_document(owner, document, "invoice_v1")
    async with working(desk, sandbox, folder):
        await converted(desk, owner, begun.id)
    corrections = Corrections(desk.database, desk.bucket, result_days=30)
    await corrections.correct(owner, begun.id, None, [Correction("invoice_number", "A-99")])
    async with desk.database.transaction() as connection:
        facts = {one.name: one for one in await list_facts(connection, owner, document)}
        assert (facts["amount"].value, facts["number"].value) == ("12.50", "A-99")
        assert (facts["number"].source, facts["number"].status) == ("person", "confirmed")
        assert await desk.one("SELECT count(*) FROM facts WHERE made_by = 'mapping:invoice_v1' AND source = 'mapping'")
        await say_facts(connection, [document], {"sender": "Tea Ltd"})
        await add_own(connection, owner, "mine.yaml", MINE)
    later = await intake.submit_document(owner, document, "mine_v1")
    async with working(desk, sandbox, folder):
        found = await converted(desk, owner, later.id)
    values = {row[0]: row for row in json.loads(found.record or "")["values"]}
    assert [(values[name][1], values[name][7]) for name in ("seller", "invoice_number")] == [
        ("Tea Ltd", "confirmed"),
        ("A-99", "confirmed"),
    ]
