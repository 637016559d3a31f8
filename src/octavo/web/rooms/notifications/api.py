"""The API for notifications, and for recipients that Octavo sends events to: webhooks, mail and chats."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from octavo.core.errors import BadInput
from octavo.core.http import Page
from octavo.deliver import subscribers
from octavo.deliver.deliveries import known_channels
from octavo.deliver.messages import DEFAULT_EVENTS, EventType
from octavo.deliver.subscribers import (
    ChannelName,
    DeliveryAttempt,
    NewSubscriber,
    Notification,
    NotificationPage,
    Subscriber,
)
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.records.deliveries import ReadCount, TestJob
from octavo.web.context.callers import KnownCaller, ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import Cursor, IfMatch, Limit, check_match, etag_of, lock_edit, problems

router = APIRouter(prefix="/api/v1/notifications", tags=["notifications"])


@router.get("", responses=problems(401, 422))
async def list_notifications(
    services: ServicesOf,
    caller: ReadCaller,
    unread: bool = False,  # noqa: FBT001, FBT002 - a query parameter
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> NotificationPage:
    """List your notifications, newest first. If `unread` is true, only unread ones are listed."""
    async with services.database.connection() as connection:
        return await subscribers.list_notifications(
            connection, caller.owner_id, unread=unread, cursor=cursor, limit=limit
        )


@router.post("/read", responses=problems(401, 403))
async def mark_all_read(services: ServicesOf, caller: WriteCaller) -> ReadCount:
    """Mark all notifications as read."""
    async with services.database.transaction() as connection:
        return ReadCount(await subscribers.mark_all_read(connection, caller.owner_id))


@router.post("/{notification}/read", responses=problems(401, 403, 404, 422))
async def mark_read(services: ServicesOf, caller: WriteCaller, notification: UUID) -> Notification:
    """Mark a notification as read."""
    async with services.database.transaction() as connection:
        return await subscribers.mark_read(connection, caller.owner_id, notification)


@router.post("/{notification}/resolve", responses=problems(401, 403, 404, 409, 422))
async def resolve(services: ServicesOf, caller: WriteCaller, notification: UUID) -> Notification:
    """Mark an error as resolved. The person and the time are stored."""
    async with services.database.transaction() as connection:
        return await subscribers.resolve(connection, caller.owner_id, caller.user_id, notification)


webhooks_router = APIRouter(prefix="/api/v1/webhooks", tags=["webhooks"])

Address = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00-\x20\x7f]+$")]
Events = Annotated[list[EventType], Field(min_length=1, max_length=100)]


class WebhookRequest(BaseModel):
    """A recipient to add. `address` is a URL or, for the `mail` channel, an email address.

    `channel` is `webhook`, `mail`, `slack`, or the name of a channel that an extension adds.
    """

    model_config = ConfigDict(extra="forbid")

    channel: Annotated[ChannelName, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")] = "webhook"
    address: Address
    events: Events = list(DEFAULT_EVENTS)


class WebhookEdit(BaseModel):
    """Changes to a recipient. Fields that are not sent stay unchanged."""

    model_config = ConfigDict(extra="forbid")

    address: Address | None = None
    events: Events | None = None
    active: StrictBool | None = None


@webhooks_router.get("", responses=problems(401))
async def list_webhooks(services: ServicesOf, caller: KnownCaller) -> Page[Subscriber]:
    """List your recipients, oldest first."""
    async with services.database.connection() as connection:
        return Page(await subscribers.list_subscribers(connection, caller.owner_id), None)


@webhooks_router.post("", status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add_webhook(
    services: ServicesOf, caller: KnownCaller, wanted: WebhookRequest, idempotency: IdempotencyOf
) -> NewSubscriber:
    """Add a recipient. The `secret` that signs webhooks is returned only once, in this response."""
    channels = known_channels(services.settings)
    if wanted.channel not in channels.names:
        raise BadInput(f"channel: must be one of {', '.join(channels.names)}.")
    async with services.database.transaction() as connection:
        added = await subscribers.add_subscriber(
            connection,
            caller,
            channels,
            channel=wanted.channel,
            address=wanted.address,
            events=wanted.events,
        )
        return await idempotency.keep(connection, added)


@webhooks_router.get("/{webhook}", responses=problems(401, 404, 422))
async def show_webhook(services: ServicesOf, caller: KnownCaller, webhook: UUID, response: Response) -> Subscriber:
    """Return one recipient."""
    async with services.database.connection() as connection:
        found = await subscribers.show_subscriber(connection, caller.owner_id, webhook)
    response.headers["etag"] = webhook_etag(found)
    return found


def webhook_etag(found: Subscriber) -> str:
    return etag_of(found.address, found.events, found.active)


@webhooks_router.patch("/{webhook}", responses=problems(400, 401, 403, 404, 422))
async def edit_webhook(
    services: ServicesOf,
    caller: KnownCaller,
    webhook: UUID,
    wanted: WebhookEdit,
    response: Response,
    if_match: IfMatch = None,
) -> Subscriber:
    """Change, pause or resume a recipient. Events that happen during a pause are never sent."""
    async with services.database.transaction() as connection:
        if if_match is not None:
            await lock_edit(connection, if_match, webhook)
            check_match(if_match, webhook_etag(await subscribers.show_subscriber(connection, caller.owner_id, webhook)))
        edited = await subscribers.edit_subscriber(
            connection,
            caller,
            known_channels(services.settings),
            webhook,
            address=wanted.address,
            events=wanted.events,
            active=wanted.active,
        )
    response.headers["etag"] = webhook_etag(edited)
    return edited


@webhooks_router.delete("/{webhook}", status_code=204, responses=problems(401, 403, 404, 422))
async def delete_webhook(services: ServicesOf, caller: KnownCaller, webhook: UUID) -> None:
    """Delete a recipient and its pending deliveries."""
    async with services.database.transaction() as connection:
        await subscribers.delete_subscriber(connection, caller, webhook)


@webhooks_router.post("/{webhook}/test", status_code=202, responses=problems(401, 403, 404, 422))
async def test_webhook(services: ServicesOf, caller: KnownCaller, webhook: UUID, idempotency: IdempotencyOf) -> TestJob:
    """Send a test event now. The delivery is attempted only once."""
    async with services.database.transaction() as connection:
        return await idempotency.keep(connection, TestJob(await subscribers.send_test(connection, caller, webhook)))


@webhooks_router.get("/{webhook}/deliveries", responses=problems(401, 404, 422))
async def list_deliveries(
    services: ServicesOf, caller: KnownCaller, webhook: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[DeliveryAttempt]:
    """List the delivery attempts of the last 90 days, newest first."""
    async with services.database.connection() as connection:
        return await subscribers.list_attempts(connection, caller.owner_id, webhook, cursor=cursor, limit=limit)


@webhooks_router.post(
    "/{webhook}/deliveries/{delivery}/replay", status_code=202, responses=problems(401, 403, 404, 409, 422)
)
async def replay_delivery(
    services: ServicesOf, caller: KnownCaller, webhook: UUID, delivery: UUID, idempotency: IdempotencyOf
) -> TestJob:
    """Send the event of an earlier delivery attempt again, with the same `webhook-id`."""
    async with services.database.transaction() as connection:
        job = await subscribers.replay_delivery(connection, caller, webhook, delivery)
        return await idempotency.keep(connection, TestJob(job))


@webhooks_router.post("/{webhook}/rotate", responses=problems(401, 403, 404, 409, 422))
async def rotate_secret(
    services: ServicesOf, caller: KnownCaller, webhook: UUID, idempotency: IdempotencyOf
) -> NewSubscriber:
    """Give a webhook a new `secret`, which is returned only once.

    For 24 hours, the old secret signs webhooks as well: `webhook-signature` then contains two signatures.
    """
    async with services.database.transaction() as connection:
        return await idempotency.keep(connection, await subscribers.rotate_secret(connection, caller, webhook))
