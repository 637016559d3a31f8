"""The API for invitations, sessions and links that set a new password."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict

from octavo.core.pagination import Page
from octavo.owners import account_links, invitations, sessions
from octavo.records.account import Invitation, NewInvitation, ResetLink, SessionView
from octavo.web.context.callers import AdminCaller, KnownCaller, session_secret
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import Email, problems
from octavo.web.rooms.account import people
from octavo.web.rooms.account.mail import public_address
from octavo.web.rooms.account.people import NewInvitationRequest

invitations_router = APIRouter(prefix="/api/v1/invitations", tags=["account"])
sessions_router = APIRouter(prefix="/api/v1/sessions", tags=["account"])
reset_router = APIRouter(prefix="/api/v1/admin/reset-links", tags=["admin"])


class ResetLinkRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    email: Email
    clear_second_factor: bool = False


@invitations_router.get("", responses=problems(401, 403))
async def list_invitations(services: ServicesOf, caller: KnownCaller) -> Page[Invitation]:
    """List the open invitations to the current account, newest first."""
    async with services.database.connection() as connection:
        return Page(await invitations.list_invitations(connection, caller), None)


@invitations_router.post("", status_code=201, responses=problems(400, 401, 403, 422, 429))
async def invite(
    request: Request, services: ServicesOf, caller: KnownCaller, wanted: NewInvitationRequest
) -> NewInvitation:
    """Invite a person to become a member.

    The link works once. It is sent by mail if a mail server is set up, and returned only in this response.
    """
    return await people.invite(request, services, caller, wanted)


@invitations_router.delete("/{invitation}", status_code=204, responses=problems(401, 403, 404, 422))
async def withdraw_invitation(services: ServicesOf, caller: KnownCaller, invitation: UUID) -> None:
    """Withdraw an invitation. Its link stops working."""
    async with services.database.transaction() as connection:
        await invitations.withdraw(connection, caller, invitation)


@sessions_router.get("", responses=problems(401, 403))
async def list_sessions(request: Request, services: ServicesOf, caller: KnownCaller) -> Page[SessionView]:
    """List the browsers with which you are signed in, beginning with this one."""
    async with services.database.connection() as connection:
        return Page(await sessions.list_sessions(connection, caller, session_secret(request) or ""), None)


@sessions_router.delete("/{session}", status_code=204, responses=problems(401, 403, 404, 422))
async def revoke_session(services: ServicesOf, caller: KnownCaller, session: UUID) -> None:
    """Sign out one of your browsers."""
    async with services.database.transaction() as connection:
        await sessions.revoke_session(connection, caller, session)
    services.live.recheck(caller.owner_id)


@reset_router.post("", status_code=201, responses=problems(400, 401, 403, 404, 422))
async def make_reset_link(
    request: Request, services: ServicesOf, caller: AdminCaller, wanted: ResetLinkRequest
) -> ResetLink:
    """Create a link that lets a person set a new password. It works once, within an hour."""
    del caller
    async with services.database.transaction() as connection:
        token, expires_at = await account_links.make_reset_token_for(
            connection, wanted.email, clears=wanted.clear_second_factor
        )
    return ResetLink(public_address(request, services, people.reset_path(token)), expires_at)
