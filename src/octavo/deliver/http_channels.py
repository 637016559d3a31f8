"""Channels over HTTP: signed webhooks for programs, and chat webhooks in Slack's format."""

from __future__ import annotations

import hmac
import json
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus

from octavo.core.http import requested_wait
from octavo.deliver.channels import Delivery, ReceiverBusy, ReceiverFailed, ReceiverGone, ReceiverRefused
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

    `message_id` is the same for every attempt, so that receivers can drop duplicates; `timestamp` is the time of this
    attempt. While an old secret is still valid, there is a signature for each secret, as Standard Webhooks defines it.
    """
    signatures = [sign(one, message_id, timestamp, body) for one in (secret, old_secret) if one]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }


# Chats --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlackChannel:
    """Sends a sentence and a link to a chat, in the format of Slack's webhooks, which many other chats accept."""

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
        raise AddressRefused(f"Add {target.host}:{target.port} to it.") from None
    return target.url


async def post(client: GuardedClient, address: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> int:
    """Send one request. Returns the status code if it succeeds; every other response raises an error."""
    limits = FetchLimits(bytes=RESPONSE_BYTES, seconds=seconds, redirects=0)
    sent = {"content-type": "application/json", **headers}
    try:
        answer = await client.post(address, body, sent, limits)
    except (NameUnknown, CertificateRefused) as error:  # the receiver can fix both, so the delivery is retried
        raise ReceiverFailed(error.line) from None
    raise_for_status(answer.status, answer.headers)
    return answer.status


def raise_for_status(status: int, headers: Mapping[str, str]) -> None:
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return
    detail = f"It returned {status}."
    wait = requested_wait(headers, longest=LONGEST_WAIT_SECONDS)
    if status == HTTPStatus.GONE:
        raise ReceiverGone(detail, answer=status)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        raise ReceiverBusy(detail, answer=status, retry_after_seconds=wait)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _RETRIED:
        raise ReceiverFailed(detail, answer=status, retry_after_seconds=wait)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        detail = f"It returned {status}; redirects are not followed."
    raise ReceiverRefused(detail, answer=status)
