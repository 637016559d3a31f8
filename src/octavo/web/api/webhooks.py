"""Where your events are sent: webhooks for programs, mail and chats for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from octavo.core.pages import Page
from octavo.deliver import subscribers
from octavo.deliver.channels import known_channels
from octavo.deliver.messages import DEFAULT_EVENTS, EventType
from octavo.deliver.subscribers import ChannelName, NewSubscriber, Subscriber, Try
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.web.api import Cursor, Limit, problems
from octavo.web.parts import Known, PartsOf

router = APIRouter(prefix="/api/v1/webhooks", tags=["webhooks"])

Address = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00-\x20\x7f]+$")]
Events = Annotated[list[EventType], Field(min_length=1, max_length=100)]


class WebhookWanted(BaseModel):
    """`address` is a web address, or for the channel mail a mail address."""

    model_config = ConfigDict(extra="forbid")

    channel: ChannelName = "webhook"
    address: Address
    events: Events = list(DEFAULT_EVENTS)


class WebhookEdit(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    address: Address | None = None
    events: Events | None = None
    active: StrictBool | None = None


@dataclass(frozen=True, slots=True)
class TestStarted:
    """The job that sends the test; its state says how it went."""

    job_id: UUID


@router.get("", responses=problems(401))
async def list_webhooks(parts: PartsOf, caller: Known) -> Page[Subscriber]:
    """All of yours, oldest first."""
    async with parts.database.connection() as connection:
        return Page(await subscribers.list_subscribers(connection, caller.owner_id), None)


@router.post("", status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add_webhook(parts: PartsOf, caller: Known, wanted: WebhookWanted) -> NewSubscriber:
    """Send events there from now on. `secret`, which webhooks are signed with, is shown this once and never again."""
    async with parts.database.transaction() as connection:
        return await subscribers.add_subscriber(
            connection,
            caller,
            known_channels(parts.settings),
            channel=wanted.channel,
            address=wanted.address,
            events=wanted.events,
        )


@router.get("/{webhook}", responses=problems(401, 404, 422))
async def show_webhook(parts: PartsOf, caller: Known, webhook: UUID) -> Subscriber:
    async with parts.database.connection() as connection:
        return await subscribers.show_subscriber(connection, caller.owner_id, webhook)


@router.patch("/{webhook}", responses=problems(400, 401, 403, 404, 422))
async def edit_webhook(parts: PartsOf, caller: Known, webhook: UUID, wanted: WebhookEdit) -> Subscriber:
    """Change it, stop it or start it again; what happens while it is stopped is never sent."""
    async with parts.database.transaction() as connection:
        return await subscribers.edit_subscriber(
            connection,
            caller,
            known_channels(parts.settings),
            webhook,
            address=wanted.address,
            events=wanted.events,
            active=wanted.active,
        )


@router.delete("/{webhook}", status_code=204, responses=problems(401, 403, 404, 422))
async def delete_webhook(parts: PartsOf, caller: Known, webhook: UUID) -> None:
    """With what was still to be sent there."""
    async with parts.database.transaction() as connection:
        await subscribers.delete_subscriber(connection, caller, webhook)


@router.post("/{webhook}/test", status_code=202, responses=problems(401, 403, 404, 422))
async def test_webhook(parts: PartsOf, caller: Known, webhook: UUID) -> TestStarted:
    """Send a test there now, signed like everything else; it is tried once."""
    async with parts.database.transaction() as connection:
        return TestStarted(await subscribers.send_test(connection, caller, webhook))


@router.get("/{webhook}/deliveries", responses=problems(401, 404, 422))
async def list_deliveries(
    parts: PartsOf, caller: Known, webhook: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[Try]:
    """Every try of the last months, newest first."""
    async with parts.database.connection() as connection:
        return await subscribers.list_tries(connection, caller.owner_id, webhook, cursor=cursor, limit=limit)
