"""What a mail server sends is limited."""

from __future__ import annotations

import asyncio

import pytest

from octavo.core.errors import NetworkFailed
from octavo.intake.sources import imap
from octavo.intake.sources.imap import Credentials, Mailbox, ServerAddress


async def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imap, "MOST_ANSWER", 100_000)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        await reader.readline()
        try:
            while True:
                writer.write(b"* 1 EXISTS\r\n" * 1000)
                await writer.drain()
        except OSError:
            writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        place = ServerAddress("127.0.0.1", server.sockets[0].getsockname()[1], ["127.0.0.1"], None)
        with pytest.raises(NetworkFailed):
            await asyncio.to_thread(Mailbox, place, Credentials("ann", "secret"), "INBOX", writable=False)
