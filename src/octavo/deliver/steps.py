"""One try to deliver one event, and what is written about it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from octavo.core.errors import BadInput, OctavoError
from octavo.core.ids import new_id
from octavo.core.types import JSON
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.deliver.contract import Channels, Delivery, Told
from octavo.deliver.errors import ReceiverGone
from octavo.deliver.messages import TEST, describe
from octavo.jobs.run import ClaimedJob

QUERIES = load_queries("deliveries")


class DeliverInput(BaseModel):
    """A test has no event."""

    model_config = ConfigDict(extra="forbid")

    subscriber: UUID
    event: int | None = None
    process: UUID | None = None
    type: str = TEST
    test: bool = False


def read_input(given: dict[str, JSON]) -> DeliverInput:
    try:
        wanted = DeliverInput.model_validate(given)
    except ValidationError:
        raise BadInput("A delivery names a subscriber and an event.") from None
    if not wanted.test and (wanted.event is None or wanted.process is None):
        raise BadInput("A delivery names a subscriber and an event.")
    return wanted


@dataclass(frozen=True, slots=True)
class Sender:
    """What a try needs: where to look, how to send, and where links lead."""

    database: Database
    channels: Channels
    public_url: str | None

    async def prepare(self, job: ClaimedJob, wanted: DeliverInput) -> tuple[str, Delivery] | None:
        """The channel and what goes through it; nothing when nobody wants it any more."""
        values = {"subscriber": wanted.subscriber, "event": wanted.event, "process": wanted.process}
        async with self.database.connection() as connection:
            rows = await fetch_rows(connection, QUERIES.delivery, values)
        if not rows or not (wanted.test or (rows[0]["active"] and rows[0]["event_id"] is not None)):
            return None
        row = rows[0]
        told = _test(job) if wanted.test else _told(row)
        message = describe(
            wanted.type,
            title=row["title"],
            error_code=_error_code(told.detail),
            document_id=told.document_id,
            public_url=self.public_url,
        )
        message_id = f"test_{job.id}" if wanted.test else f"evt_{told.id}"
        delivery = Delivery(message_id, wanted.type, told, message, row["id"], row["address"], row["secret"])
        return row["channel"], delivery

    async def send(self, channel: str, delivery: Delivery, job: ClaimedJob) -> JSON:
        """Once; a failure is written down and goes on to the engine, which decides about another try."""
        started = time.monotonic()
        try:
            answer = await self.channels[channel].send(delivery)
        except OctavoError as error:
            async with self.database.transaction() as connection:
                await self._note_failure(connection, delivery, job, error, time.monotonic() - started)
            raise
        return {"answer": answer, "seconds": round(time.monotonic() - started, 3)}

    async def _note_failure(
        self, connection: Connection, delivery: Delivery, job: ClaimedJob, error: OctavoError, seconds: float
    ) -> None:
        answer = getattr(error, "answer", None)
        made = {"answer": answer, "seconds": round(seconds, 3), "error_code": error.code, "status": "failed"}
        await write_try(connection, delivery, job, made)
        if isinstance(error, ReceiverGone):
            await connection.execute(QUERIES.stop_subscriber, {"id": delivery.subscriber_id, "because": error.code})
            await connection.execute(QUERIES.drop_waiting, {"id": delivery.subscriber_id})


async def note_success(connection: Connection, delivery: Delivery, job: ClaimedJob, made: JSON) -> None:
    """In the transaction that makes this delivery done."""
    if not isinstance(made, dict):
        raise TypeError("a delivery answers what it was answered")
    await write_try(connection, delivery, job, {**made, "error_code": None, "status": "delivered"})


async def write_try(connection: Connection, delivery: Delivery, job: ClaimedJob, made: Mapping[str, Any]) -> None:
    values: dict[str, Any] = {"id": new_id(), "subscriber": delivery.subscriber_id, "job": job.id}
    values |= {"attempt": job.attempt, "event": delivery.told.id, "process": delivery.told.process_id}
    await connection.execute(QUERIES.insert_try, values | {"type": delivery.type} | dict(made))


def _test(job: ClaimedJob) -> Told:
    return Told(None, datetime.now(UTC), "test", job.id, None, None, {})


def _told(row: Row) -> Told:
    fields = {name: row[name] for name in ("at", "kind", "process_id", "document_id", "state_after", "detail")}
    return Told(id=row["event_id"], **fields)


def _error_code(detail: Mapping[str, JSON]) -> str | None:
    error = detail.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else None
