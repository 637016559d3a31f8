"""Invitations and forgotten passwords, for the pages and the API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from octavo.core.settings import Settings
from octavo.owners import Caller, Role, account_links, invitations
from octavo.owners.accounts import find_account
from octavo.owners.invitations import DEFAULT_DAYS, MOST_DAYS
from octavo.records.account import NewInvitation
from octavo.web.context.callers import address_of
from octavo.web.context.services import Services
from octavo.web.http.parameters import WHOLE, Email
from octavo.web.rooms.account.mail import mail_link, public_address

INVITED = "You are invited to a document library. Open this link to join. It works once, until {day}."
FORGOTTEN = (
    "Somebody asked for a new password for your account. Open this link within an hour to set one. If it was not you, "
    "ignore this message."
)


def invitation_path(token: str) -> str:
    return f"/invitation?{urlencode({'token': token})}"


def reset_path(token: str) -> str:
    return f"/reset-password?{urlencode({'token': token})}"


class NewInvitationRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    email: Email
    role: Role = "member"
    limited: bool = False
    expires_in_days: Annotated[int, Field(ge=1, le=MOST_DAYS), WHOLE] = DEFAULT_DAYS


async def invite(request: Request, services: Services, caller: Caller, wanted: NewInvitationRequest) -> NewInvitation:
    """Create an invitation, and send it by mail if a mail server is set up."""
    await services.limits.admit_invitation(caller)
    async with services.database.transaction() as connection:
        made, token = await invitations.invite(
            connection, caller, wanted.email, wanted.role, wanted.expires_in_days, limited=wanted.limited
        )
    link = public_address(request, services, invitation_path(token))
    text = INVITED.format(day=f"{made.expires_at:%-d %B %Y}")
    mailed = await mail_link(services, made.email, "Invitation to Octavo", text, link)
    return NewInvitation(**asdict(made), link=link, mailed=mailed)


def mails_reset_links(settings: Settings) -> bool:
    """Whether people can ask for a link by mail.

    The link begins with the public URL from the settings. The Host header is not used, because anybody can request a
    mail to somebody else with a Host header that leads to their own server, and would receive the token.
    """
    return settings.smtp_url is not None and settings.public_url is not None


async def mail_reset_link(services: Services, email: str) -> None:
    """Send a link for a new password if there is an account with this address.

    Runs after the response, so that the response time does not reveal whether there is such an account.
    """
    if not mails_reset_links(services.settings):
        return
    async with services.database.transaction() as connection:
        account = await find_account(connection, email)
        if account is None:
            return
        token, _ = await account_links.make_reset_token(connection, account)
    link = f"{services.settings.public_url}{reset_path(token)}"
    await mail_link(services, account.email, "New password for Octavo", FORGOTTEN, link)


async def admit_reset(request: Request, services: Services, email: str) -> None:
    """Apply the rate limits for sign-ins to a request for a link."""
    await services.limits.sign_ins.begin(f"new password of {email}", address_of(request))
