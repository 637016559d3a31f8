"""Subscribers, the lines before them, and receivers on real sockets that answer as a test tells them to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP as MAIL_POLICY
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID, uuid4

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from standardwebhooks.webhooks import Webhook

from octavo.core.settings import Settings
from octavo.database import Database
from octavo.deliver.channels import new_secret
from octavo.deliver.deliveries import relay, relay_once
from octavo.fetch import GuardedClient
from octavo.jobs.kinds import Kinds
from octavo.jobs.worker import Worker
from octavo.jobs.worker_state import WorkerLimits
from octavo.pipeline import Tools, outgoing
from octavo.storage import open_bucket
from tests.support.engine import Engine
from tests.support.instance import free_port
from tests.support.processing import OpenSandbox

EVERYTHING = ["job.created", "job.processing", "job.stage", "job.retry", "job.completed", "job.failed"]
SUBSCRIBE = """
    INSERT INTO subscribers (id, owner_id, channel, address, secret, events, everybodys)
    VALUES (%s, %s, %s, %s, %s, %s, %s)"""
LINE = """
    SELECT o.event_id, o.type, o.job_id, o.ended, e.kind FROM outgoing o JOIN events e ON e.id = o.event_id
    WHERE o.subscriber_id = %s ORDER BY o.place"""

UNREAD = "SELECT EXISTS (SELECT FROM events, relay WHERE (events.epoch, events.id) > (relay.epoch, relay.id))"
# Quiet workers are woken, to check the clock.
SKIP_WAITS = """
    WITH due AS (SELECT min(run_after) AS at FROM jobs WHERE status = 'queued'),
    moved AS (
        UPDATE engine_clock SET shift = shift + due.at - engine_now() FROM due
        WHERE due.at > engine_now() RETURNING 1)
    SELECT pg_notify('octavo_jobs', '') FROM moved"""
# Only while nobody works, who would lose a lease by it.
SKIP_WAITS_AT_REST = SKIP_WAITS.replace(
    "RETURNING", "AND NOT EXISTS (SELECT FROM jobs WHERE status = 'processing') RETURNING"
)


@dataclass(frozen=True, slots=True)
class PostOffice:
    """The relay and what stands in line behind it."""

    engine: Engine
    database: Database

    def subscribe(
        self,
        owner: UUID,
        address: str = "https://example.org/hook",
        events: Iterable[str] = EVERYTHING,
        *,
        channel: str = "webhook",
        everybodys: bool = False,
    ) -> UUID:
        secret = new_secret() if channel == "webhook" else None
        values = (subscriber := uuid4(), owner, channel, address, secret, list(events), everybodys)
        self.engine.run(SUBSCRIBE, *values)
        return subscriber

    def secret(self, subscriber: UUID) -> str:
        return self.engine.one("SELECT secret FROM subscribers WHERE id = %s", subscriber)

    def line(self, subscriber: UUID) -> list[dict[str, Any]]:
        return self.engine.rows(LINE, subscriber)

    async def relay(self, batch: int = 1000) -> None:
        """Until there is nothing to do: the events of the jobs that it makes are read too.

        An event is read when every transaction that was open beside it is over, whoever's on this server it is.
        """
        deadline = time.monotonic() + 20
        while await relay_once(self.database, batch) or self.engine.one(UNREAD):
            assert time.monotonic() < deadline, "an event stays unread"

    async def until(self, condition: Callable[[], object], what: str, seconds: float = 20) -> None:
        """Wait for a worker; what backs off is due at once."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
            self.engine.run(SKIP_WAITS)
            await asyncio.sleep(0.01)

    async def until_delivered(self) -> None:
        """Until nothing is left to be sent."""
        await self.relay()

        def nothing_left() -> bool:
            busy = "SELECT count(*) FROM jobs WHERE kind = 'deliver' AND status IN ('queued', 'processing')"
            return not self.engine.one("SELECT count(*) FROM outgoing") and not self.engine.one(busy)

        await self.until(nothing_left, "everything is delivered")

    def tries(self, subscriber: UUID) -> list[tuple[str, int | None, str | None]]:
        found = "SELECT status, answer, error_code FROM deliveries WHERE subscriber_id = %s ORDER BY at, id"
        return [(row["status"], row["answer"], row["error_code"]) for row in self.engine.rows(found, subscriber)]


# Receivers ---------------------------------------------------------------------------------------------------------

