"""API calls for webhooks and other recipients of events, and for notifications inside the application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from octavo.client.calls import MOST_LISTED, Call, Calls, given
from octavo.client.transport import Repeat
from octavo.core.pagination import Page
from octavo.records.deliveries import (
    ChannelName,
    DeliveryAttempt,
    EventType,
    NewSubscriber,
    Notification,
    NotificationPage,
    ReadCount,
    Subscriber,
    TestJob,
)


class DeliveryCalls(Calls):
    """API calls for recipients of events, and for notifications."""

    @Call
    async def list_webhooks(self) -> list[Subscriber]:
        """List recipients, oldest first."""
        return (await self._list(Subscriber, "/webhooks")).items

    @Call
    async def add_webhook(
        self, address: str, events: Sequence[EventType] | None = None, *, channel: ChannelName = "webhook"
    ) -> NewSubscriber:
        """Add a recipient: a URL or, for the channel `mail`, an email address. The secret is returned only once.

        By default, it gets the events that most people want.
        """
        chosen = list(events) if events is not None else None
        return await self._post(NewSubscriber, "/webhooks", given(channel=channel, address=address, events=chosen))

    @Call
    async def show_webhook(self, webhook: UUID) -> Subscriber:
        return await self._get(Subscriber, f"/webhooks/{webhook}")

    @Call
    async def edit_webhook(self, webhook: UUID, changes: Mapping[str, object]) -> Subscriber:
        """Change the `address` or the `events` of a recipient, or pause it with `active` set to False."""
        return await self._patch(Subscriber, f"/webhooks/{webhook}", changes)

    @Call
    async def delete_webhook(self, webhook: UUID) -> None:
        await self._delete(f"/webhooks/{webhook}")

    @Call
    async def rotate_webhook(self, webhook: UUID) -> NewSubscriber:
        """Replace the secret of a webhook. Deliveries are signed with both secrets for a day."""
        return await self._post(NewSubscriber, f"/webhooks/{webhook}/rotate")

    @Call
    async def test_webhook(self, webhook: UUID) -> UUID:
        """Send a test event. Returns the id of the job that sends it."""
        return (await self._post(TestJob, f"/webhooks/{webhook}/test")).job_id

    @Call
    async def list_deliveries(
        self, webhook: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[DeliveryAttempt]:
        """List the attempts to send events to a recipient, newest first."""
        return await self._list(DeliveryAttempt, f"/webhooks/{webhook}/deliveries", cursor=cursor, limit=limit)

    @Call
    async def replay_delivery(self, webhook: UUID, delivery: UUID) -> UUID:
        """Send an event to a recipient again. Returns the id of the job that sends it."""
        return (await self._post(TestJob, f"/webhooks/{webhook}/deliveries/{delivery}/replay")).job_id

    # Notifications -------------------------------------------------------------------------------------------------

    @Call
    async def list_notifications(
        self, *, unread: bool = False, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> NotificationPage:
        """List notifications, newest first. `unread`: only unread ones."""
        return await self._get(NotificationPage, "/notifications", unread=unread or None, cursor=cursor, limit=limit)

    @Call
    async def mark_all_read(self) -> int:
        """Mark all notifications as read. Returns the number that were unread."""
        return (await self._post(ReadCount, "/notifications/read", repeat=Repeat.SAFE)).marked

    @Call
    async def mark_read(self, notification: UUID) -> Notification:
        return await self._post(Notification, f"/notifications/{notification}/read", repeat=Repeat.SAFE)

    @Call
    async def resolve_notification(self, notification: UUID) -> Notification:
        """Mark an error as resolved."""
        return await self._post(Notification, f"/notifications/{notification}/resolve", repeat=Repeat.SAFE)
