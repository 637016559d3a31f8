"""What you are told: what is ready, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from fastapi import APIRouter

from octavo.deliver import notifications
from octavo.deliver.notifications import Notification, NotificationPage
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.web.api import Cursor, Limit, problems
from octavo.web.parts import PartsOf, Reading, Writing

router = APIRouter(prefix="/api/v1/notifications", tags=["notifications"])


@dataclass(frozen=True, slots=True)
class MarkedRead:
    """How many were unread before."""

    marked: int


@router.get("", responses=problems(401, 422))
async def list_notifications(
    parts: PartsOf,
    caller: Reading,
    unread: bool = False,  # noqa: FBT001, FBT002 - a query parameter
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> NotificationPage:
    """Newest first; with `unread` only those that nobody has read."""
    async with parts.database.connection() as connection:
        return await notifications.list_notifications(
            connection, caller.owner_id, unread=unread, cursor=cursor, limit=limit
        )


@router.post("/read", responses=problems(401, 403))
async def mark_all_read(parts: PartsOf, caller: Writing) -> MarkedRead:
    """All of them."""
    async with parts.database.transaction() as connection:
        return MarkedRead(await notifications.mark_all_read(connection, caller.owner_id))


@router.post("/{notification}/read", responses=problems(401, 403, 404, 422))
async def mark_read(parts: PartsOf, caller: Writing, notification: UUID) -> Notification:
    async with parts.database.transaction() as connection:
        return await notifications.mark_read(connection, caller.owner_id, notification)


@router.post("/{notification}/resolve", responses=problems(401, 403, 404, 409, 422))
async def resolve(parts: PartsOf, caller: Writing, notification: UUID) -> Notification:
    """An error that needs nobody any more; who said so, and when, is kept."""
    async with parts.database.transaction() as connection:
        return await notifications.resolve(connection, caller.owner_id, caller.user_id, notification)
