"""With S3 the bytes go past us, so nothing is believed before it was copied, measured and checked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from octavo.core.errors import Empty, OctavoError, TooLarge
from octavo.intake import IntakeLimits, NewUpload, Ticket
from octavo.intake.errors import HashMismatch, SizeMismatch, UploadIncomplete
from octavo.intake.upload_rows import sweep_abandoned
from tests.support.library import LIMITS, Desk, open_desk
from tests.support.s3 import S3Server, open_s3

TEXT = b"Bytes that went straight to the bucket. " * 30


@pytest.fixture
async def desk(database_info: str, s3_server: S3Server) -> AsyncIterator[Desk]:
    async with (
        aclosing(open_s3(s3_server, f"test-{uuid4().hex}")) as bucket,
        open_desk(database_info, bucket) as desk,
    ):
        yield desk


async def send(ticket: Ticket, body: bytes) -> None:
    async with httpx.AsyncClient() as client:
        (await client.put(ticket.put_url, content=body)).raise_for_status()


async def test_bytes_sent_directly_to_storage_are_measured_and_stored(desk: Desk, owner: UUID) -> None:
    ticket = await desk.intake.begin(owner, NewUpload("a.txt", bytes=len(TEXT)), LIMITS)
    assert ticket.put_url.startswith("http")
    await send(ticket, TEXT)
    outcome = await desk.intake.finalize(owner, ticket.upload_id, LIMITS)
    assert outcome.state == "uploaded"
    (document,) = await desk.rows("SELECT bytes, encode(sha256, 'hex') AS sha256 FROM documents")
    assert document == {"bytes": len(TEXT), "sha256": sha256(TEXT).hexdigest()}
    await desk.check_books()


async def test_a_link_that_is_used_again_changes_nothing(desk: Desk, owner: UUID) -> None:
    ticket = await desk.intake.begin(owner, NewUpload("a.txt"), LIMITS)
    await send(ticket, TEXT)
    await desk.intake.finalize(owner, ticket.upload_id, LIMITS)
    await send(ticket, b"something else")
    stream = await desk.intake.content(owner, ticket.upload_id)
    assert b"".join([chunk async for chunk in stream]) == TEXT


async def test_a_finalize_before_the_bytes_can_be_repeated_after_them(desk: Desk, owner: UUID) -> None:
    ticket = await desk.intake.begin(owner, NewUpload("a.txt"), LIMITS)
    with pytest.raises(UploadIncomplete):
        await desk.intake.finalize(owner, ticket.upload_id, LIMITS)
    await send(ticket, TEXT)
    assert (await desk.intake.finalize(owner, ticket.upload_id, LIMITS)).state == "uploaded"


REFUSALS: dict[str, tuple[type[OctavoError], bytes, dict[str, Any]]] = {
    "an empty file": (Empty, b"", {}),
    "a file that is too large": (TooLarge, b"x" * 2000, {}),
    "a file of another size": (SizeMismatch, TEXT[:100], {"bytes": 7}),
    "another file": (HashMismatch, TEXT[:100], {"sha256": "0" * 64}),
}


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_refused_upload_leaves_no_bytes(desk: Desk, owner: UUID, refusal: str) -> None:
    error, body, claims = REFUSALS[refusal]
    narrow = IntakeLimits(upload_bytes=1500, stored_bytes=None, concurrent=5)
    ticket = await desk.intake.begin(owner, NewUpload("a.txt", **claims), narrow)
    await send(ticket, body)
    with pytest.raises(error):
        await desk.intake.finalize(owner, ticket.upload_id, narrow)
    assert await desk.one("SELECT error_code FROM uploads") == error.code
    assert [info.key async for info in desk.bucket.list()] == []


async def test_an_abandoned_upload_leaves_nothing_after_the_sweep(desk: Desk, owner: UUID) -> None:
    ticket = await desk.intake.begin(owner, NewUpload("a.txt"), LIMITS)
    await send(ticket, TEXT)
    assert await sweep_abandoned(desk.database, desk.bucket, 0) == 1
    assert [info.key async for info in desk.bucket.list()] == []
    assert await desk.one("SELECT error_code FROM uploads") == "ABANDONED"
