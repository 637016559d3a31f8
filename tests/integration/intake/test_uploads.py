"""Nothing exists before finalize, everything after it, and each content of an owner is one document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import pytest

from octavo.core.errors import Empty, NotFound, OctavoError, TooLarge
from octavo.intake import IntakeLimits, NewUpload
from octavo.intake.errors import (
    Duplicate,
    HashMismatch,
    NotCanonical,
    QuotaExceeded,
    SizeMismatch,
    TooManyUploads,
    UploadClosed,
    UploadIncomplete,
)
from octavo.intake.upload_rows import list_uploads, sweep_abandoned
from octavo.intake.uploads import MOST_REFUSED
from octavo.library.changes import purge_documents, restore_documents, trash_documents
from octavo.library.documents import show_document
from tests.support.library import LIMITS, Desk

TEXT = b"The quick brown fox. " * 50


async def test_a_document_is_there_after_finalize_and_not_before(desk: Desk, owner: UUID) -> None:
    ticket = await desk.intake.begin(owner, NewUpload("a.txt"), LIMITS)
    stored = await desk.intake.receive(owner, ticket.upload_id, TEXT, LIMITS)
    assert (stored.bytes, stored.sha256) == (len(TEXT), sha256(TEXT).hexdigest())
    assert await desk.rows("SELECT FROM documents") == []
    assert await desk.rows("SELECT FROM jobs") == []
    outcome = await desk.intake.finalize(owner, ticket.upload_id, LIMITS)
    assert outcome.state == "uploaded"
    assert (outcome.document_id, outcome.process_id) == (ticket.document_id, ticket.process_id)
    (document,) = await desk.rows("SELECT id, status, bytes, encode(sha256, 'hex') AS sha256 FROM documents")
    expected = {"status": "pending", "bytes": len(TEXT), "sha256": sha256(TEXT).hexdigest()}
    assert document == {"id": ticket.document_id, **expected}
    assert await desk.one("SELECT status FROM jobs WHERE id = %s", ticket.process_id) == "queued"
    await desk.check_books()


async def test_finalize_repeated_answers_the_same(desk: Desk, owner: UUID) -> None:
    first = await desk.add(owner, TEXT)
    again = await desk.intake.finalize(owner, first.upload_id, LIMITS)
    assert (again.document_id, again.process_id, again.state) == (first.document_id, first.process_id, first.state)
    assert again.duplicate
    assert not first.duplicate
    assert await desk.one("SELECT count(*) FROM jobs") == 1


async def test_the_same_file_uploaded_a_hundred_times_in_parallel_is_one_document(desk: Desk, owner: UUID) -> None:
    outcomes = await asyncio.gather(*(desk.add(owner, TEXT) for _ in range(100)))
    assert len({outcome.document_id for outcome in outcomes}) == 1
    assert sorted(outcome.state for outcome in outcomes) == ["deduplicated"] * 99 + ["uploaded"]
    assert await desk.one("SELECT count(*) FROM documents") == 1
    assert await desk.one("SELECT count(*) FROM jobs") == 1
    assert await desk.one("SELECT count(*) FROM events WHERE kind = 'deduplicated'") == 99
    await desk.check_books()


async def test_an_upload_finalized_in_parallel_creates_one_document(desk: Desk, owner: UUID) -> None:
    ticket = await desk.intake.begin(owner, NewUpload("a.txt"), LIMITS)
    await desk.intake.receive(owner, ticket.upload_id, TEXT, LIMITS)
    outcomes = await asyncio.gather(*(desk.intake.finalize(owner, ticket.upload_id, LIMITS) for _ in range(20)))
    assert {outcome.document_id for outcome in outcomes} == {ticket.document_id}
    assert [outcome.duplicate for outcome in outcomes].count(False) == 1
    assert await desk.one("SELECT count(*) FROM jobs") == 1


async def test_two_owners_never_share_a_document(desk: Desk, owner: UUID) -> None:
    other = await desk.new_owner()
    mine, theirs = await desk.add(owner, TEXT), await desk.add(other, TEXT)
    assert (mine.state, theirs.state) == ("uploaded", "uploaded")
    assert mine.document_id != theirs.document_id
    with pytest.raises(NotFound):
        await desk.intake.finalize(other, mine.upload_id, LIMITS)
    with pytest.raises(NotFound):
        await desk.intake.receive(other, mine.upload_id, TEXT, LIMITS)
    with pytest.raises(NotFound):
        await desk.intake.content(other, mine.upload_id)
    await desk.check_books()


async def test_a_pending_upload_blocks_nobody(desk: Desk, owner: UUID) -> None:
    ticket = await desk.intake.begin(owner, NewUpload("a.txt"), LIMITS)
    await desk.intake.receive(owner, ticket.upload_id, TEXT, LIMITS)
    assert (await desk.add(owner, TEXT)).state == "uploaded"
    assert (await desk.intake.finalize(owner, ticket.upload_id, LIMITS)).state == "deduplicated"
    await desk.check_books()


async def test_bytes_sent_again_replace_those_before(desk: Desk, owner: UUID) -> None:
    ticket = await desk.intake.begin(owner, NewUpload("a.txt"), LIMITS)
    await desk.intake.receive(owner, ticket.upload_id, b"wrong", LIMITS)
    await desk.intake.receive(owner, ticket.upload_id, TEXT, LIMITS)
    await desk.intake.finalize(owner, ticket.upload_id, LIMITS)
    assert await desk.one("SELECT bytes FROM documents") == len(TEXT)
    await desk.check_books()


async def test_a_transfer_that_breaks_off_leaves_the_upload_open(desk: Desk, owner: UUID) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield TEXT
        raise ConnectionResetError

    ticket = await desk.intake.begin(owner, NewUpload("a.txt"), LIMITS)
    with pytest.raises(ConnectionResetError):
        await desk.intake.receive(owner, ticket.upload_id, broken(), LIMITS)
    with pytest.raises(UploadIncomplete):
        await desk.intake.finalize(owner, ticket.upload_id, LIMITS)
    await desk.intake.receive(owner, ticket.upload_id, TEXT, LIMITS)
    assert (await desk.intake.finalize(owner, ticket.upload_id, LIMITS)).state == "uploaded"
    await desk.check_books()


# Twins -------------------------------------------------------------------------------------------------------------


async def test_a_requested_duplicate_is_a_separate_document_and_shares_the_file(desk: Desk, owner: UUID) -> None:
    first = await desk.add(owner, TEXT)
    second = await desk.add(owner, TEXT, duplicates="new")
    assert (second.state, second.duplicate_of) == ("uploaded", first.document_id)
    assert second.document_id != first.document_id
    assert await desk.one("SELECT refs FROM objects") == 2
    await desk.check_books()
    async with desk.database.transaction() as connection:
        unused = await purge_documents(connection, owner, [first.document_id])
    assert unused == []
    assert await desk.one("SELECT refs FROM objects") == 1
    async with desk.database.transaction() as connection:
        unused = await purge_documents(connection, owner, [second.document_id])
    await desk.bucket.delete(unused)
    assert await desk.rows("SELECT FROM objects") == []
    await desk.check_books()


async def test_a_duplicate_can_be_refused(desk: Desk, owner: UUID) -> None:
    first = await desk.add(owner, TEXT)
    with pytest.raises(Duplicate, match=str(first.document_id)):
        await desk.add(owner, TEXT, duplicates="reject")
    assert await desk.one("SELECT error_code FROM uploads WHERE state = 'rejected'") == "DUPLICATE"
    await desk.check_books()


async def test_a_deleted_document_gives_its_content_free(desk: Desk, owner: UUID) -> None:
    first = await desk.add(owner, TEXT)
    async with desk.database.transaction() as connection:
        await trash_documents(connection, owner, [first.document_id])
    second = await desk.add(owner, TEXT)
    assert second.state == "uploaded"
    assert second.document_id != first.document_id
    await desk.check_books()


async def test_a_restored_document_whose_content_came_again_is_its_twin(desk: Desk, owner: UUID) -> None:
    first = await desk.add(owner, TEXT)
    async with desk.database.transaction() as connection:
        await trash_documents(connection, owner, [first.document_id])
    second = await desk.add(owner, TEXT)
    async with desk.database.transaction() as connection:
        await restore_documents(connection, owner, [first.document_id])
    twin = await desk.one("SELECT duplicate_of FROM documents WHERE id = %s", first.document_id)
    assert twin == second.document_id
    assert await desk.one("SELECT count(*) FROM uploads WHERE is_canonical") == 1
    await desk.check_books()


async def test_a_restored_document_holds_its_content_again(desk: Desk, owner: UUID) -> None:
    first = await desk.add(owner, TEXT)
    async with desk.database.transaction() as connection:
        await trash_documents(connection, owner, [first.document_id])
    async with desk.database.transaction() as connection:
        await restore_documents(connection, owner, [first.document_id])
    assert (await desk.add(owner, TEXT)).document_id == first.document_id
    assert await desk.one("SELECT status FROM jobs") == "queued"
    await desk.check_books()


async def test_only_an_upload_that_a_document_is_made_from_gives_its_bytes(desk: Desk, owner: UUID) -> None:
    first, second = await desk.add(owner, TEXT), await desk.add(owner, TEXT)
    twin = await desk.add(owner, TEXT, duplicates="new")
    for upload in (first.upload_id, twin.upload_id):
        stream = await desk.intake.content(owner, upload)
        assert b"".join([chunk async for chunk in stream]) == TEXT
    with pytest.raises(NotCanonical):
        await desk.intake.content(owner, second.upload_id)


# Refusals ----------------------------------------------------------------------------------------------------------

REFUSALS: dict[str, tuple[type[OctavoError], bytes, dict[str, Any]]] = {
    "an empty file": (Empty, b"", {}),
    "a file that is too large": (TooLarge, b"x" * (LIMITS.upload_bytes + 1), {}),
    "a file of another size": (SizeMismatch, TEXT, {"bytes": 7}),
    "another file": (HashMismatch, TEXT, {"sha256": "0" * 64}),
    "a file announced as too large": (TooLarge, TEXT, {"bytes": LIMITS.upload_bytes + 1}),
}


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_refused_upload_leaves_one_row_that_says_why(desk: Desk, owner: UUID, refusal: str) -> None:
    error, body, claims = REFUSALS[refusal]
    with pytest.raises(error) as raised:
        await desk.add(owner, body, **claims)
    (row,) = await desk.rows("SELECT state, error_code, error_message, process_id FROM uploads")
    assert (row["state"], row["error_code"], row["error_message"]) == ("rejected", error.code, raised.value.line)
    (event,) = await desk.rows("SELECT kind, process_id, detail FROM events")
    assert (event["kind"], event["process_id"]) == ("rejected", row["process_id"])
    assert event["detail"]["error"]["code"] == error.code
    assert await desk.rows("SELECT FROM documents") == []
    assert [info async for info in desk.bucket.list()] == []
    await desk.check_books()


async def test_refused_uploads_are_listed_with_their_reason_to_their_owner(desk: Desk, owner: UUID) -> None:
    for number in range(3):
        with pytest.raises(Empty):
            await desk.intake.take(owner, NewUpload(f"empty {number}.pdf"), b"", LIMITS)
    async with desk.database.connection() as connection:
        first = await list_uploads(connection, owner, "rejected", limit=2)
        rest = await list_uploads(connection, owner, "rejected", cursor=first.next_cursor, limit=2)
        other = await list_uploads(connection, await desk.new_owner(), "rejected", limit=2)
    assert [one.filename for one in (*first.items, *rest.items)] == [f"empty {number}.pdf" for number in (2, 1, 0)]
    assert {one.error.code for one in first.items if one.error} == {"EMPTY"}
    assert (rest.next_cursor, other.items) == (None, [])


async def test_only_the_newest_refused_uploads_are_kept(desk: Desk, owner: UUID) -> None:
    await desk.rows(
        """INSERT INTO uploads (id, owner_id, document_id, process_id, state, duplicates, filename, content_type,
                                source_type, error_code, error_message, created_at)
           SELECT gen_random_uuid(), %s, gen_random_uuid(), gen_random_uuid(), 'rejected', 'reuse', n::text, '', 'file',
                  'EMPTY', 'Empty.', clock_timestamp() - make_interval(days => n)
           FROM generate_series(1, %s) AS n RETURNING id""",
        owner,
        MOST_REFUSED + 20,
    )
    with pytest.raises(Empty):
        await desk.intake.take(owner, NewUpload("newest.pdf"), b"", LIMITS)
    assert await desk.one("SELECT count(*) FROM uploads") == MOST_REFUSED
    assert await desk.one("SELECT count(*) FROM uploads WHERE filename = 'newest.pdf'") == 1
    assert await desk.one("SELECT max(filename::int) FROM uploads WHERE filename <> 'newest.pdf'") == MOST_REFUSED - 1


async def test_a_full_quota_refuses_and_leaves_nothing(desk: Desk, owner: UUID) -> None:
    narrow = IntakeLimits(upload_bytes=1 << 20, stored_bytes=len(TEXT) + 10, concurrent=10)
    await desk.add(owner, TEXT, narrow)
    with pytest.raises(QuotaExceeded):
        await desk.add(owner, TEXT + b"more", narrow)
    assert (await desk.add(owner, TEXT, narrow)).state == "deduplicated"
    assert await desk.one("SELECT bytes FROM owner_usage") == len(TEXT)
    await desk.check_books()


async def test_too_many_open_uploads_have_to_wait(desk: Desk, owner: UUID) -> None:
    few = IntakeLimits(upload_bytes=1 << 20, stored_bytes=None, concurrent=2)
    for _ in range(2):
        await desk.intake.begin(owner, NewUpload("a.txt"), few)
    with pytest.raises(TooManyUploads) as raised:
        await desk.intake.begin(owner, NewUpload("a.txt"), few)
    assert (raised.value.retry_after_seconds or 0) > 800
    assert (await desk.intake.begin(await desk.new_owner(), NewUpload("a.txt"), few)).put_url


async def test_an_upload_that_ended_takes_nothing_more(desk: Desk, owner: UUID) -> None:
    done = await desk.add(owner, TEXT)
    with pytest.raises(UploadClosed):
        await desk.intake.receive(owner, done.upload_id, b"other", LIMITS)
    with pytest.raises(Empty):
        await desk.add(owner, b"")
    refused = await desk.one("SELECT id FROM uploads WHERE state = 'rejected'")
    with pytest.raises(UploadClosed):
        await desk.intake.finalize(owner, refused, LIMITS)
    with pytest.raises(NotFound):
        await desk.intake.finalize(owner, uuid4(), LIMITS)
    await desk.check_books()


async def test_an_abandoned_upload_ends_with_an_event(desk: Desk, owner: UUID) -> None:
    ticket = await desk.intake.begin(owner, NewUpload("a.txt"), LIMITS)
    assert await sweep_abandoned(desk.database, desk.bucket, 0) == 1
    (event,) = await desk.rows("SELECT kind, process_id, owner_id, detail FROM events")
    assert (event["kind"], event["process_id"], event["owner_id"]) == ("abandoned", ticket.process_id, owner)
    assert event["detail"]["error"]["code"] == "ABANDONED"
    await desk.check_books()


async def test_the_name_of_the_second_file_is_kept(desk: Desk, owner: UUID) -> None:
    for name in ("first.txt", "second.txt", "second.txt", "first.txt"):
        made = await desk.intake.take(owner, NewUpload(name), TEXT, LIMITS)
    async with desk.database.connection() as connection:
        document = await show_document(connection, owner, made.document_id)
        (named, *_) = (await list_uploads(connection, owner, "deduplicated", limit=10)).items
    assert (document.filename, document.also_named) == ("first.txt", ["second.txt"])
    assert (named.filename, named.document_id) == ("first.txt", document.id)
