"""Recipients of events (subscribers): the webhooks, email addresses and chats of an account or of the administrator.

This module also handles notifications inside the application. They can be marked as read, and errors as resolved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from octavo.choreography import Cause, job_after
from octavo.core.errors import BadInput, NotAllowed, NotFound
from octavo.core.http import Page, make_cursor, read_cursor
from octavo.core.types import new_id
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.deliver.channels import Channels, NoSecret, NotReplayable, TooManySubscribers, new_secret
from octavo.deliver.messages import ERRORS, REQUESTED, EventType, Subject, describe, path_of
from octavo.jobs.queue import enqueue
from octavo.owners import Caller
from octavo.owners.audit import record
from octavo.records.deliveries import (
    ChannelName,
    DeliveryAttempt,
    NewSubscriber,
    Notification,
    NotificationPage,
    Subscriber,
)

QUERIES = load_queries("deliveries")
MOST_SUBSCRIBERS = 20
KEPT_DAYS = 90
FAILING_DAYS = 7
SHOWN_CHARACTERS = 4
OLD_SECRET_SECONDS = 24 * 3600
GONE = "It was a test, or its event was deleted."
PAUSED = "The recipient is paused. Resume it first."


async def add_subscriber(
    connection: Connection,
    caller: Caller,
    channels: Channels,
    *,
    channel: ChannelName,
    address: str,
    events: Sequence[EventType],
) -> NewSubscriber:
    _refuse_visitors(caller)
    secret = new_secret() if channel == "webhook" else None
    values: dict[str, Any] = {"id": new_id(), "owner": caller.owner_id, "channel": channel, "secret": secret}
    values |= {"address": channels[channel].check_address(address), "events": _distinct(events)}
    row = await (await connection.execute(QUERIES.insert_subscriber, values | {"most": MOST_SUBSCRIBERS})).fetchone()
    if row is None:
        raise TooManySubscribers
    await record(connection, caller.owner_id, "recipient.add", values["id"])
    return await _with_secret(connection, caller, values["id"], secret)


async def _with_secret(connection: Connection, caller: Caller, subscriber: UUID, secret: str | None) -> NewSubscriber:
    made = await show_subscriber(connection, caller.owner_id, subscriber)
    return NewSubscriber(**{name: getattr(made, name) for name in Subscriber.__dataclass_fields__}, secret=secret)


async def rotate_secret(connection: Connection, caller: Caller, subscriber: UUID) -> NewSubscriber:
    """Give a webhook a new secret. For a day, webhooks are signed with both secrets."""
    _refuse_visitors(caller)
    await _find(connection, caller.owner_id, subscriber)
    secret = new_secret()
    values = {"owner": caller.owner_id, "id": subscriber, "secret": secret, "seconds": OLD_SECRET_SECONDS}
    if (await connection.execute(QUERIES.rotate_secret, values)).rowcount == 0:
        raise NoSecret
    return await _with_secret(connection, caller, subscriber, secret)


async def notify_requester(connection: Connection, caller: Caller, process: UUID) -> None:
    """Arrange for the person who starts an analysis to get a mail when it ends.

    Does nothing if the caller is not a person with a user account. Call this in the transaction that starts the
    analysis.
    """
    if caller.user_id is None:
        return
    values = {"process": process, "owner": caller.owner_id, "user": caller.user_id, "id": new_id()}
    await connection.execute(QUERIES.add_requester, values | {"events": list(REQUESTED)})


async def list_subscribers(connection: Connection, owner_id: UUID) -> list[Subscriber]:
    rows = await fetch_rows(connection, QUERIES.subscribers, {"owner": owner_id, "id": None})
    return [_as_view(row) for row in rows]


async def show_subscriber(connection: Connection, owner_id: UUID, subscriber: UUID) -> Subscriber:
    return _as_view(await _find(connection, owner_id, subscriber))


async def edit_subscriber(
    connection: Connection,
    caller: Caller,
    channels: Channels,
    subscriber: UUID,
    *,
    address: str | None = None,
    events: Sequence[EventType] | None = None,
    active: bool | None = None,
) -> Subscriber:
    """Change the given fields of a recipient. Pausing a recipient drops its pending deliveries."""
    _refuse_visitors(caller)
    found = await _find(connection, caller.owner_id, subscriber)
    checked = channels[found["channel"]].check_address(address) if address is not None else None
    values = {"owner": caller.owner_id, "id": subscriber, "address": checked, "active": active}
    values |= {"events": _distinct(events) if events is not None else None}
    row = await (await connection.execute(QUERIES.edit_subscriber, values)).fetchone()
    if row is None:
        raise NotFound
    if not row[0]:
        await connection.execute(QUERIES.drop_waiting, {"id": subscriber})
    await record(connection, caller.owner_id, "recipient.edit", subscriber)
    return await show_subscriber(connection, caller.owner_id, subscriber)


async def delete_subscriber(connection: Connection, caller: Caller, subscriber: UUID) -> None:
    """Delete a recipient with its pending deliveries and its log."""
    _refuse_visitors(caller)
    values = {"owner": caller.owner_id, "id": subscriber}
    if (await connection.execute(QUERIES.delete_subscriber, values)).rowcount == 0:
        raise NotFound
    await record(connection, caller.owner_id, "recipient.delete", subscriber)


async def send_test(connection: Connection, caller: Caller, subscriber: UUID) -> UUID:
    """Enqueue a test delivery, even if the recipient is paused. Returns the id of the job."""
    _refuse_visitors(caller)
    await _find(connection, caller.owner_id, subscriber)
    job = job_after(Cause.TEST_DELIVERY_REQUESTED, caller.owner_id, {"subscriber": str(subscriber), "test": True})
    (made,) = await enqueue(connection, [job])
    return made.id


async def replay_delivery(connection: Connection, caller: Caller, subscriber: UUID, attempt: UUID) -> UUID:
    """Send the event of a delivery attempt again, with the same `webhook-id`. Returns the id of the job.

    The event is sent without waiting for earlier events of the same process, so it may arrive out of order.
    """
    _refuse_visitors(caller)
    await _find(connection, caller.owner_id, subscriber)
    values = {"owner": caller.owner_id, "subscriber": subscriber, "id": attempt}
    found = await fetch_rows(connection, QUERIES.delivered_event, values)
    if not found:
        raise NotFound
    (row,) = found
    if not (row["active"] and row["is_kept"]):
        raise NotReplayable(GONE if row["active"] else PAUSED)
    wanted = {"subscriber": str(subscriber), "event": row["event_id"], "process": str(row["process_id"])}
    job = job_after(Cause.REPLAY_REQUESTED, caller.owner_id, {**wanted, "type": row["type"]})
    (made,) = await enqueue(connection, [job])
    return made.id


async def list_attempts(
    connection: Connection, owner_id: UUID, subscriber: UUID, *, cursor: str | None, limit: int
) -> Page[DeliveryAttempt]:
    """Return one page of delivery attempts, newest first."""
    await _find(connection, owner_id, subscriber)
    before_at, before_id = read_cursor(cursor) if cursor else (None, None)
    values = {"owner": owner_id, "subscriber": subscriber, "before_at": before_at, "before_id": before_id}
    rows = await fetch_rows(connection, QUERIES.tries, values | {"most": limit + 1})
    attempts = [DeliveryAttempt(**row) for row in rows[:limit]]
    return Page(attempts, make_cursor(attempts[-1].at, attempts[-1].id) if len(rows) > limit else None)


async def keep_administrators(connection: Connection, owner_id: UUID, addresses: Mapping[str, str | None]) -> None:
    """Store the administrator's addresses from the settings. They are notified about failures in all accounts.

    `addresses` maps a channel (`mail` or `slack`) to the address. Recipients that are no longer in the settings are
    deleted.
    """
    given = {channel: address for channel, address in addresses.items() if address}
    values = {"owner": owner_id, "channels": list(given), "addresses": list(given.values()), "events": list(ERRORS)}
    await connection.execute(QUERIES.keep_administrators, values)


async def warn_of_failing(database: Database) -> int:
    """Notify accounts about recipients whose deliveries have been failing for a week.

    A recipient is not reported again until a delivery to it has succeeded. Returns the number of reported recipients.
    """
    async with database.transaction() as connection:
        return (await connection.execute(QUERIES.warn_of_failing, {"days": FAILING_DAYS})).rowcount


async def forget_attempts(database: Database) -> int:
    """Delete old delivery attempts from the log."""
    async with database.connection() as connection:
        return (await connection.execute(QUERIES.forget_tries, {"days": KEPT_DAYS})).rowcount


async def _find(connection: Connection, owner_id: UUID, subscriber: UUID) -> Row:
    rows = await fetch_rows(connection, QUERIES.subscribers, {"owner": owner_id, "id": subscriber})
    if not rows:
        raise NotFound
    return rows[0]


def _as_view(row: Row) -> Subscriber:
    found = Subscriber(**row)
    return replace(found, address=conceal(found.address)) if found.channel not in {"webhook", "mail"} else found


def conceal(address: str) -> str:
    """Shorten the address of a chat or an extension so that users still recognise it.

    The full address can be a secret: anybody who knows the address of a chat can post to it.
    """
    parts = urlsplit(address)
    beginning = f"{parts.scheme}://{parts.netloc}/" if parts.netloc else ""
    return f"{beginning}…{address[-SHOWN_CHARACTERS:]}"


def _distinct(events: Sequence[EventType]) -> list[EventType]:
    return list(dict.fromkeys(events))


def _refuse_visitors(caller: Caller) -> None:
    if caller.is_anonymous or not caller.may_write:
        raise NotAllowed("Only members with write access can manage recipients.")


class NotAnError(BadInput):
    """Only notifications about errors can be marked as resolved."""

    code = "NOT_AN_ERROR"
    status = 409


async def list_notifications(
    connection: Connection, owner_id: UUID, *, unread: bool, cursor: str | None, limit: int
) -> NotificationPage:
    """Return one page of notifications, newest first."""
    before_at, before_id = read_cursor(cursor) if cursor else (None, None)
    rows = await _read(connection, owner_id, unread=unread, before_at=before_at, before_id=before_id, most=limit + 1)
    items = [_as_notification(row) for row in rows[:limit]]
    more = make_cursor(items[-1].created_at, items[-1].id) if len(rows) > limit else None
    return NotificationPage(items, more, await count_unread(connection, owner_id))


async def count_unread(connection: Connection, owner_id: UUID) -> int:
    row = await (await connection.execute(QUERIES.count_unread, {"owner": owner_id})).fetchone()
    return row[0] if row else 0


async def show_notification(connection: Connection, owner_id: UUID, notification: UUID) -> Notification:
    rows = await _read(connection, owner_id, id=notification)
    if not rows:
        raise NotFound
    return _as_notification(rows[0])


async def mark_read(connection: Connection, owner_id: UUID, notification: UUID) -> Notification:
    """Mark a notification as read. A notification that was read before keeps the time when it was first read."""
    await connection.execute(QUERIES.mark_read, {"owner": owner_id, "id": notification})
    return await show_notification(connection, owner_id, notification)


async def mark_all_read(connection: Connection, owner_id: UUID) -> int:
    return (await connection.execute(QUERIES.mark_read, {"owner": owner_id, "id": None})).rowcount


async def resolve(connection: Connection, owner_id: UUID, user_id: UUID | None, notification: UUID) -> Notification:
    """Mark a notification about an error as resolved, and store the time and the user.

    Later calls do not change the stored time and user. `user_id` is None for callers without a user account.
    """
    await connection.execute(QUERIES.resolve, {"owner": owner_id, "id": notification, "user": user_id})
    found = await show_notification(connection, owner_id, notification)
    if found.level != "error":
        raise NotAnError
    return found


async def forget_notifications(database: Database) -> int:
    """Delete old notifications. Errors are kept until they have been resolved.

    The events themselves are not deleted.
    """
    async with database.connection() as connection:
        return (await connection.execute(QUERIES.forget_notifications, {"days": KEPT_DAYS})).rowcount


async def _read(connection: Connection, owner_id: UUID, **wanted: Any) -> list[Row]:  # noqa: ANN401
    values = {"id": None, "unread": False, "before_at": None, "before_id": None, "most": 1}
    return await fetch_rows(connection, QUERIES.notifications, values | {"owner": owner_id} | wanted)


def _as_notification(row: Row) -> Notification:
    names = ("type", "process_id", "document_id", "title", "error_code", "reason")
    about = Subject(**{name: row[name] for name in names})
    return Notification(**row, sentence=describe(about).sentence, link=path_of(about))
