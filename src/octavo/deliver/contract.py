"""What channels have in common: a delivery to make, and the registry they are found in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from octavo.core.errors import BadInput
from octavo.core.types import JSON
from octavo.deliver.messages import Message


class UnknownChannel(BadInput):
    """There is no such way to deliver."""

    code = "UNKNOWN_CHANNEL"


@dataclass(frozen=True, slots=True)
class Told:
    """An event as receivers get it: the fields of the event itself, and never a document's text or file name."""

    id: int | None
    at: datetime
    kind: str
    process_id: UUID
    document_id: UUID | None
    state_after: str | None
    detail: dict[str, JSON]


@dataclass(frozen=True, slots=True)
class Delivery:
    """`message_id` is the same for every try; `message` is for people, `told` for programs."""

    message_id: str
    type: str
    told: Told
    message: Message
    subscriber_id: UUID
    address: str
    secret: str | None = field(repr=False)


class Channel(Protocol):
    """One way out. Both raise errors whose class decides about another try."""

    @property
    def name(self) -> str: ...

    def check_address(self, address: str) -> str:
        """The address as it is kept; raises for what can be told without sending anything."""
        ...

    async def send(self, delivery: Delivery) -> int:
        """Answers the number that the receiver accepted with."""
        ...


class Channels:
    """Refuses two of one name and lists the known ones when one is missing."""

    def __init__(self, channels: Iterable[Channel] = ()) -> None:
        self._channels: dict[str, Channel] = {}
        for channel in channels:
            self.add(channel)

    def add(self, channel: Channel) -> None:
        if channel.name in self._channels:
            raise ValueError(f"there is a channel {channel.name} already")
        self._channels[channel.name] = channel

    def __getitem__(self, name: str) -> Channel:
        try:
            return self._channels[name]
        except KeyError:
            raise UnknownChannel(f"{name} is none of {', '.join(self.names)}.") from None

    @property
    def names(self) -> list[str]:
        return sorted(self._channels)
