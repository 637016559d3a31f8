"""Receives emails from a mail server over LMTP (RFC 2033), and adds each as a document.

An email is accepted only after its document has been committed. If this process is killed, the mail server delivers the
email again, and the intake recognises existing emails by their content.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import aclosing
from dataclasses import dataclass
from uuid import UUID

import psycopg
import structlog
from aiosmtpd.lmtp import LMTP
from aiosmtpd.smtp import SMTP, Envelope, Session

from octavo.core.errors import BadInput, OctavoError, TooLarge
from octavo.core.settings import Settings
from octavo.core.types import new_id
from octavo.database import Connection, Database, fetch_rows, load_queries, require_current
from octavo.extract.detect import detect
from octavo.intake import Intake, IntakeLimits, NewUpload, Outcome
from octavo.intake.errors import QuotaExceeded
from octavo.intake.sources.imap import read_headers
from octavo.intake.upload_rows import intake_limits
from octavo.ops.instance import bucket_of, open_database

log = structlog.get_logger()
QUERIES = load_queries("sources")
# A mail is held in memory while it arrives.
MOST_BYTES = 50 << 20
IDLE_SECONDS = 120.0
UNKNOWN, PAUSED = "550 5.1.1 No such address", "450 4.2.1 This address is paused"
ONE_RECIPIENT = "452 4.5.3 One recipient at a time"
FULL, TOO_LARGE, LATER = "452 4.2.2 Storage quota exceeded", "552 5.3.4 Message too large", "451 4.3.0 Try again later"


class MailPaused(BadInput):
    """This address was paused or deleted."""

    code = "MAIL_PAUSED"


@dataclass(frozen=True, slots=True)
class MailAddress:
    """A source that receives emails for one address (kind `lmtp`)."""

    id: UUID
    owner_id: UUID
    paused: bool


class MailIntake:
    """Responds to the commands of a mail server. aiosmtpd defines the names of the methods."""

    def __init__(self, database: Database, intake: Intake, limits: IntakeLimits) -> None:
        self._database = database
        self._intake = intake
        self._limits = limits

    async def handle_RCPT(  # noqa: N802 - the name of the library
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        del server, session, options
        if envelope.rcpt_tos:  # the library returns one response for all recipients
            return ONE_RECIPIENT
        try:
            found = await self._find(address)
        except (OctavoError, psycopg.Error):
            return LATER
        if found is None:
            return UNKNOWN
        if found.paused:
            return PAUSED
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        del server, session
        content = envelope.content
        body = content if isinstance(content, bytes) else (content or "").encode()
        try:
            found = await self._find(envelope.rcpt_tos[0])
            return await self._add(found, body) if found else UNKNOWN
        except QuotaExceeded:
            return FULL
        except TooLarge:
            return TOO_LARGE
        except MailPaused:
            return PAUSED
        except BadInput as error:
            return f"554 5.6.0 {error.line}"
        except (OctavoError, psycopg.Error) as error:
            log.warning("email postponed", reason=type(error).__name__)
            return LATER

    async def handle_exception(self, error: Exception) -> str:
        """Postpone the email after an unexpected error. By default, aiosmtpd rejects it for good, so it bounces."""
        log.error("email postponed", exc_info=error)
        return LATER

    async def _find(self, address: str) -> MailAddress | None:
        """Find the source for an email address. The domain and everything after a plus sign are ignored."""
        local = address.rpartition("@")[0].partition("+")[0].lower()
        async with self._database.connection() as connection:
            rows = await fetch_rows(connection, QUERIES.mail_source, {"address": local})
        return MailAddress(**rows[0]) if rows else None

    async def _add(self, source: MailAddress, body: bytes) -> str:
        _, subject = read_headers(body)
        name = f"{subject[:150]}.eml".replace("/", " ") if subject else "Mail.eml"
        # All emails to an address are one import, so that they never delay documents that a person adds.
        new = NewUpload(name, "message/rfc822", given={"import": str(source.id)})

        async def record(connection: Connection, outcome: Outcome) -> None:
            state = "added" if outcome.state == "uploaded" else "known"
            values = {"source": source.id, "path": str(new_id()), "bytes": len(body), "state": state}
            values |= {"document": outcome.document_id}
            if not await fetch_rows(connection, QUERIES.record_mail, values):
                raise MailPaused

        await self._intake.take(source.owner_id, new, body, self._limits, on_created=record)
        return "250 2.0.0 Added"


class _Server(LMTP):
    line_length_limit = 1 << 16  # many programs write longer lines than the standard allows


async def receive(handler: MailIntake, listener: socket.socket, most_bytes: int) -> asyncio.Server:
    def connected() -> LMTP:
        return _Server(
            handler, data_size_limit=most_bytes, enable_SMTPUTF8=True, timeout=IDLE_SECONDS, hostname="octavo"
        )

    return await asyncio.get_running_loop().create_server(connected, sock=listener)


async def serve_mails(settings: Settings, listener: socket.socket) -> None:
    """Receive emails until stopped."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with open_database(settings) as database, aclosing(bucket_of(settings)) as bucket:
        async with database.connection() as connection:
            await require_current(connection)
        limits = intake_limits(settings, anonymous=False)
        handler = MailIntake(database, Intake(database, bucket, detect), limits)
        async with await receive(handler, listener, min(MOST_BYTES, settings.upload_bytes)):
            host, port = listener.getsockname()[:2]
            log.info("receiving emails", host=host, port=port)
            await stopping.wait()
