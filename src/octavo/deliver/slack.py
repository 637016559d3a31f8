"""A sentence and a link to a webhook that understands Slack's form, as many chats do."""

from __future__ import annotations

import json
from dataclasses import dataclass

from octavo.deliver.contract import Delivery
from octavo.deliver.errors import ReceiverRefused
from octavo.deliver.http import check_url, post
from octavo.deliver.messages import Message
from octavo.fetch import GuardedClient

# A title must not call everybody in a channel, or lead elsewhere.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class SlackChannel:
    client: GuardedClient | None
    allow: frozenset[str]
    seconds: float
    name: str = "slack"

    def check_address(self, address: str) -> str:
        return check_url(address, self.allow)

    async def send(self, delivery: Delivery) -> int:
        if self.client is None:
            raise ReceiverRefused("Nothing can be sent from here.")
        body = json.dumps({"text": make_text(delivery.message)}, ensure_ascii=False).encode()
        return await post(self.client, delivery.address, body, {}, seconds=self.seconds)


def make_text(message: Message) -> str:
    sentence = message.sentence.translate(_ESCAPES)
    return f"{sentence} {message.link}" if message.link else sentence
