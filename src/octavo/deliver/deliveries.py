"""Turns events into deliveries, and sends each delivery through its channel, such as mail.

The relay turns each new event into deliveries to recipients and notifications inside the application, exactly once.
Every worker calls it regularly, and a row lock ensures that only one worker runs it at a time. A recipient gets the
events of a process one after another. A call that found work is therefore soon followed by another call, which starts
the next deliveries.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from octavo.choreography import Cause, job_after
from octavo.core.errors import BadInput, OctavoError
from octavo.core.extensions import ExtensionKind, load_extensions
from octavo.core.settings import Settings
from octavo.core.texts import catalogue_for, texts_from
from octavo.core.types import JSON, new_id
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.deliver.channels import (
    OWN_CHANNELS,
    Channels,
    Delivery,
    EventRecord,
    ExtensionChannel,
    MailChannel,
    MailServer,
    ReceiverGone,
    SlackChannel,
    WebhookChannel,
)
from octavo.deliver.messages import ERRORS, FAILING, NEWS, TEST, Subject, describe
from octavo.fetch import GuardedClient
from octavo.jobs.job_run import ClaimedJob
from octavo.jobs.queue import NewJob, enqueue
from octavo.jobs.worker_state import DueIn

QUERIES = load_queries("deliveries")
BATCH = 1000
# How many deliveries to one recipient run in parallel. Deliveries of events of the same process run one after another.
DELIVERIES_PER_SUBSCRIBER = 2
IDLE_SECONDS = 0.5
BUSY_SECONDS = 0.1


def known_channels(settings: Settings, client: GuardedClient | None = None) -> Channels:
    """Return all channels, including those of extensions.

    If `client` is None, the channels can check the addresses of webhooks and chats but cannot send to them.
    """
    allow = frozenset(settings.fetch_allow)
    seconds = settings.delivery_seconds
    smtp = settings.smtp_url.get_secret_value() if settings.smtp_url else None
    added = load_extensions(ExtensionKind.CHANNEL)
    return Channels(
        [
            WebhookChannel(client, allow, seconds),
            MailChannel(MailServer.from_url(smtp) if smtp else None, settings.mail_from, seconds),
            SlackChannel(client, allow, seconds),
            *(ExtensionChannel(name, channel, seconds) for name, channel in added.items() if name not in OWN_CHANNELS),
        ]
    )


class DeliverInput(BaseModel):
    """The input of a delivery job. A test delivery has no event."""

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
        raise BadInput("A delivery needs a recipient and an event.") from None
    if not wanted.test and (wanted.event is None or wanted.process is None):
        raise BadInput("A delivery needs a recipient and an event.")
    return wanted


@dataclass(frozen=True, slots=True)
class Sender:
    """Prepares and sends deliveries. `public_url` is the base URL of links to documents."""

    database: Database
    channels: Channels
    public_url: str | None

    async def prepare(self, job: ClaimedJob, wanted: DeliverInput) -> tuple[str, Delivery] | None:
        """Load the delivery of a job and its channel.

        Returns None if the recipient or the event was deleted, or if the recipient is not active.
        """
        values = {"subscriber": wanted.subscriber, "event": wanted.event, "process": wanted.process}
        async with self.database.connection() as connection:
            rows = await fetch_rows(connection, QUERIES.delivery, values)
        if not rows or not (wanted.test or (rows[0]["active"] and rows[0]["event_id"] is not None)):
            return None
        row = rows[0]
        event = _test_event(job, row["now"]) if wanted.test else _event(wanted.type, row)
        about = _subject(wanted.type, event, row)
        with texts_from(catalogue_for(row["language"])):
            message = describe(about, public_url=self.public_url, for_administrator=row["everybodys"])
        message_id = f"test_{job.id}" if wanted.test else f"evt_{event.id}"
        recipient = row["id"], row["address"], row["secret"]
        times = {"sent_at": row["now"], "old_secret": row["old_secret"]}
        return row["channel"], Delivery(message_id, wanted.type, event, message, *recipient, **times)

    async def send(self, channel: str, delivery: Delivery, job: ClaimedJob) -> JSON:
        """Send a delivery once.

        A failure is recorded and raised again, so that the job engine can decide whether to retry the delivery.
        """
        started = time.monotonic()
        try:
            answer = await self.channels[channel].send(delivery)
        except OctavoError as error:
            async with self.database.transaction() as connection:
                await self._record_failure(connection, delivery, job, error, time.monotonic() - started)
            raise
        return {"answer": answer, "seconds": round(time.monotonic() - started, 3)}

    async def _record_failure(
        self, connection: Connection, delivery: Delivery, job: ClaimedJob, error: OctavoError, seconds: float
    ) -> None:
        answer = getattr(error, "answer", None)
        made = {"answer": answer, "seconds": round(seconds, 3), "error_code": error.code, "status": "failed"}
        await write_attempt(connection, delivery, job, made)
        if isinstance(error, ReceiverGone):
            await connection.execute(QUERIES.stop_subscriber, {"id": delivery.subscriber_id, "because": error.code})
            await connection.execute(QUERIES.drop_waiting, {"id": delivery.subscriber_id})


async def record_success(connection: Connection, delivery: Delivery, job: ClaimedJob, made: JSON) -> None:
    """Record a successful attempt, in the transaction that completes the delivery's job."""
    if not isinstance(made, dict):
        raise TypeError("sending returns the status of the recipient")
    await write_attempt(connection, delivery, job, {**made, "error_code": None, "status": "delivered"})