Answer = int | str | tuple[int, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Received:
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    def verify(self, secret: str) -> None:
        """By the reference library of the standard."""
        Webhook(secret).verify(self.body, self.headers)


@dataclass(slots=True)
class Receiver:
    """Answers by a script, one entry for each request, and 200 after its end.

    An entry is a status, a status with headers, `hang` (no answer until the receiver ends) or `cut` (the connection
    breaks in the middle of an answer that began as a success).
    """

    port: int
    script: list[Answer]
    received: list[Received] = field(default_factory=list[Received])
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def allowed(self) -> str:
        return f"127.0.0.1:{self.port}"

    def take(self, one: Received) -> Answer:
        with self.lock:
            self.received.append(one)
            return self.script.pop(0) if self.script else 200

    def ids(self) -> list[str]:
        with self.lock:
            return [one.id for one in self.received]

    def bodies(self) -> list[dict[str, Any]]:
        with self.lock:
            return [one.json for one in self.received]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    receiver: Receiver

    def handle_error(self, request: object, client_address: object) -> None:
        """A sender that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        body = self.rfile.read(length)
        if len(body) < length:
            return  # the sender died before it had said all
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.react(self.server.receiver.take(Received(headers, body)))

    def react(self, entry: Answer) -> None:
        match entry:
            case "hang":
                self.server.receiver.over.wait()
            case "cut":
                self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
            case (status, headers):
                self.answer(status, headers)
            case _:
                self.answer(int(entry), {})

    def answer(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the library
        """Tests look at what was received."""


@contextmanager
def receiver(*script: Answer) -> Generator[Receiver]:
    server = _Server(("127.0.0.1", 0), _Handler)
    one = server.receiver = Receiver(int(server.server_address[1]), list(script))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield one
    finally:
        one.over.set()
        server.shutdown()
        thread.join()
        with contextlib.suppress(OSError):
            server.server_close()


# Mail --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Mailbox:
    """What a mail server took; `refusals` are answers for the next mails."""

    mails: list[tuple[str, list[str], EmailMessage]] = field(default_factory=list[tuple[str, list[str], EmailMessage]])
    refusals: list[str] = field(default_factory=list[str])
    users: list[str] = field(default_factory=list[str])
    encrypted: list[bool] = field(default_factory=list[bool])

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        del server
        if self.refusals:
            return self.refusals.pop(0)
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=MAIL_POLICY)
        assert isinstance(mail, EmailMessage)
        self.encrypted.append(session.ssl is not None)
        self.mails.append((envelope.mail_from or "", list(map(str, envelope.rcpt_tos)), mail))
        return "250 OK"


@contextmanager
def mail_server(
    mailbox: Mailbox, *, password: tuple[str, str] | None = None, certificate: ssl.SSLContext | None = None
) -> Generator[int]:
    """A real SMTP server on a free port; answers the port."""

    def authenticate(server: object, session: object, envelope: object, mechanism: object, data: Any) -> AuthResult:  # noqa: ANN401
        del server, session, envelope, mechanism
        given = (data.login.decode(), data.password.decode())
        mailbox.users.append(given[0])
        return AuthResult(success=given == password, handled=False)

    more: dict[str, Any] = {}
    if password:
        more |= {
            "authenticator": authenticate,
            "auth_required": certificate is not None,
            "auth_require_tls": certificate is not None,
        }
    if certificate:
        more |= {"tls_context": certificate, "require_starttls": True}
    port = free_port()
    controller = Controller(mailbox, hostname="127.0.0.1", port=port, **more)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


# Workers -----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def delivering(office: PostOffice, client: GuardedClient | None = None, **settings: Any) -> AsyncGenerator[None]:  # noqa: ANN401
    """A worker in this process that delivers and relays, and leaves all other jobs to the test."""
    chosen = Settings.model_validate({"data_dir": "/nowhere", **settings})
    kinds: Kinds[Tools] = Kinds()
    kinds.add(outgoing.DELIVER)
    opened = client or GuardedClient(frozenset(chosen.fetch_allow))
    tools = Tools(chosen, office.database, open_bucket("s3://unused"), OpenSandbox(), opened)
    # The test moves the clock of the engine, which must not end a lease.
    limits = WorkerLimits(slots=10, lease_seconds=10**6, poll_seconds=0.2)
    stopping = asyncio.Event()
    worker = Worker(office.database, kinds, tools, limits, chores=[relay])
    running = asyncio.create_task(worker.run(stopping))
    try:
        async with opened:
            yield
            stopping.set()
            await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
