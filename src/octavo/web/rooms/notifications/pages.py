"""The notifications page: documents that are ready, errors, and the people who resolved them."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from octavo.deliver import notifications
from octavo.deliver.notifications import Notification
from octavo.owners.members import list_members
from octavo.web.context.callers import WriteCaller
from octavo.web.context.services import ServicesOf
from octavo.web.shell.forms import local_path
from octavo.web.shell.frame import LOCAL_OWNER, Frame, FrameFor
from octavo.web.shell.templates import back_to, render

router = APIRouter(include_in_schema=False, prefix="/notifications")
NotificationsFrame = Annotated[Frame, Depends(FrameFor("notifications"))]
Back = Annotated[str, Form(max_length=2000)]
ROWS = 50
HERE = "/notifications"
# The page that the link of a notification opens, by the first part of its type.
OPENERS = {"analysis": "Open analysis", "conversion": "Open conversion", "webhook": "Open recipient"}


@router.get("")
async def list_notifications(
    request: Request,
    services: ServicesOf,
    frame: NotificationsFrame,
    show: Annotated[str, Query(max_length=20)] = "",
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> Response:
    owner, unread = frame.caller.owner_id, show == "unread"
    async with services.database.connection() as connection:
        page = await notifications.list_notifications(connection, owner, unread=unread, cursor=cursor, limit=ROWS)
        people = {one.user_id: one.email for one in await list_members(connection, owner)}
    here = f"{HERE}?show=unread" if unread else HERE
    chosen = {"show": "unread"} if unread else {}
    more = f"{HERE}?{urlencode(chosen | {'cursor': page.next_cursor})}" if page.next_cursor else None
    return render(
        request,
        "notifications.html",
        frame,
        page=page,
        only_unread=unread,
        here=here,
        more=more,
        openers=OPENERS,
        resolver=lambda one: _resolver(one, people),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    )


def _resolver(notification: Notification, people: dict[UUID, str]) -> str:
    if notification.resolved_by is None:
        return LOCAL_OWNER
    return people.get(notification.resolved_by, "a former member")


@router.post("/read")
async def mark_all_read(services: ServicesOf, caller: WriteCaller, back: Back = HERE) -> Response:
    async with services.database.transaction() as connection:
        await notifications.mark_all_read(connection, caller.owner_id)
    return back_to(local_path(back, HERE))


@router.post("/{notification}/read")
async def mark_read(services: ServicesOf, caller: WriteCaller, notification: UUID, back: Back = HERE) -> Response:
    async with services.database.transaction() as connection:
        await notifications.mark_read(connection, caller.owner_id, notification)
    return back_to(local_path(back, HERE))


@router.post("/{notification}/resolve")
async def resolve(services: ServicesOf, caller: WriteCaller, notification: UUID, back: Back = HERE) -> Response:
    async with services.database.transaction() as connection:
        await notifications.resolve(connection, caller.owner_id, caller.user_id, notification)
    return back_to(local_path(back, HERE))
