"""Channels (webhooks, chats and mail), the registry of channels, their errors, and the deliveries that they send.

Notifications inside the application do not use a channel: the relay stores each of them exactly once, in the
transaction that reads the event.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import sha256
from http import HTTPStatus
from typing import Protocol, Self
from urllib.parse import unquote, urlsplit
from uuid import UUID

import aiosmtplib

from octavo.core.errors import BadInput, ErrorClass, NetworkFailed, OctavoError, RateLimited, TimedOut
from octavo.core.http import requested_wait
from octavo.core.types import JSON
from octavo.deliver.messages import Message
from octavo.fetch import (
    AddressRefused,
    CertificateRefused,
    FetchLimits,
    GuardedClient,
    NameUnknown,
    parse_url,
    refuse_private,
)


class BadAddress(BadInput):
    """Invalid address."""

    code = "BAD_ADDRESS"


class MailNotSet(BadInput):
    """Email is not set up. Set OCTAVO_SMTP_URL to the address of a mail server."""

    code = "MAIL_NOT_SET"
    error_class = ErrorClass.PERMANENT


class TooManySubscribers(BadInput):
    """You have reached the maximum number of recipients. Delete one first."""

    code = "TOO_MANY_WEBHOOKS"
    error_class = ErrorClass.PERMANENT
    status = 409


class NoSecret(BadInput):
    """Only webhooks have a secret."""

    code = "NO_SECRET"
    error_class = ErrorClass.PERMANENT
    status = 409


class NotReplayable(BadInput):
    """This delivery cannot be sent again."""

    code = "NOT_REPLAYABLE"
    error_class = ErrorClass.PERMANENT
    status = 409


class DeliveryFailed(OctavoError):
    """The delivery failed."""

    code = "DELIVERY_FAILED"
    status = 502

    def __init__(
        self, detail: str | None = None, *, answer: int | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.answer = answer
        self.retry_after_seconds = retry_after_seconds


class ReceiverFailed(DeliveryFailed):
    """The recipient could not be reached, or returned an error."""

    code = "RECEIVER_FAILED"
    error_class = ErrorClass.TRANSIENT


class ReceiverBusy(DeliveryFailed):
    """The recipient is busy."""

    code = "RECEIVER_BUSY"
    error_class = RateLimited.error_class


class ReceiverRefused(DeliveryFailed):
    """The recipient rejected the delivery."""

    code = "RECEIVER_REFUSED"


class ReceiverGone(ReceiverRefused):
    """The recipient no longer exists. Deliveries to it have been stopped."""

    code = "RECEIVER_GONE"


class UnknownChannel(BadInput):
    """Unknown channel."""

    code = "UNKNOWN_CHANNEL"


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event in the form that is sent to programs. It never contains the text, title or file name of a document.

    When a document is complete, `facts` contains its facts, such as sender, date and amount, but not its title.
    """

    id: int | None
    at: datetime
    kind: str
    process_id: UUID
    document_id: UUID | None
    state_after: str | None
    detail: dict[str, JSON]
    facts: dict[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event for one recipient. `message` is for people, `event` for programs.

    `message_id` is the same for every attempt. `sent_at` is the time of this attempt, according to the database's
    clock. `old_secret` is the secret before the last rotation, while it is still valid.
    """

    message_id: str
    type: str
    event: EventRecord
    message: Message
    subscriber_id: UUID
    address: str
    secret: str | None = field(repr=False)
    sent_at: datetime
    old_secret: str | None = field(default=None, repr=False)


class Channel(Protocol):
    """A channel sends deliveries, for example by mail.

    If `send` raises an error, the class of the error determines whether the delivery is retried.
    """

    @property
    def name(self) -> str: ...

    def check_address(self, address: str) -> str:
        """Validate an address and return it in the form in which it is stored.

        Raises an error if it is invalid. Sends nothing.
        """
        ...

    async def send(self, delivery: Delivery) -> int:
        """Send a delivery and return the status code of the recipient's response."""
        ...


class Channels:
    """The registry of channels by name. Two channels must not have the same name."""

    def __init__(self, channels: Iterable[Channel] = ()) -> None:
        self._channels: dict[str, Channel] = {}
        for channel in channels:
            self.add(channel)

    def add(self, channel: Channel) -> None:
        if channel.name in self._channels:
            raise ValueError(f"the channel {channel.name} exists already")
        self._channels[channel.name] = channel

    def __getitem__(self, name: str) -> Channel:
        try:
            return self._channels[name]
        except KeyError:
            raise UnknownChannel(f"{name} is not one of {', '.join(self.names)}.") from None

    @property
    def names(self) -> list[str]:
        return sorted(self._channels)


SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of every secret
SECRET_BYTES = 32
RESPONSE_BYTES = 1 << 20
LONGEST_WAIT_SECONDS = 3600.0
NO_CLIENT = "This process cannot send deliveries."
_RETRIED = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY})
# Escaped, so that the title of a document can neither notify everybody in a chat nor contain a link.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """Sends a signed event to a program.

    The event of a completed document includes the document's facts, but not its text.
    """

    client: GuardedClient | None
    allow: frozenset[str]
    seconds: float
    name: str = "webhook"

    def check_address(self, address: str) -> str:
        return check_url(address, self.allow)

    async def send(self, delivery: Delivery) -> int:
        if self.client is None or delivery.secret is None:
            raise ReceiverRefused(NO_CLIENT)
        body = webhook_body(delivery)
        at = int(delivery.sent_at.timestamp())
        headers = signed_headers(delivery.secret, delivery.message_id, at, body, delivery.old_secret)
        return await post(self.client, delivery.address, body, headers, seconds=self.seconds)


def webhook_body(delivery: Delivery) -> bytes:
    event = delivery.event
    payload = {
        "type": delivery.type,
        "timestamp": event.at.isoformat(),
        "data": {
            "id": event.id,
            "at": event.at.isoformat(),
            "kind": event.kind,
            "process_id": str(event.process_id),
            "document_id": str(event.document_id) if event.document_id else None,
            "state_after": event.state_after,
            "detail": event.detail,
            **({"facts": event.facts} if event.facts else {}),
        },
    }
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


# Signatures, as Standard Webhooks version 1 defines them ------------------------------------------------------------


def new_secret() -> str:
    return SECRET_PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    key = b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, sha256)
    return f"v1,{b64encode(signed).decode()}"


def signed_headers(
    secret: str, message_id: str, timestamp: int, body: bytes, old_secret: str | None = None
) -> dict[str, str]:
    """Return the headers of a signed webhook.

    `message_id` is the same for every attempt, so that recipients can drop duplicates; `timestamp` is the time of this
    attempt. While an old secret is still valid, the headers contain a signature for each secret, separated by a space,
    as the Standard Webhooks specification requires.
    """
    signatures = [sign(one, message_id, timestamp, body) for one in (secret, old_secret) if one]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }


# Channels of extensions ---------------------------------------------------------------------------------------------

OWN_CHANNELS = frozenset({"webhook", "mail", "slack"})


class Sender(Protocol):
    """The interface that an extension implements to add a channel. The entry point is named after the channel."""

    def check_address(self, address: str) -> str:
        """Validate an address and return it in the form in which it is stored. Raises `ValueError` if it is invalid."""
        ...

    async def send(self, delivery: Delivery) -> None:
        """Send a delivery. If this raises an error, the delivery is retried."""
        ...


@dataclass(frozen=True, slots=True)
class ExtensionChannel:
    """Sends deliveries through an extension."""

    name: str
    sender: Sender
    seconds: float

    def check_address(self, address: str) -> str:
        try:
            return str(self.sender.check_address(address))
        except ValueError as error:
            raise BadAddress(str(error) or None) from None

    async def send(self, delivery: Delivery) -> int:
        try:
            async with asyncio.timeout(self.seconds):
                await self.sender.send(delivery)
        except OctavoError:
            raise
        except TimeoutError:
            raise TimedOut(f"The channel {self.name} did not respond within {self.seconds:g} seconds.") from None
        except Exception as error:
            raise ReceiverFailed(f"The channel {self.name} failed with {type(error).__name__}.") from error
        return HTTPStatus.OK


# Chats --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlackChannel:
    """Sends a sentence and a link to a chat, in the format of Slack's webhooks, which many chat services accept."""

    client: GuardedClient | None
    allow: frozenset[str]
    seconds: float
    name: str = "slack"

    def check_address(self, address: str) -> str:
        return check_url(address, self.allow)

    async def send(self, delivery: Delivery) -> int:
        if self.client is None:
            raise ReceiverRefused(NO_CLIENT)
        body = json.dumps({"text": chat_text(delivery.message)}, ensure_ascii=False).encode()
        return await post(self.client, delivery.address, body, {}, seconds=self.seconds)


