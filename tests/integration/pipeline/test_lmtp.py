"""Mails that a mail server delivers by LMTP are added before they are accepted."""

from __future__ import annotations

import smtplib
from asyncio import to_thread
from collections.abc import AsyncGenerator
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path
from typing import NoReturn
from uuid import UUID

import pytest

from octavo.core.errors import BadInput
from octavo.core.settings import Settings, parse_listen
from octavo.extract.detect import detect
from octavo.intake import Intake
from octavo.intake.errors import BadSource
from octavo.intake.sources.definitions import pause_source
from octavo.intake.sources.places import SourcePlan
from octavo.ops.lmtp import MailIntake, receive
from octavo.ops.ports import listen, listen_for_mails
from tests.support.imap import mail
from tests.support.library import LIMITS, Desk
from tests.support.processes import PATIENCE_SECONDS
from tests.support.sources import add_watched


@pytest.fixture
async def port(desk: Desk) -> AsyncGenerator[int]:
    handler = MailIntake(desk.database, Intake(desk.database, desk.bucket, detect), replace(LIMITS, stored_bytes=4000))
    async with await receive(handler, listen("127.0.0.1", 0), 100_000) as server:
        yield server.sockets[0].getsockname()[1]


def deliver(port: int, to: list[str], content: bytes) -> dict[str, tuple[int, bytes]]:
    """Deliver a mail. Returns the recipients that were refused."""
    with smtplib.LMTP("127.0.0.1", port, timeout=PATIENCE_SECONDS) as server:
        try:
            return server.sendmail("ann@example.org", to, content)
        except smtplib.SMTPRecipientsRefused as error:
            return error.recipients
        except smtplib.SMTPDataError as error:
            return {to[0]: (error.smtp_code, b"")}


async def test_a_delivered_mail_is_added_once(desk: Desk, owner: UUID, folder: Path, port: int) -> None:
    settings = Settings(data_dir=folder)
    watched = await add_watched(desk, owner, settings, SourcePlan("lmtp", "Scans"))
    with pytest.raises(BadSource):
        await add_watched(desk, await desk.new_owner(), settings, SourcePlan("lmtp", "scans@example.org"))
    content = mail(1)
    for address in ("scans@example.org", "SCANS+bills@example.org"):  # as if the first answer had been lost
        assert await to_thread(deliver, port, [address], content) == {}
    (found,) = await watched.documents()
    assert (found.filename, found.source_type) == ("Ferry report 1.eml", "eml")
    counts = (await watched.view()).counts
    assert (counts.added, counts.known) == (1, 1)
    await desk.check_books()


async def test_what_cannot_be_added_is_refused_with_a_reason(desk: Desk, owner: UUID, folder: Path, port: int) -> None:
    watched = await add_watched(desk, owner, Settings(data_dir=folder), SourcePlan("lmtp", "scans"))
    refused = await to_thread(deliver, port, ["nobody@example.org"], mail(1))
    assert refused["nobody@example.org"][0] == 550
    refused = await to_thread(deliver, port, ["scans@example.org", "scans@example.com"], mail(1))
    assert [(name, answer[0]) for name, answer in refused.items()] == [("scans@example.com", 452)]
    refused = await to_thread(deliver, port, ["scans@example.org"], mail(2, words=200))
    assert refused["scans@example.org"][0] == 452  # the quota
    async with desk.database.transaction() as connection:
        await pause_source(connection, owner, watched.source, paused=True)
    refused = await to_thread(deliver, port, ["scans@example.org"], mail(3))
    assert refused["scans@example.org"][0] == 450
    assert len(await watched.documents()) == 1


async def test_a_mail_is_postponed_after_an_unexpected_error(desk: Desk, owner: UUID, folder: Path) -> None:
    await add_watched(desk, owner, Settings(data_dir=folder), SourcePlan("lmtp", "scans"))

    def full(*_: object) -> NoReturn:
        raise OSError(ENOSPC, "No space left on device")

    handler = MailIntake(desk.database, Intake(desk.database, desk.bucket, full), LIMITS)
    async with await receive(handler, listen("127.0.0.1", 0), 100_000) as server:
        refused = await to_thread(deliver, server.sockets[0].getsockname()[1], ["scans@example.org"], mail(1))
    assert refused["scans@example.org"][0] == 451


def test_the_place_to_listen_is_read() -> None:
    assert (parse_listen("127.0.0.1:24"), parse_listen("[::1]:8024")) == (("127.0.0.1", 24), ("::1", 8024))
    for wrong in ("8024", "host:", "host:x", "host:99999"):
        with pytest.raises(BadInput):
            listen_for_mails(wrong)
