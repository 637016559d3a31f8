"""The API for invitations, sessions and password reset links, and the emails with one-time links.

The settings pages use these functions too. The emails are sent immediately and not by a job, because the links must not
be stored.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

import structlog
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from octavo.core.errors import OctavoError
from octavo.core.formatting import format_full_date
from octavo.core.http import Page
from octavo.core.settings import Settings
from octavo.core.texts import catalogue_for, mark, texts_from
from octavo.core.texts import gettext as _
from octavo.database import read_clock
from octavo.deliver.channels import MailServer, as_mail_header, send_mail
from octavo.owners import Caller, Role, account_links, sessions
from octavo.owners.account_links import DEFAULT_DAYS, MOST_DAYS
from octavo.owners.accounts import Account, find_account
from octavo.records.account import Invitation, NewInvitation, ResetLink, SessionView
from octavo.web.context.callers import AdminCaller, KnownCaller, address_of, session_secret
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import WHOLE, Email, problems
from octavo.web.shell.forms import public_address

log = structlog.get_logger()


async def mail_link(services: Services, address: str, subject: str, text: str, link: str) -> bool:
    """Send a link by email. Returns true if a mail server has accepted the email."""
    settings = services.settings
    if settings.smtp_url is None:
        return False
    async with services.database.connection() as connection:
        now = await read_clock(connection)
    mail = EmailMessage(policy=SMTP)
    mail["From"] = as_mail_header(settings.mail_from, "Octavo")
    mail["Subject"], mail["Date"] = subject, format_datetime(now)
    mail["Message-ID"] = make_msgid(domain=settings.mail_from.rpartition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{text}\n\n{link}\n")
    server = MailServer.from_url(settings.smtp_url.get_secret_value())
    try:
        mail["To"] = as_mail_header(address)
        await send_mail(server, mail, settings.mail_from, address, seconds=settings.delivery_seconds)
    except OctavoError as error:
        log.warning("a link could not be mailed", code=error.code)
        return False
    return True


INVITED = mark("You are invited to a document library. Open this link to join. It works once, until %(day)s.")
FORGOTTEN = mark(
    "Somebody asked for a new password for your account. Open this link within an hour to set one. If it was not you, "
    "ignore this message."
)


def _language_of(account: Account | None, otherwise: str | None = None) -> AbstractContextManager[None]:
    """Return a context manager that switches to the language of the account.

    If the account has no language, `otherwise` is used. If that is None as well, the current language is kept.
    """
    language = (account.language if account else None) or otherwise
    return texts_from(catalogue_for(language)) if language else nullcontext()


def invitation_path(token: str) -> str:
    return f"/invitation?{urlencode({'token': token})}"


def reset_path(token: str) -> str:
    return f"/reset-password?{urlencode({'token': token})}"


class NewInvitationRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    email: Email
    role: Role = "member"
    limited: StrictBool = False
    expires_in_days: Annotated[int, Field(ge=1, le=MOST_DAYS), WHOLE] = DEFAULT_DAYS


async def send_invitation(
    request: Request, services: Services, caller: Caller, wanted: NewInvitationRequest
) -> NewInvitation:
    """Create an invitation, and send it by email if a mail server is set up."""
    await services.limits.admit_invitation(caller)
    async with services.database.transaction() as connection:
        made, token = await account_links.invite(
            connection, caller, wanted.email, wanted.role, wanted.expires_in_days, limited=wanted.limited
        )
        known = await find_account(connection, made.email)
    link = public_address(request, services, invitation_path(token))
    with _language_of(known, caller.language):
        text = _(INVITED, day=format_full_date(made.expires_at.date()))
        subject = _("Invitation to Octavo")
    mailed = await mail_link(services, made.email, subject, text, link)
    return NewInvitation(**asdict(made), link=link, mailed=mailed)


def mails_reset_links(settings: Settings) -> bool:
    """Whether people can request a password reset link by email. This requires a mail server and a public URL.

    The link is never built from the Host header of a request. Otherwise, an attacker could forge the header, so that
    the link in another person's email would send the token to the attacker's server.
    """
    return settings.smtp_url is not None and settings.public_url is not None


async def mail_reset_link(services: Services, email: str) -> None:
    """Send a password reset link if there is an account with this email address.

    Runs after the response, so that the response time does not reveal whether there is such an account.
    """
    if not mails_reset_links(services.settings):
        return
    async with services.database.transaction() as connection:
        account = await find_account(connection, email)
        if account is None:
            return
        token, _until = await account_links.make_reset_token(connection, account)
    link = f"{services.settings.public_url}{reset_path(token)}"
    with _language_of(account):
        subject, text = _("New password for Octavo"), _(FORGOTTEN)
    await mail_link(services, account.email, subject, text, link)


async def admit_reset(request: Request, services: Services, email: str) -> None:
    """Apply the rate limits for sign-ins to a request for a password reset link."""
    await services.limits.sign_ins.begin(f"new password of {email}", address_of(request))


invitations_router = APIRouter(prefix="/api/v1/invitations", tags=["account"])
sessions_router = APIRouter(prefix="/api/v1/sessions", tags=["account"])
reset_router = APIRouter(prefix="/api/v1/admin/reset-links", tags=["admin"])


class ResetLinkRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    email: Email
    clear_second_factor: StrictBool = False


@invitations_router.get("", responses=problems(401, 403))
async def list_invitations(services: ServicesOf, caller: KnownCaller) -> Page[Invitation]:
    """List the open invitations to the current account, newest first."""
    async with services.database.connection() as connection:
        return Page(await account_links.list_invitations(connection, caller), None)


@invitations_router.post("", status_code=201, responses=problems(400, 401, 403, 422, 429))
async def invite(
    request: Request, services: ServicesOf, caller: KnownCaller, wanted: NewInvitationRequest
) -> NewInvitation:
    """Invite a person to become a member.

    The link works once. It is sent by email if a mail server is set up, and returned only in this response.
    """
    return await send_invitation(request, services, caller, wanted)


@invitations_router.delete("/{invitation}", status_code=204, responses=problems(401, 403, 404, 422))
async def withdraw_invitation(services: ServicesOf, caller: KnownCaller, invitation: UUID) -> None:
    """Withdraw an invitation. Its link stops working."""
    async with services.database.transaction() as connection:
        await account_links.withdraw(connection, caller, invitation)


@sessions_router.get("", responses=problems(401, 403))
async def list_sessions(request: Request, services: ServicesOf, caller: KnownCaller) -> Page[SessionView]:
    """List the browsers in which you are signed in, starting with this one."""
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
    return ResetLink(public_address(request, services, reset_path(token)), expires_at)
