"""Who you are: your password, whom you act for, and the people you share an owner with."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response

from octavo.core.errors import AlreadyMember, LastOwner, NotFound, WeakPassword, WrongCredentials
from octavo.owners import members
from octavo.owners.passwords import LEAST_CHARACTERS
from octavo.web import accounts
from octavo.web.api.account import PasswordChange
from octavo.web.api.members import MemberWanted, RoleWanted
from octavo.web.limits import TooFast
from octavo.web.pages import back_to
from octavo.web.pages.confirm import Question, ask
from octavo.web.pages.forms import read_form
from octavo.web.pages.frame import Frame
from octavo.web.pages.settings import SettingsFrame, show
from octavo.web.parts import Known, Parts, PartsOf, Person, Recognised

router = APIRouter(include_in_schema=False, prefix="/settings/account")
Field = Annotated[str, Form(max_length=2000)]
WRONG = {
    "password": "This password is too long.",
    "new_password": "This password is too long.",
    "email": "This is no e-mail address.",
    "role": "There is no such role.",
}


@router.get("")
async def account(request: Request, parts: PartsOf, frame: SettingsFrame, said: str = "") -> Response:
    return await _show(request, parts, frame, said=said)


async def _show(request: Request, parts: Parts, frame: Frame, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    caller = frame.caller
    async with parts.database.connection() as connection:
        me = await accounts.describe(connection, caller)
        people = [] if caller.is_anonymous else await members.list_members(connection, caller.owner_id)
    more = {"me": me, "people": people, "open": parts.settings.sign_up, "least": LEAST_CHARACTERS}
    return show(request, "account", frame, status, **more, **values)


@router.post("/password")
async def change_password(
    request: Request,
    parts: PartsOf,
    frame: SettingsFrame,
    person: Person,
    password: Field = "",
    new_password: Field = "",
) -> Response:
    given = {"password": password, "new_password": new_password}
    wanted, wrong = read_form(PasswordChange, given, WRONG)
    status = 422
    if wanted:
        try:
            await accounts.change_password(request, parts, person, wanted.password, wanted.new_password)
            return back_to("/settings/account?said=password")
        except WrongCredentials as error:
            wrong, status = {"password": "This is not your password."}, error.status
        except WeakPassword as error:
            wrong, status = {"new_password": error.line}, error.status
        except TooFast as error:
            wrong, status = {"password": f"Too many wrong passwords. {error.detail}"}, error.status
    return await _show(request, parts, frame, status, wrong=wrong)


@router.post("/owner")
async def act_for(
    request: Request, parts: PartsOf, caller: Recognised, person: Person, owner_id: Annotated[UUID, Form()]
) -> Response:
    await accounts.act_for(request, parts, caller, person, owner_id)
    return back_to("/settings/account?said=owner")


# People ------------------------------------------------------------------------------------------------------------


@router.post("/members")
async def add_member(
    request: Request, parts: PartsOf, frame: SettingsFrame, email: Field = "", role: Field = "member"
) -> Response:
    wanted, wrong = read_form(MemberWanted, {"email": email, "role": role}, WRONG)
    status = 422
    if wanted:
        try:
            async with parts.database.transaction() as connection:
                await members.add_member(connection, frame.caller, wanted.email, wanted.role)
            return back_to("/settings/account?said=added#members")
        except (NotFound, AlreadyMember) as error:
            wrong, status = {"email": error.detail or error.title}, error.status
    return await _show(request, parts, frame, status, wrong=wrong, email=email)


@router.post("/members/{user}/role")
async def change_role(request: Request, parts: PartsOf, frame: SettingsFrame, user: UUID, role: Field = "") -> Response:
    wanted, wrong = read_form(RoleWanted, {"role": role}, WRONG)
    status = 422
    if wanted:
        try:
            async with parts.database.transaction() as connection:
                await members.change_role(connection, frame.caller, user, wanted.role)
            return back_to("/settings/account?said=role#members")
        except LastOwner as error:
            wrong, status = {"role": error.title}, error.status
    return await _show(request, parts, frame, status, wrong=wrong)


@router.get("/members/{user}/remove")
async def ask_to_remove(request: Request, parts: PartsOf, frame: SettingsFrame, user: UUID) -> Response:
    async with parts.database.connection() as connection:
        people = await members.list_members(connection, frame.caller.owner_id)
    email = next((one.email for one in people if one.user_id == user), None)
    if email is None or not frame.caller.may_manage:
        raise NotFound
    question = Question(
        title=f"Remove {email}?",
        text="Their sessions and keys for this owner end at once. Their own account stays.",
        action=f"/settings/account/members/{user}/remove",
        verb="Remove",
        keep="/settings/account#members",
    )
    return ask(request, question, frame)


@router.post("/members/{user}/remove")
async def remove_member(request: Request, parts: PartsOf, caller: Known, frame: SettingsFrame, user: UUID) -> Response:
    try:
        async with parts.database.transaction() as connection:
            await members.remove_member(connection, caller, user)
    except LastOwner as error:
        return await _show(request, parts, frame, error.status, wrong={"role": error.title})
    parts.live.doubt(caller.owner_id)
    return back_to("/settings/account?said=removed#members")
