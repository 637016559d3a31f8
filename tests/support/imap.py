"""A real IMAP server (pymap), and a line to it that can be cut and that knows OAuth."""

from __future__ import annotations

import asyncio
import base64
import imaplib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from octavo.core.types import pkce_challenge
from tests.support.instance import free_port
from tests.support.processes import PATIENCE_SECONDS
from tests.support.s3 import DIE_WITH_PARENT

USER, PASSWORD = "demouser", "demopass"


@dataclass(frozen=True, slots=True)
class MailServer:
    """The server on the loopback address, with one user."""

    port: int

    def connect(self) -> imaplib.IMAP4:
        connection = imaplib.IMAP4("127.0.0.1", self.port, PATIENCE_SECONDS)
        connection.login(USER, PASSWORD)
        return connection

    def fill(self, name: str, mails: Sequence[bytes]) -> None:
        """Put mails into a mailbox, which is created if necessary."""
        with self.connect() as connection:
            connection.create(f'"{name}"')
            for mail in mails:
                status, answer = connection.append(f'"{name}"', "", "", mail)
                assert status == "OK", answer

    def count(self, name: str, *criteria: str) -> int:
        """The number of mails in a mailbox."""
        with self.connect() as connection:
            status, _ = connection.select(f'"{name}"', readonly=True)
            assert status == "OK"
            return len(connection.search(None, *(criteria or ("ALL",)))[1][0].split())


def mail(number: int, *, sender: str = "ann@example.org", attachments: int = 1, words: int = 30) -> bytes:
    """A mail with text files as attachments."""
    message = EmailMessage()
    message["From"], message["To"] = f"Ann <{sender}>", "archive@example.org"
    message["Subject"], message["Message-ID"] = f"Ferry report {number}", f"<{number}@example.org>"
    message.set_content(f"Report {number} of the harbour. " + "The ferry was on time. " * words)
    for part in range(attachments):
        text = f"Table {number}.{part}: {number * 7 + part} passengers on pier {part}.\n"
        message.add_attachment(text, filename=f"table-{number}-{part}.txt")
    return message.as_bytes(policy=message.policy.clone(linesep="\r\n"))


@contextmanager
def running_mail_server() -> Generator[MailServer]:
    server = MailServer(free_port())
    pymap = str(Path(sys.executable).parent / "pymap")
    own = ["--no-service", "admin", "--host", "127.0.0.1", "--port", str(server.port), "--no-tls"]
    command = [sys.executable, "-c", DIE_WITH_PARENT, str(os.getpid()), pymap, *own, "dict", "--demo-data"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError, imaplib.IMAP4.error):
                server.connect().logout()
                break
            time.sleep(0.05)
        yield server
    finally:
        process.kill()
        process.wait()


@dataclass(slots=True)
class MailLine:
    """A line to the server. It is cut whenever the server has sent the next number of bytes in `cuts`, all together."""

    server: MailServer
    port: int = 0
    cuts: list[int] = field(default_factory=list[int])
    tokens: set[str] = field(default_factory=set[str])
    passed: int = 0
    cut: int = 0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", self.server.port)
        try:
            await asyncio.gather(self._requests(reader, there[1], writer), self._answers(there[0], writer))
        except (OSError, asyncio.IncompleteReadError, EOFError):
            pass
        finally:
            writer.close()
            there[1].close()

    async def _requests(
        self, reader: asyncio.StreamReader, there: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        while line := await reader.readline():
            tag, _, rest = line.partition(b" ")
            if rest.strip().upper() == b"AUTHENTICATE XOAUTH2":  # which the server does not know
                back.write(b"+ \r\n")
                if not self._is_known(base64.b64decode(await reader.readline())):
                    back.write(b"+ eyJzdGF0dXMiOiI0MDAifQ==\r\n")
                    await reader.readline()
                    back.write(tag + b" NO refused\r\n")
                    continue
                line = tag + f" LOGIN {USER} {PASSWORD}\r\n".encode()
            there.write(line)
            await there.drain()
        raise EOFError

    def _is_known(self, given: bytes) -> bool:
        return any(given == f"user={USER}\1auth=Bearer {token}\1\1".encode() for token in self.tokens)

    async def _answers(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while block := await there.read(min(4096, self.cuts[0] - self.passed) if self.cuts else 4096):
            writer.write(block)
            await writer.drain()
            self.passed += len(block)
            if self.cuts and self.passed >= self.cuts[0]:
                del self.cuts[0]
                self.cut += 1
                break
        raise EOFError


@asynccontextmanager
async def line_to(server: MailServer) -> AsyncGenerator[MailLine]:
    line = MailLine(server)
    listener = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    line.port = listener.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        listener.close()


@dataclass(slots=True)
class TokenServer:
    """Gives a new access token, which the line then knows, and a new refresh token."""

    line: MailLine
    port: int = 0
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    refuses: bool = False

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        form = dict(parse_qsl((await reader.readexactly(length)).decode()))
        assert form.pop("grant_type") == "refresh_token"
        self.asked.append(form)
        token = f"token-{len(self.asked)}"
        self.line.tokens.add(token)
        body = json.dumps({"access_token": token, "expires_in": 3600, "refresh_token": "second"}).encode()
        status = b"400 Bad Request" if self.refuses else b"200 OK"
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body)) + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def token_server(line: MailLine) -> AsyncGenerator[TokenServer]:
    server = TokenServer(line)
    listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()


@dataclass(slots=True)
class ConsentServer:
    """A provider on a real socket: it gives codes on its page, and exchanges each code once, with PKCE checked."""

    port: int = 0
    codes: dict[str, str] = field(default_factory=dict[str, str])
    exchanged: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    given: int = 0
    has_refresh_token: bool = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def allow(self, address: str) -> dict[str, str]:
        """Allow access as a person does on the page of the provider. Returns the query with which they come back."""
        query = dict(parse_qsl(urlsplit(address).query))
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        self.given += 1
        code = f"code-{self.given}"
        self.codes[code] = query["code_challenge"]
        return {"state": query["state"], "code": code}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        form = dict(parse_qsl((await reader.readexactly(length)).decode()))
        self.exchanged.append(form)
        challenge = self.codes.pop(form.get("code", ""), None)
        is_right = form["grant_type"] == "authorization_code" and challenge == pkce_challenge(form["code_verifier"])
        token = {"access_token": "a", "expires_in": 3600} | ({"refresh_token": "r-1"} if self.has_refresh_token else {})
        body = json.dumps(token if is_right else {"error": "invalid_grant"}).encode()
        status = b"200 OK" if is_right else b"400 Bad Request"
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body)) + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def consent_server() -> AsyncGenerator[ConsentServer]:
    server = ConsentServer()
    listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
