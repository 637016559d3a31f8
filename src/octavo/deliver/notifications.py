"""Notifications inside the application. People mark them as read; errors can also be marked as resolved."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from octavo.core.errors import BadInput, NotFound
from octavo.core.pagination import make_cursor, read_cursor
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.deliver.messages import Subject, describe, path_of
from octavo.records.deliveries import Notification, NotificationPage

QUERIES = load_queries("deliveries")
KEPT_DAYS = 90


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
    items = [_as_view(row) for row in rows[:limit]]
    more = make_cursor(items[-1].created_at, items[-1].id) if len(rows) > limit else None
    return NotificationPage(items, more, await count_unread(connection, owner_id))


async def count_unread(connection: Connection, owner_id: UUID) -> int:
    row = await (await connection.execute(QUERIES.count_unread, {"owner": owner_id})).fetchone()
    return row[0] if row else 0


async def show_notification(connection: Connection, owner_id: UUID, notification: UUID) -> Notification:
    rows = await _read(connection, owner_id, id=notification)
    if not rows:
        raise NotFound
    return _as_view(rows[0])


async def mark_read(connection: Connection, owner_id: UUID, notification: UUID) -> Notification:
    """Mark a notification as read. If it has already been read, the time at which it was first read is kept."""
    await connection.execute(QUERIES.mark_read, {"owner": owner_id, "id": notification})
    return await show_notification(connection, owner_id, notification)


async def mark_all_read(connection: Connection, owner_id: UUID) -> int:
    return (await connection.execute(QUERIES.mark_read, {"owner": owner_id, "id": None})).rowcount


async def resolve(connection: Connection, owner_id: UUID, user_id: UUID | None, notification: UUID) -> Notification:
    """Mark a notification about an error as resolved, and store the time and the user.

    Later calls change neither of them. `user_id` is None for callers without a user account.
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


def _as_view(row: Row) -> Notification:
    names = ("type", "process_id", "document_id", "title", "error_code", "reason")
    about = Subject(**{name: row[name] for name in names})
    return Notification(**row, sentence=describe(about).sentence, link=path_of(about))
