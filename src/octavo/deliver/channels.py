"""Defines channels, such as mail, their deliveries and their errors, and lists all channels in one registry.

Notifications inside the application do not use a channel: the relay stores each of them exactly once, in its own
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from octavo.core.errors import BadInput, ErrorClass, OctavoError, RateLimited
from octavo.core.types import JSON
from octavo.deliver.messages import Message


class BadAddress(BadInput):
    """Invalid address."""

    code = "BAD_ADDRESS"


class MailNotSet(BadInput):
    """Mail is not set up. Set OCTAVO_SMTP_URL to the address of a mail server."""

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
    """The receiver could not be reached or reported an error."""

    code = "RECEIVER_FAILED"
    error_class = ErrorClass.TRANSIENT


class ReceiverBusy(DeliveryFailed):
    """The receiver is busy."""

    code = "RECEIVER_BUSY"
    error_class = RateLimited.error_class


class ReceiverRefused(DeliveryFailed):
    """The receiver rejected the delivery."""

    code = "RECEIVER_REFUSED"


class ReceiverGone(ReceiverRefused):
    """The receiver no longer exists. Deliveries to it are stopped."""

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

    `message_id` is the same for every attempt. `sent_at` is the time of this attempt, by the clock of the database.
    `old_secret` is the secret before the last rotation, while it is still valid.
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
        """Send a delivery and return the status code of the receiver."""
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