async def write_attempt(connection: Connection, delivery: Delivery, job: ClaimedJob, made: Mapping[str, Any]) -> None:
    values: dict[str, Any] = {"id": new_id(), "subscriber": delivery.subscriber_id, "job": job.id}
    values |= {"attempt": job.attempt, "event": delivery.event.id, "process": delivery.event.process_id}
    await connection.execute(QUERIES.insert_try, values | {"type": delivery.type} | dict(made))


def _test_event(job: ClaimedJob, now: datetime) -> EventRecord:
    return EventRecord(None, now, "test", job.id, None, None, {})


def _event(event_type: str, row: Row) -> EventRecord:
    fields = {name: row[name] for name in ("at", "kind", "process_id", "document_id", "state_after", "detail")}
    facts = row["facts"] if event_type in {"document.completed", "document.matched"} else None
    return EventRecord(id=row["event_id"], facts=facts, **fields)


def _subject(event_type: str, event: EventRecord, row: Row) -> Subject:
    return Subject(
        event_type,
        event.process_id if event.id is not None else None,
        event.document_id,
        row["title"],
        _text_of(event.detail, "code"),
        _text_of(event.detail, "message") or row["rule"],
        converts=row["converts"],
        owner=row["owner"],
        job_kind=row["job_kind"],
    )


def _text_of(detail: Mapping[str, JSON], name: str) -> str | None:
    """Return one field of the event's error, such as `code` or `message`.

    If the event has no error, its `reason` is returned as the message.
    """
    error = detail.get("error")
    found = error.get(name) if isinstance(error, dict) else detail.get("reason") if name == "message" else None
    return found if isinstance(found, str) else None


async def relay(database: Database) -> float:
    """Turn new events into deliveries and notifications. Returns the number of seconds to wait before the next call."""
    done = await relay_once(database)
    if done >= BATCH:
        return 0.0
    if done:
        return BUSY_SECONDS
    async with database.connection() as connection:
        (due,) = await fetch_rows(connection, QUERIES.import_due, {})
    return IDLE_SECONDS if due["seconds"] is None else DueIn(max(IDLE_SECONDS, due["seconds"]))


async def relay_once(database: Database, batch: int = BATCH) -> int:
    """Process one batch of events. Returns the number of events read plus the number of deliveries started."""
    async with database.connection() as connection:
        row = await (await connection.execute(QUERIES.relay_has_work)).fetchone()
        if not row or not row[0]:
            return 0
        async with connection.transaction():
            return await _relay_batch(connection, batch)


async def _relay_batch(connection: Connection, batch: int) -> int:
    values = {"most": batch, "news": list(NEWS), "errors": [*ERRORS, FAILING]}
    (step,) = await fetch_rows(connection, QUERIES.relay, values)
    if step["due"]:
        await enqueue(connection, [_delivery_job(due) for due in step["due"]])
    return step["events_read"] + len(step["due"])


def _delivery_job(due: Row) -> NewJob:
    subscriber = due["subscriber"]
    return job_after(
        Cause.DELIVERY_DUE,
        UUID(due["owner"]),
        {name: due[name] for name in ("subscriber", "event", "process", "type")},
        key=f"{due['event']}:{subscriber}",
        cap_key=f"deliver:{subscriber}",
        cap=DELIVERIES_PER_SUBSCRIBER,
        job=UUID(due["job"]),
    )
