"""The notifications page, and the settings page for webhooks, mail and chats that receive events, with their logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from octavo.core.errors import BadInput, NotAllowed, NotFound
from octavo.core.extensions import ExtensionKind, extension_names
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.deliver import subscribers
from octavo.deliver.channels import UnknownChannel
from octavo.deliver.deliveries import known_channels
from octavo.deliver.messages import DEFAULT_EVENTS, EventType
from octavo.deliver.subscribers import Notification, Subscriber
from octavo.owners import Caller
from octavo.owners.members import list_members
from octavo.web.context.callers import KnownCaller, WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.notifications.api import WebhookEdit, WebhookRequest
from octavo.web.shell.forms import Question, ask, local_path, read_form
from octavo.web.shell.frame import LOCAL_OWNER, Frame, FrameFor, back_to, render
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(include_in_schema=False, prefix="/notifications")
NotificationsFrame = Annotated[Frame, Depends(FrameFor("notifications"))]
Back = Annotated[str, Form(max_length=2000)]
ROWS = 50
HERE = "/notifications"
# The page that the link of a notification opens, by the first part of its type.
OPENERS = Texts(
    {
        "analysis": "Open analysis",
        "conversion": "Open conversion",
        "webhook": "Open recipient",
        "import": "Open library",
    }
)
webhooks_router = APIRouter(include_in_schema=False, prefix="/settings/webhooks")
Field = Annotated[str, Form(max_length=4000)]
CHANNELS = Texts({"webhook": "Webhook", "mail": "Email", "slack": "Slack or compatible chat"})
# The most useful events; the API offers all of them.
EVENTS: Mapping[EventType, str] = Texts(
    {
        "document.completed": "A document is ready",
        "import.completed": "An import is finished",
        "document.failed": "A document could not be processed",
        "document.rejected": "A file was rejected",
        "document.created": "A document was added",
        "document.deleted": "A document was moved to the trash",
        "analysis.completed": "An analysis is complete",
        "analysis.failed": "An analysis failed",
        "analysis.stalled": "An analysis stalled",
        "analysis.abandoned": "An analysis was abandoned",
        "conversion.completed": "A conversion is complete",
        "conversion.needs_review": "A conversion needs review",
        "conversion.failed": "A conversion failed",
        "conversion.batch": "A batch of conversions is done",
        "job.failed": "A job failed",
        "job.dead_letter": "A job failed for good",
    }
)
WRONG = Texts(
    {
        "channel": "Choose a channel.",
        "address": "Enter a URL or an email address without spaces, of at most 2,000 characters.",
        "events": "Choose at least one event.",
    }
)


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
        page = await subscribers.list_notifications(connection, owner, unread=unread, cursor=cursor, limit=ROWS)
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
        return _(LOCAL_OWNER)
    return people.get(notification.resolved_by, _("a former member"))


@router.post("/read")
async def mark_all_read(services: ServicesOf, caller: WriteCaller, back: Back = HERE) -> Response:
    async with services.database.transaction() as connection:
        await subscribers.mark_all_read(connection, caller.owner_id)
    return back_to(local_path(back, HERE))


@router.post("/{notification}/read")
async def mark_read(services: ServicesOf, caller: WriteCaller, notification: UUID, back: Back = HERE) -> Response:
    async with services.database.transaction() as connection:
        await subscribers.mark_read(connection, caller.owner_id, notification)
    return back_to(local_path(back, HERE))


@router.post("/{notification}/resolve")
async def resolve(services: ServicesOf, caller: WriteCaller, notification: UUID, back: Back = HERE) -> Response:
    async with services.database.transaction() as connection:
        await subscribers.resolve(connection, caller.owner_id, caller.user_id, notification)
    return back_to(local_path(back, HERE))


@webhooks_router.get("")
async def list_webhooks(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    return await _show(request, services, frame, said=said)


def _channel_labels(hooks: Iterable[Subscriber]) -> dict[str, str]:
    """Return the labels of all channels. Channels that extensions add are labelled with their names."""
    added = [*extension_names(ExtensionKind.CHANNEL), *(hook.channel for hook in hooks)]
    return {**CHANNELS, **{name: name for name in added if name not in CHANNELS}}


async def _show(request: Request, services: Services, frame: Frame, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    if frame.caller.is_anonymous:
        raise NotAllowed(_("Create an account to add recipients."))
    async with services.database.connection() as connection:
        found = await subscribers.list_subscribers(connection, frame.caller.owner_id)
    more = {"hooks": found, "hook": None, "channels": _channel_labels(found), "events": EVENTS, "usual": DEFAULT_EVENTS}
    values["mail"] = services.settings.smtp_url is not None
    return show(request, "webhooks", frame, status, **more, **values)


@webhooks_router.post("")
async def add_webhook(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    channel: Field = "webhook",
    address: Field = "",
    events: Annotated[list[str] | None, Form(max_length=100)] = None,
) -> Response:
    """Add a recipient. The page is rendered without a redirect, because the secret is shown only once."""
    given = {"channel": channel, "address": address.strip(), "events": events or []}
    wanted, wrong = read_form(WebhookRequest, given, WRONG)
    status = 422
    if wanted:
        try:
            async with services.database.transaction() as connection:
                made = await subscribers.add_subscriber(
                    connection,
                    frame.caller,
                    known_channels(services.settings),
                    channel=wanted.channel,
                    address=wanted.address,
                    events=wanted.events,
                )
            return await _show(request, services, frame, 201, made=made)
        except NotAllowed:
            raise
        except UnknownChannel:
            wrong = {"channel": WRONG["channel"]}
        except BadInput as error:
            wrong, status = {"address": error.line}, error.status
    return await _show(request, services, frame, status, wrong=wrong, chosen=given)


@webhooks_router.get("/{webhook}")
async def show_webhook(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    webhook: UUID,
    said: str = "",
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> Response:
    return await _show_one(request, services, frame, webhook, cursor, said=said)


@webhooks_router.post("/{webhook}")
async def edit_webhook(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    webhook: UUID,
    address: Field = "",
    events: Annotated[list[str] | None, Form(max_length=100)] = None,
) -> Response:
    """Change the address and the events of a recipient."""
    async with services.database.connection() as connection:
        hook = await subscribers.show_subscriber(connection, frame.caller.owner_id, webhook)
    given: dict[str, Any] = {"address": address.strip(), "events": events or []}
    # The address of a chat is shown shortened, so it is read only if it was changed.
    changed = given if given["address"] != hook.address else {"events": given["events"]}
    wanted, wrong = read_form(WebhookEdit, changed, WRONG)
    status = 422
    if wanted:
        try:
            await _edit(services, frame.caller, webhook, address=wanted.address, events=wanted.events)
            return back_to(f"/settings/webhooks/{webhook}?said=edited")
        except (NotAllowed, NotFound):
            raise
        except BadInput as error:
            wrong, status = {"address": error.line}, error.status
    return await _show_one(request, services, frame, webhook, None, status, wrong=wrong, chosen=given)


async def _show_one(
    request: Request,
    services: Services,
    frame: Frame,
    webhook: UUID,
    cursor: str | None = None,
    status: int = 200,
    **shown: Any,  # noqa: ANN401
) -> Response:
    """Show one recipient with its delivery log."""
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        hook = await subscribers.show_subscriber(connection, owner, webhook)
        page = await subscribers.list_attempts(connection, owner, webhook, cursor=cursor, limit=ROWS)
    more = f"/settings/webhooks/{webhook}?{urlencode({'cursor': page.next_cursor})}" if page.next_cursor else None
    values: dict[str, Any] = {"hook": hook, "tries": page.items, "more": more, "channels": _channel_labels([hook])}
    values |= {"events": EVENTS}
    return show(request, "webhooks", frame, status, **values, **shown)


@webhooks_router.post("/{webhook}/pause")
async def pause(services: ServicesOf, caller: KnownCaller, webhook: UUID) -> Response:
    return await _switch(services, caller, webhook, active=False)


@webhooks_router.post("/{webhook}/resume")
async def resume(services: ServicesOf, caller: KnownCaller, webhook: UUID) -> Response:
    return await _switch(services, caller, webhook, active=True)


async def _switch(services: Services, caller: KnownCaller, webhook: UUID, *, active: bool) -> Response:
    await _edit(services, caller, webhook, active=active)
    return back_to(f"/settings/webhooks/{webhook}?said={'resumed' if active else 'paused'}")


async def _edit(services: Services, caller: Caller, webhook: UUID, **changes: Any) -> None:  # noqa: ANN401
    async with services.database.transaction() as connection:
        await subscribers.edit_subscriber(connection, caller, known_channels(services.settings), webhook, **changes)


@webhooks_router.post("/{webhook}/test")
async def send_test(services: ServicesOf, caller: KnownCaller, webhook: UUID) -> Response:
    async with services.database.transaction() as connection:
        await subscribers.send_test(connection, caller, webhook)
    return back_to(f"/settings/webhooks/{webhook}?said=tested")


@webhooks_router.post("/{webhook}/rotate")
async def rotate(request: Request, services: ServicesOf, frame: SettingsFrame, webhook: UUID) -> Response:
    """Give a webhook a new secret. The page is rendered without a redirect, because the secret is shown only once."""
    async with services.database.transaction() as connection:
        made = await subscribers.rotate_secret(connection, frame.caller, webhook)
    return await _show_one(request, services, frame, webhook, rotated=made.secret)


@webhooks_router.post("/{webhook}/deliveries/{delivery}/replay")
async def replay(services: ServicesOf, caller: KnownCaller, webhook: UUID, delivery: UUID) -> Response:
    async with services.database.transaction() as connection:
        await subscribers.replay_delivery(connection, caller, webhook, delivery)
    return back_to(f"/settings/webhooks/{webhook}?said=replayed")


@webhooks_router.get("/{webhook}/delete")
async def ask_to_delete(request: Request, services: ServicesOf, frame: SettingsFrame, webhook: UUID) -> Response:
    async with services.database.connection() as connection:
        hook = await subscribers.show_subscriber(connection, frame.caller.owner_id, webhook)
    question = Question(
        title=_("Delete %(address)s?", address=hook.address),
        text=_("No more events will be sent, and the delivery log will be deleted."),
        action=f"/settings/webhooks/{webhook}/delete",
        verb=_("Delete"),
        keep=f"/settings/webhooks/{webhook}",
    )
    return ask(request, question, frame)


@webhooks_router.post("/{webhook}/delete")
async def delete(services: ServicesOf, caller: KnownCaller, webhook: UUID) -> Response:
    async with services.database.transaction() as connection:
        await subscribers.delete_subscriber(connection, caller, webhook)
    return back_to("/settings/webhooks?said=deleted")
