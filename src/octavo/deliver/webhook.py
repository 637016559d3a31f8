"""Webhooks for programs: signed, with the event's fields and nothing of the document."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from octavo.deliver.contract import Delivery
from octavo.deliver.errors import ReceiverRefused
from octavo.deliver.http import check_url, post
from octavo.deliver.signing import signed_headers
from octavo.fetch import GuardedClient


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    client: GuardedClient | None
    allow: frozenset[str]
    seconds: float
    name: str = "webhook"

    def check_address(self, address: str) -> str:
        return check_url(address, self.allow)

    async def send(self, delivery: Delivery) -> int:
        if self.client is None or delivery.secret is None:
            raise ReceiverRefused("Nothing can be sent from here.")
        body = make_body(delivery)
        headers = signed_headers(delivery.secret, delivery.message_id, int(time.time()), body)
        return await post(self.client, delivery.address, body, headers, seconds=self.seconds)


def make_body(delivery: Delivery) -> bytes:
    told = delivery.told
    payload = {
        "type": delivery.type,
        "timestamp": told.at.isoformat(),
        "data": {
            "id": told.id,
            "at": told.at.isoformat(),
            "kind": told.kind,
            "process_id": str(told.process_id),
            "document_id": str(told.document_id) if told.document_id else None,
            "state_after": told.state_after,
            "detail": told.detail,
        },
    }
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