def chat_text(message: Message) -> str:
    sentence = message.sentence.translate(_ESCAPES)
    return f"{sentence} {message.link}" if message.link else sentence


# Requests -----------------------------------------------------------------------------------------------------------


def check_url(address: str, allow: frozenset[str]) -> str:
    """Return the normalised URL. Raises an error if its host is a private name or a private IP address."""
    target = parse_url(address)
    try:
        refuse_private(target, allow)
    except AddressRefused:
        raise AddressRefused(f"Host and port: {target.host}:{target.port}.") from None
    return target.url


async def post(client: GuardedClient, address: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> int:
    """Send one request. Returns the status code if it succeeds; every other response raises an error."""
    limits = FetchLimits(bytes=RESPONSE_BYTES, seconds=seconds, redirects=0)
    sent = {"content-type": "application/json", **headers}
    try:
        answer = await client.post(address, body, sent, limits)
    except (NameUnknown, CertificateRefused) as error:  # the recipient can fix both, so the delivery is retried
        raise ReceiverFailed(error.line) from None
    raise_for_status(answer.status, answer.headers)
    return answer.status


def raise_for_status(status: int, headers: Mapping[str, str]) -> None:
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return
    detail = f"It returned status {status}."
    wait = requested_wait(headers, longest=LONGEST_WAIT_SECONDS)
    if status == HTTPStatus.GONE:
        raise ReceiverGone(detail, answer=status)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        raise ReceiverBusy(detail, answer=status, retry_after_seconds=wait)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _RETRIED:
        raise ReceiverFailed(detail, answer=status, retry_after_seconds=wait)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        detail = f"It returned status {status}. Redirects are not followed."
    raise ReceiverRefused(detail, answer=status)


ADDRESS_CHARACTERS = 254
DEFAULT_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
_LOCAL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
_DOMAIN = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
_MAIL_ADDRESS = re.compile(rf"{_LOCAL}@{_DOMAIN}")
_PERMANENT = 500  # SMTP codes below this are temporary failures


@dataclass(frozen=True, slots=True)
class MailServer:
    """The SMTP server that sends mail: without TLS (smtp), with STARTTLS (smtp+starttls) or with TLS (smtps)."""

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
        await send_mail(self.server, mail, self.sender, delivery.address, seconds=self.seconds)
        return aiosmtplib.SMTPStatus.completed


async def send_mail(server: MailServer, mail: EmailMessage, sender: str, recipient: str, *, seconds: float) -> None:
    with _translated_errors():
        await aiosmtplib.send(
            mail,
            sender=sender,
            recipients=[recipient],
            hostname=server.host,
            port=server.port,
            username=server.user,
            password=server.password,
            use_tls=server.scheme == "smtps",
            start_tls=server.scheme == "smtp+starttls",
            timeout=seconds,
        )


def check_mail_address(address: str) -> str:
    if len(address) > ADDRESS_CHARACTERS or not _MAIL_ADDRESS.fullmatch(address):
        raise BadAddress("An email address looks like name@example.org.")
    return address


def make_mail(delivery: Delivery, sender: str) -> EmailMessage:
    """Create the mail for a delivery.

    Its Message-ID is the same for every attempt, so that a mailbox can drop duplicates.
    """
    mail = EmailMessage(policy=SMTP)
    domain = sender.rpartition("@")[2]
    mail["From"] = as_mail_header(sender, "Octavo")
    mail["To"] = as_mail_header(delivery.address)
    mail["Subject"] = delivery.message.title
    mail["Date"] = format_datetime(delivery.sent_at)
    mail["Message-ID"] = f"<{delivery.message_id}.{delivery.subscriber_id}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(mail_text(delivery.message))
    return mail


def mail_text(message: Message) -> str:
    return f"{message.sentence}\n\n{message.link}\n" if message.link else f"{message.sentence}\n"


def as_mail_header(address: str, name: str = "") -> Address:
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
