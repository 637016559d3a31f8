"""Settings pages for invitations, sessions and the second factor."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import segno
from fastapi import APIRouter, Form, Request, Response
from markupsafe import Markup
from pydantic import SecretStr

from octavo.ai.model_settings import KeySeal, NoSecretKey
from octavo.core.errors import NotAllowed, WrongCredentials
from octavo.core.texts import gettext as _
from octavo.owners import invitations, second_factor
from octavo.owners.accounts import read_account
from octavo.owners.errors import OwnerSeesAll, WrongCode
from octavo.owners.sessions import revoke_session
from octavo.web.context.callers import KnownCaller, PersonId, address_of
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import TooFast
from octavo.web.rooms.account import people
from octavo.web.rooms.account.accounts import check_password, reveal_with
from octavo.web.rooms.account.pages import Sees, show_account
from octavo.web.rooms.account.people import NewInvitationRequest
from octavo.web.shell.forms import read_form
from octavo.web.shell.frame import Frame
from octavo.web.shell.settings import SettingsFrame, show
from octavo.web.shell.templates import back_to

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
        made = await people.invite(request, services, frame.caller, wanted)
    except (TooFast, OwnerSeesAll) as error:
        too_many = _("Too many invitations. %(detail)s", detail=error.detail)
        said = {"invite": too_many if isinstance(error, TooFast) else error.title}
        return await show_account(request, services, frame, error.status, wrong=said, invite_email=email)
    return await show_account(request, services, frame, 201, invited=made)


@router.post("/invitations/{invitation}/withdraw")
async def withdraw(services: ServicesOf, caller: KnownCaller, invitation: UUID) -> Response:
    async with services.database.transaction() as connection:
        await invitations.withdraw(connection, caller, invitation)
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
    """Show the settings page. It contains the secret of an authenticator app until the secret is confirmed."""
    async with services.database.connection() as connection:
        factor = await second_factor.read_second_factor(connection, person)
        account = await read_account(connection, person)
    secret = reveal_with(services)(factor.secret) if factor and not factor.confirmed_at else None
    if secret and account:
        link = second_factor.app_link(secret, account.email)
        drawn = segno.make(link).svg_inline(scale=QR_SCALE, border=QR_BORDER, dark="#000", light="#fff")
        values |= {"secret": secret, "link": link, "picture": Markup(drawn)}  # noqa: S704 - made here
    values["has_password"] = account is not None and account.password_hash is not None
    return show(request, "second_factor", frame, status, factor=factor, **values)


@router.post("/second-factor")
async def begin(
    request: Request, services: ServicesOf, frame: SettingsFrame, person: PersonId, password: Password = NO_PASSWORD
) -> Response:
    """Create a secret for an authenticator app. Codes are required once the secret has been confirmed with a code.

    Requires the password, because somebody else at an open browser could lock the person out.
    """
    try:
        await check_password(request, services, person, password)
    except (WrongCredentials, TooFast) as error:
        too_many = _("Too many wrong passwords. %(detail)s", detail=error.detail)
        said = too_many if isinstance(error, TooFast) else _("Wrong password.")
        return await _show(request, services, frame, person, error.status, wrong={"password": said})
    try:
        sealed = KeySeal(services.own_settings).seal(second_factor.new_secret()).token
    except NoSecretKey as error:
        return await _show(request, services, frame, person, error.status, wrong={"setup": error.line})
    async with services.database.transaction() as connection:
        await second_factor.begin(connection, person, sealed)
    return back_to("/settings/account/second-factor")


@router.post("/second-factor/confirm")
async def confirm(
    request: Request, services: ServicesOf, frame: SettingsFrame, person: PersonId, code: Field = ""
) -> Response:
    """Require the second factor from now on. The recovery codes are shown only once."""
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
                await second_factor.disable(connection, person, owner_id, code, reveal)
            else:
                codes = await second_factor.confirm(connection, person, owner_id, code, reveal)
    except (WrongCode, TooFast) as error:
        said = (
            error.title if isinstance(error, WrongCode) else _("Too many wrong codes. %(detail)s", detail=error.detail)
        )
        return await _show(request, services, frame, person, error.status, wrong={"code": said})
    await services.limits.sign_ins.succeed(name, address)
    if disabling:
        return back_to("/settings/account?said=second_factor_off#second-factor")
    return await _show(request, services, frame, person, codes=codes)
