"""The `mail` channel: sends plain text over SMTP.

Titles of documents are cleaned, so that they cannot inject a header, a recipient or another mail.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Self
from urllib.parse import unquote, urlsplit

import aiosmtplib

from octavo.core.errors import NetworkFailed, TimedOut
from octavo.deliver.channels import BadAddress, Delivery, MailNotSet, ReceiverFailed, ReceiverRefused
from octavo.deliver.messages import Message

ADDRESS_CHARACTERS = 254
DEFAULT_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
_LOCAL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
_DOMAIN = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
_MAIL_ADDRESS = re.compile(rf"{_LOCAL}@{_DOMAIN}")
_PERMANENT = 500  # SMTP codes below this are temporary failures


@dataclass(frozen=True, slots=True)
class MailServer:
    """The SMTP server that sends the mail: without TLS (smtp), with STARTTLS (smtp+starttls) or with TLS (smtps)."""

    host: str
    port: int
    scheme: str
    user: str | None
    password: str | None = field(repr=False)

    @classmethod
    def from_url(cls, url: str) -> Self:
        parts = urlsplit(url)
        user = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        return cls(parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme], parts.scheme, user, password)


@dataclass(frozen=True, slots=True)
class MailChannel:
    server: MailServer | None
    sender: str
    seconds: float
    name: str = "mail"

    def check_address(self, address: str) -> str:
        if self.server is None:
            raise MailNotSet
        return check_mail_address(address)

    async def send(self, delivery: Delivery) -> int:
        if self.server is None:
            raise MailNotSet
        mail = make_mail(delivery, self.sender)
        with _translated_errors():
            await aiosmtplib.send(
                mail,
                sender=self.sender,
                recipients=[delivery.address],
                hostname=self.server.host,
                port=self.server.port,
                username=self.server.user,
                password=self.server.password,
                use_tls=self.server.scheme == "smtps",
                start_tls=self.server.scheme == "smtp+starttls",
                timeout=self.seconds,
            )
        return aiosmtplib.SMTPStatus.completed


def check_mail_address(address: str) -> str:
    if len(address) > ADDRESS_CHARACTERS or not _MAIL_ADDRESS.fullmatch(address):
        raise BadAddress("A mail address looks like name@example.org.")
    return address


def make_mail(delivery: Delivery, sender: str) -> EmailMessage:
    """Create the mail for a delivery.

    Its Message-ID is the same for every attempt, so that a mailbox can drop duplicates.
    """
    mail = EmailMessage(policy=SMTP)
    domain = sender.rpartition("@")[2]
    mail["From"] = _as_header(sender, "Octavo")
    mail["To"] = _as_header(delivery.address)
    mail["Subject"] = delivery.message.title
    mail["Date"] = format_datetime(delivery.sent_at)
    mail["Message-ID"] = f"<{delivery.message_id}.{delivery.subscriber_id}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(mail_text(delivery.message))
    return mail


def mail_text(message: Message) -> str:
    return f"{message.sentence}\n\n{message.link}\n" if message.link else f"{message.sentence}\n"


def _as_header(address: str, name: str = "") -> Address:
    user, _, domain = check_mail_address(address).rpartition("@")
    return Address(name, username=user, domain=domain)


@contextmanager
def _translated_errors() -> Generator[None]:
    """Convert errors of the mail library to Octavo's errors.

    The server's message is dropped, because it may contain an address.
    """
    try:
        yield
    except aiosmtplib.SMTPTimeoutError:
        raise TimedOut from None
    except aiosmtplib.SMTPRecipientsRefused as error:
        raise _error_for(max(one.code for one in error.recipients)) from None
    except aiosmtplib.SMTPResponseException as error:
        raise _error_for(error.code) from None
    except (aiosmtplib.SMTPException, OSError):
        raise NetworkFailed("The mail server could not be reached, or closed the connection.") from None


def _error_for(code: int) -> ReceiverFailed | ReceiverRefused:
    kind = ReceiverRefused if code >= _PERMANENT else ReceiverFailed
    return kind(f"The mail server returned {code}.", answer=code)
