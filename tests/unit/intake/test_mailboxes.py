"""Mails are read to their end, although servers count differently."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest

from octavo.core.settings import Settings
from octavo.intake.errors import BadSource, MailGone
from octavo.intake.sources.mailboxes import MailboxReader
from octavo.intake.sources.reading import Connections, SeenFile, Source

MAIL = b"Subject: Ferry\r\n\r\nThe ferry was on time.\r\n"


class ShortParts(MailboxReader):
    """A server that sends ten bytes at a time, and refuses to read after the end."""

    fails_at = len(MAIL)
    failure: type[Exception] = MailGone

    async def _part(self, file: SeenFile, offset: int) -> bytes:
        if offset >= self.fails_at:
            raise self.failure
        return MAIL[offset : offset + 10]


def reader(folder: Path) -> ShortParts:
    nobody = cast("Any", None)
    source = Source(uuid4(), uuid4(), "imap", "imaps://mail.example.org/INBOX")
    return ShortParts(source, Connections(Settings(data_dir=folder), nobody, nobody))


async def test_a_mail_in_short_parts_is_read_to_its_end(tmp_path: Path) -> None:
    for size in (len(MAIL), len(MAIL) + 7):  # some servers only estimate it
        read = await reader(tmp_path).read(SeenFile("1/1", size))
        assert b"".join([part async for part in read.body]) == MAIL


async def test_a_mailbox_that_is_lost_in_between_does_not_shorten_a_mail(tmp_path: Path) -> None:
    lost = reader(tmp_path)
    lost.fails_at, lost.failure = 20, BadSource
    read = await lost.read(SeenFile("1/1", len(MAIL)))
    with pytest.raises(BadSource):
        _ = [part async for part in read.body]
