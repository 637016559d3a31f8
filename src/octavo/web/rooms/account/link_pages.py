"""Pages for one-time links: invitations and new passwords. Opening a link does not use it up."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, BackgroundTasks, Form, Request
from fastapi.responses import Response
from pydantic import BaseModel

from octavo.core.errors import AlreadyMember, EmailTaken, OctavoError, WeakPassword
from octavo.core.texts import gettext as _
from octavo.owners import Caller, account_links, invitations, members
from octavo.owners.accounts import LEAST_CHARACTERS, hash_password, open_for
from octavo.owners.errors import LinkRefused
from octavo.owners.second_factor import is_required
from octavo.web.context.callers import OptionalCaller, address_of, remember_session, session_secret
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import TooFast
from octavo.web.http.parameters import Email
from octavo.web.rooms.account import people
from octavo.web.shell.forms import read_form
from octavo.web.shell.templates import back_to, render

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form(max_length=2000)]


class EmailForm(BaseModel):
    email: Email


# Invitations -------------------------------------------------------------------------------------------------------


@router.get("/invitation")
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
            found = await invitations.find_invitation(connection, token)
    except LinkRefused as error:
        return _refuse(request, error)
    person = caller is not None and caller.user_id is not None
    sign_in = f"/sign-in?{urlencode({'next': people.invitation_path(token)})}"
    more = {"invitation": found, "person": person, "sign_in": sign_in, "token": token, "least": LEAST_CHARACTERS}
    return render(request, "invitation.html", None, status, **more, **values)


@router.post("/invitation")
async def accept_invitation(
    request: Request, services: ServicesOf, caller: OptionalCaller, token: Field = "", password: Field = ""
) -> Response:
    """Join the account: as the signed-in person, or with a new account and a password."""
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
            owner_id = await invitations.accept(connection, token, caller.user_id)
            await members.switch_owner(connection, caller.user_id, session_secret(request) or "", owner_id)
    services.live.recheck(caller.owner_id)


async def _join_as_new_person(request: Request, services: Services, token: str, password: str) -> None:
    password_hash = await hash_password(password)
    async with services.database.transaction() as connection:
        replacing = session_secret(request)
        secret = await invitations.accept_as_new_person(connection, token, password_hash, replacing=replacing)
    remember_session(request, secret)


# New passwords -----------------------------------------------------------------------------------------------------


@router.get("/reset-password")
async def reset_page(request: Request, services: ServicesOf, token: str | None = None) -> Response:
    """Show the form that asks for a link or, with the token of a link, the form for a new password."""
    if token is None:
        return render(request, "reset_request.html", None, mail=people.mails_reset_links(services.settings))
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


@router.post("/reset-password/link")
async def ask_for_link(request: Request, services: ServicesOf, tasks: BackgroundTasks, email: Field = "") -> Response:
    """Send a link by mail. The response is the same whether or not there is an account with this address."""
    wanted, wrong = read_form(EmailForm, {"email": email.strip()}, {"email": _("Enter a valid email address.")})
    status = 422
    if wanted:
        try:
            await people.admit_reset(request, services, wanted.email)
            tasks.add_task(people.mail_reset_link, services, wanted.email)
            return render(
                request, "reset_request.html", None, mail=people.mails_reset_links(services.settings), sent=True
            )
        except TooFast as error:
            wrong, status = {"email": _("Too many requests. %(detail)s", detail=error.detail)}, error.status
    return render(request, "reset_request.html", None, status, mail=True, wrong=wrong, email=email)


@router.post("/reset-password")
async def set_password(request: Request, services: ServicesOf, token: Field = "", password: Field = "") -> Response:
    """Set a new password. All sessions of the person end, and this browser is signed in."""
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
