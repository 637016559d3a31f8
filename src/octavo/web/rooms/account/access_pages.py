"""Settings pages for invitations, sessions and the second factor, and the pages that one-time links open.

One-time links are for invitations and new passwords. Opening a link does not use it up.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

import segno
from fastapi import APIRouter, BackgroundTasks, Form, Request
from fastapi.responses import Response
from markupsafe import Markup
from pydantic import BaseModel, SecretStr

from octavo.ai.model_settings import KeySeal, NoSecretKey
from octavo.core.errors import AlreadyMember, EmailTaken, NotAllowed, OctavoError, WeakPassword, WrongCredentials
from octavo.core.texts import gettext as _
from octavo.owners import Caller, account_links, members, sessions
from octavo.owners.accounts import LEAST_CHARACTERS, hash_password, open_for, read_account
from octavo.owners.callers import LinkRefused, OwnerSeesAll, WrongCode
from octavo.owners.sessions import is_required, revoke_session
from octavo.web.context.callers import (
    KnownCaller,
    OptionalCaller,
    PersonId,
    address_of,
    remember_session,
    session_secret,
)
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import TooFast
from octavo.web.http.parameters import Email
from octavo.web.rooms.account import people_api
from octavo.web.rooms.account.accounts import check_password, reveal_with
from octavo.web.rooms.account.pages import Sees, show_account
from octavo.web.rooms.account.people_api import NewInvitationRequest
from octavo.web.shell.forms import read_form
from octavo.web.shell.frame import Frame, back_to, render
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(include_in_schema=False, prefix="/settings/account")
Field = Annotated[str, Form(max_length=2000)]
Password = Annotated[SecretStr, Form(max_length=1000)]
NO_PASSWORD = SecretStr("")
QR_SCALE, QR_BORDER = 4, 2


@router.post("/invitations")
async def invite(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    email: Field = "",
    role: Field = "member",
    sees: Sees = "all",
) -> Response:
    """Create an invitation. The page is rendered without a redirect, because the link is shown only once."""
    if not frame.caller.may_manage:
        raise NotAllowed
    given = {"email": email, "role": role, "limited": sees == "granted"}
    wanted, wrong = read_form(NewInvitationRequest, given, {})
    if wanted is None:
        said = {"invite": _("Enter a valid email address.") if "email" in wrong else _("Choose a role.")}
        return await show_account(request, services, frame, 422, wrong=said, invite_email=email)
    try:
        made = await people_api.send_invitation(request, services, frame.caller, wanted)
    except (TooFast, OwnerSeesAll) as error:
        too_many = _("Too many invitations. %(detail)s", detail=error.detail)
        said = {"invite": too_many if isinstance(error, TooFast) else error.title}
        return await show_account(request, services, frame, error.status, wrong=said, invite_email=email)
    return await show_account(request, services, frame, 201, invited=made)


@router.post("/invitations/{invitation}/withdraw")
async def withdraw(services: ServicesOf, caller: KnownCaller, invitation: UUID) -> Response:
    async with services.database.transaction() as connection:
        await account_links.withdraw(connection, caller, invitation)
    return back_to("/settings/account?said=withdrawn#members")


@router.post("/sessions/{session}/revoke")
async def revoke(services: ServicesOf, caller: KnownCaller, session: UUID) -> Response:
    async with services.database.transaction() as connection:
        await revoke_session(connection, caller, session)
    services.live.recheck(caller.owner_id)
    return back_to("/settings/account?said=session#sessions")


# Second factor -----------------------------------------------------------------------------------------------------


@router.get("/second-factor")
async def second_factor_page(
    request: Request, services: ServicesOf, frame: SettingsFrame, person: PersonId
) -> Response:
    return await _show(request, services, frame, person)


async def _show(
    request: Request,
    services: Services,
    frame: Frame,
    person: UUID,
    status: int = 200,
    **values: Any,  # noqa: ANN401
) -> Response:
    """Show the settings page for the second factor.

    The page contains the secret for the authenticator app until the person has confirmed the secret with a code.
    """
    async with services.database.connection() as connection:
        factor = await sessions.read_second_factor(connection, person)
        account = await read_account(connection, person)
    secret = reveal_with(services)(factor.secret) if factor and not factor.confirmed_at else None
    if secret and account:
        link = sessions.app_link(secret, account.email)
        drawn = segno.make(link).svg_inline(scale=QR_SCALE, border=QR_BORDER, dark="#000", light="#fff")
        values |= {"secret": secret, "link": link, "picture": Markup(drawn)}  # noqa: S704 - made here
    values["has_password"] = account is not None and account.password_hash is not None
    return show(request, "second_factor", frame, status, factor=factor, **values)


@router.post("/second-factor")
async def begin(
    request: Request, services: ServicesOf, frame: SettingsFrame, person: PersonId, password: Password = NO_PASSWORD
) -> Response:
    """Create a secret for an authenticator app. Codes are required once the secret has been confirmed with a code.

    Requires the password. Otherwise, somebody else at an unlocked computer could lock the person out.
    """
    try:
        await check_password(request, services, person, password)
    except (WrongCredentials, TooFast) as error:
        too_many = _("Too many wrong passwords. %(detail)s", detail=error.detail)
        said = too_many if isinstance(error, TooFast) else _("Wrong password.")
        return await _show(request, services, frame, person, error.status, wrong={"password": said})
    try:
        sealed = KeySeal(services.own_settings).seal(sessions.new_secret()).token
    except NoSecretKey as error:
        return await _show(request, services, frame, person, error.status, wrong={"setup": error.line})
    async with services.database.transaction() as connection:
        await sessions.begin(connection, person, sealed)
    return back_to("/settings/account/second-factor")


@router.post("/second-factor/confirm")
async def confirm(
    request: Request, services: ServicesOf, frame: SettingsFrame, person: PersonId, code: Field = ""
) -> Response:
    """Check a code, and require the second factor from now on. The recovery codes are shown only once."""
    return await _with_code(request, services, frame, person, code, disabling=False)


@router.post("/second-factor/disable")
async def disable(
    request: Request, services: ServicesOf, frame: SettingsFrame, person: PersonId, code: Field = ""
) -> Response:
    return await _with_code(request, services, frame, person, code, disabling=True)


async def _with_code(
    request: Request, services: Services, frame: Frame, person: UUID, code: str, *, disabling: bool
) -> Response:
    owner_id, reveal, codes = frame.caller.owner_id, reveal_with(services), list[str]()
    name, address = f"second factor {person}", address_of(request)
    try:
        await services.limits.sign_ins.begin(name, address)
        async with services.database.transaction() as connection:
            if disabling:
                await sessions.disable(connection, person, owner_id, code, reveal)
            else:
                codes = await sessions.confirm(connection, person, owner_id, code, reveal)
    except (WrongCode, TooFast) as error:
        said = (
            error.title if isinstance(error, WrongCode) else _("Too many wrong codes. %(detail)s", detail=error.detail)
        )
        return await _show(request, services, frame, person, error.status, wrong={"code": said})
    await services.limits.sign_ins.succeed(name, address)
    if disabling:
        return back_to("/settings/account?said=second_factor_off#second-factor")
    return await _show(request, services, frame, person, codes=codes)


links_router = APIRouter(include_in_schema=False)


class EmailForm(BaseModel):
    email: Email


# Invitations -------------------------------------------------------------------------------------------------------


@links_router.get("/invitation")
async def invitation_page(request: Request, services: ServicesOf, caller: OptionalCaller, token: str = "") -> Response:
    return await _show_invitation(request, services, caller, token)


async def _show_invitation(
    request: Request,
    services: Services,
    caller: Caller | None,
    token: str,
    status: int = 200,
    **values: Any,  # noqa: ANN401
) -> Response:
    try:
        async with services.database.connection() as connection:
            found = await account_links.find_invitation(connection, token)
    except LinkRefused as error:
        return _refuse(request, error)
    person = caller is not None and caller.user_id is not None
    sign_in = f"/sign-in?{urlencode({'next': people_api.invitation_path(token)})}"
    more = {"invitation": found, "person": person, "sign_in": sign_in, "token": token, "least": LEAST_CHARACTERS}
    return render(request, "invitation.html", None, status, **more, **values)


@links_router.post("/invitation")
async def accept_invitation(
    request: Request, services: ServicesOf, caller: OptionalCaller, token: Field = "", password: Field = ""
) -> Response:
    """Accept the invitation as the signed-in person, or create an account with a password and accept it."""
    try:
        if caller and caller.user_id and caller.via == "session":
            await _join(request, services, caller, token)
        else:
            await services.limits.admit_sign_up(address_of(request))
            await _join_as_new_person(request, services, token, password)
    except LinkRefused as error:
        return _refuse(request, error)
    except (WeakPassword, EmailTaken, AlreadyMember, TooFast) as error:
        wrong = {"password": error.line}
        return await _show_invitation(request, services, caller, token, error.status, wrong=wrong)
    return back_to("/library")


async def _join(request: Request, services: Services, caller: Caller, token: str) -> None:
    async with services.database.transaction() as connection:
        if caller.user_id:
            owner_id = await account_links.accept(connection, token, caller.user_id)
            await members.switch_owner(connection, caller.user_id, session_secret(request) or "", owner_id)
    services.live.recheck(caller.owner_id)


async def _join_as_new_person(request: Request, services: Services, token: str, password: str) -> None:
    password_hash = await hash_password(password)
    async with services.database.transaction() as connection:
        replacing = session_secret(request)
        secret = await account_links.accept_as_new_person(connection, token, password_hash, replacing=replacing)
    remember_session(request, secret)


# New passwords -----------------------------------------------------------------------------------------------------


@links_router.get("/reset-password")
async def reset_page(request: Request, services: ServicesOf, token: str | None = None) -> Response:
    """Show the form for requesting a link.

    If the URL contains the token of a link, show the form for a new password.
    """
    if token is None:
        return render(request, "reset_request.html", None, mail=people_api.mails_reset_links(services.settings))
    return await _show_reset(request, services, token)


async def _show_reset(
    request: Request,
    services: Services,
    token: str,
    status: int = 200,
    **values: Any,  # noqa: ANN401
) -> Response:
    try:
        async with services.database.connection() as connection:
            person = await account_links.find_person(connection, "password", token)
    except LinkRefused as error:
        return _refuse(request, error)
    more = {"email": person.email, "token": token, "least": LEAST_CHARACTERS}
    return render(request, "reset_password.html", None, status, **more, **values)


@links_router.post("/reset-password/link")
async def ask_for_link(request: Request, services: ServicesOf, tasks: BackgroundTasks, email: Field = "") -> Response:
    """Send a password reset link by email.

    The response is the same whether or not an account has this email address.
    """
    wanted, wrong = read_form(EmailForm, {"email": email.strip()}, {"email": _("Enter a valid email address.")})
    status = 422
    if wanted:
        try:
            await people_api.admit_reset(request, services, wanted.email)
            tasks.add_task(people_api.mail_reset_link, services, wanted.email)
            return render(
                request, "reset_request.html", None, mail=people_api.mails_reset_links(services.settings), sent=True
            )
        except TooFast as error:
            wrong, status = {"email": _("Too many requests. %(detail)s", detail=error.detail)}, error.status
    return render(request, "reset_request.html", None, status, mail=True, wrong=wrong, email=email)


@links_router.post("/reset-password")
async def set_password(request: Request, services: ServicesOf, token: Field = "", password: Field = "") -> Response:
    """Set a new password and end all sessions of the person.

    Signs this browser in, unless a second factor is required.
    """
    try:
        async with services.database.connection() as connection:
            # Before the password is hashed, which is slow: anybody can send a wrong token.
            await account_links.find_person(connection, "password", token)
        password_hash = await hash_password(password)
        async with services.database.transaction() as connection:
            user_id = await account_links.set_password(connection, token, password_hash)
            if await is_required(connection, user_id):
                return back_to("/sign-in")
            secret = await open_for(connection, user_id, by="reset link", replacing=session_secret(request))
    except LinkRefused as error:
        return _refuse(request, error)
    except WeakPassword as error:
        return await _show_reset(request, services, token, error.status, wrong={"password": error.line})
    remember_session(request, secret)
    return back_to("/")


def _refuse(request: Request, error: OctavoError) -> Response:
    return render(request, "link_refused.html", None, error.status, error=error)
