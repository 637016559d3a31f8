"""API and settings page for groups of members, and for the collections that limited members can read or change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from octavo.core.errors import BadInput, NotAllowed, NotFound
from octavo.core.http import Page
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.database import Connection
from octavo.library.collections import list_collections
from octavo.owners import Caller, grants, members
from octavo.owners.callers import GroupNameTaken
from octavo.records.account import Grant, GrantAccess, Group
from octavo.web.context.callers import KnownCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import problems
from octavo.web.shell.forms import Question, ask, read_form
from octavo.web.shell.frame import Frame, back_to
from octavo.web.shell.settings import SettingsFrame, show

groups_router = APIRouter(prefix="/api/v1/groups", tags=["account"])
grants_router = APIRouter(prefix="/api/v1/grants", tags=["account"])


class GroupRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class GrantRequest(BaseModel):
    """A collection, and either the member (`user_id`) or the group (`group_id`) that gets access to it."""

    model_config = ConfigDict(extra="forbid")

    collection_id: UUID
    user_id: UUID | None = None
    group_id: UUID | None = None
    access: GrantAccess = "read"


def require_manager(caller: Caller) -> None:
    if not caller.may_manage:
        raise NotAllowed


@groups_router.get("", responses=problems(401, 403))
async def list_groups(services: ServicesOf, caller: KnownCaller) -> Page[Group]:
    """List the groups of the current account by name, with their members."""
    require_manager(caller)
    async with services.database.connection() as connection:
        return Page(await grants.list_groups(connection, caller.owner_id), None)


@groups_router.post("", status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add_group(
    services: ServicesOf, caller: KnownCaller, wanted: GroupRequest, idempotency: IdempotencyOf
) -> Group:
    """Create a group of members. Collections can be granted to the whole group."""
    async with services.database.transaction() as connection:
        return await idempotency.keep(connection, await grants.add_group(connection, caller, wanted.name))


@groups_router.patch("/{group}", responses=problems(400, 401, 403, 404, 409, 422))
async def rename_group(services: ServicesOf, caller: KnownCaller, group: UUID, wanted: GroupRequest) -> Group:
    """Rename a group."""
    async with services.database.transaction() as connection:
        return await grants.rename_group(connection, caller, group, wanted.name)


@groups_router.delete("/{group}", status_code=204, responses=problems(401, 403, 404, 422))
async def delete_group(services: ServicesOf, caller: KnownCaller, group: UUID) -> None:
    """Delete a group and its grants. Its members stay members of the account."""
    async with services.database.transaction() as connection:
        await grants.delete_group(connection, caller, group)


@groups_router.put("/{group}/members/{user}", responses=problems(401, 403, 404, 422))
async def add_to_group(services: ServicesOf, caller: KnownCaller, group: UUID, user: UUID) -> Group:
    """Add a member of the account to a group."""
    async with services.database.transaction() as connection:
        return await grants.add_to_group(connection, caller, group, user)


@groups_router.delete("/{group}/members/{user}", responses=problems(401, 403, 404, 422))
async def remove_from_group(services: ServicesOf, caller: KnownCaller, group: UUID, user: UUID) -> Group:
    """Remove a person from a group. They stay a member of the account."""
    async with services.database.transaction() as connection:
        return await grants.remove_from_group(connection, caller, group, user)


@grants_router.get("", responses=problems(401, 403))
async def list_grants(services: ServicesOf, caller: KnownCaller) -> Page[Grant]:
    """List the collections that limited members and groups can read or change, sorted by collection."""
    require_manager(caller)
    async with services.database.connection() as connection:
        return Page(await grants.list_grants(connection, caller.owner_id), None)


@grants_router.post("", status_code=201, responses=problems(400, 401, 403, 404, 422))
async def add_grant(
    services: ServicesOf, caller: KnownCaller, wanted: GrantRequest, idempotency: IdempotencyOf
) -> Grant:
    """Let a member or a group read a collection or, with `write` access, also change its documents.

    Replaces an earlier grant of the collection to the same member or group. A grant has no effect on members who are
    not limited.
    """
    async with services.database.transaction() as connection:
        made = await grants.grant(
            connection, caller, wanted.collection_id, wanted.access, user_id=wanted.user_id, group=wanted.group_id
        )
        return await idempotency.keep(connection, made)


@grants_router.delete("/{grant}", status_code=204, responses=problems(401, 403, 404, 422))
async def withdraw_grant(services: ServicesOf, caller: KnownCaller, grant: UUID) -> None:
    """Withdraw a grant. The people who had it lose access with their next request."""
    async with services.database.transaction() as connection:
        await grants.withdraw_grant(connection, caller, grant)


router = APIRouter(include_in_schema=False, prefix="/settings/access")
FormText = Annotated[str, Form(max_length=2000)]
PAGE = "/settings/access"
ACCESS = Texts[GrantAccess]({"read": "Read", "write": "Read and change"})
WRONG = Texts({"name": "Enter a name of at most 200 characters."})
CHOOSE = Texts({"collection": "Choose a collection.", "receiver": "Choose a member or a group."})


@router.get("")
async def page(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    return await _show(request, services, frame, said=said)


async def _show(request: Request, services: Services, frame: Frame, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    require_manager(frame.caller)
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        more: dict[str, Any] = {
            "groups": await grants.list_groups(connection, owner),
            "grants": await grants.list_grants(connection, owner),
            "people": await members.list_members(connection, owner),
            "collections": {str(one.id): one.name for one in await list_collections(connection, owner)},
        }
    return show(request, "access", frame, status, **more, access=ACCESS, **values)


async def _change(
    services: Services, caller: Caller, said: str, act: Callable[[Connection], Awaitable[object]]
) -> Response:
    async with services.database.transaction() as connection:
        await act(connection)
    services.live.recheck(caller.owner_id)
    return back_to(f"{PAGE}?said={said}")


# Groups ------------------------------------------------------------------------------------------------------------


@router.post("/groups")
async def save_group(request: Request, services: ServicesOf, frame: SettingsFrame, name: FormText = "") -> Response:
    require_manager(frame.caller)
    wanted, wrong = read_form(GroupRequest, {"name": name.strip()}, WRONG)
    status = 422
    if wanted:
        try:
            async with services.database.transaction() as connection:
                await grants.add_group(connection, frame.caller, wanted.name)
            return back_to(f"{PAGE}?said=group")
        except GroupNameTaken as error:
            wrong, status = {"name": error.title}, error.status
    return await _show(request, services, frame, status, wrong=wrong, name=name)


@router.get("/groups/{group}/delete")
async def ask_to_delete(request: Request, services: ServicesOf, frame: SettingsFrame, group: UUID) -> Response:
    require_manager(frame.caller)
    async with services.database.connection() as connection:
        known = {one.id: one.name for one in await grants.list_groups(connection, frame.caller.owner_id)}
    if group not in known:
        raise NotFound
    question = Question(
        title=_("Delete the group “%(name)s”?", name=known[group]),
        text=_("Its grants are withdrawn. Its members stay members of the account."),
        action=f"{PAGE}/groups/{group}/delete",
        verb=_("Delete"),
        keep=PAGE,
    )
    return ask(request, question, frame)


@router.post("/groups/{group}/delete")
async def drop_group(services: ServicesOf, caller: KnownCaller, group: UUID) -> Response:
    return await _change(services, caller, "group_deleted", lambda one: grants.delete_group(one, caller, group))


@router.post("/groups/{group}/members")
async def join_group(services: ServicesOf, caller: KnownCaller, group: UUID, user: Annotated[UUID, Form()]) -> Response:
    return await _change(services, caller, "joined", lambda one: grants.add_to_group(one, caller, group, user))


@router.post("/groups/{group}/members/{user}/remove")
async def leave_group(services: ServicesOf, caller: KnownCaller, group: UUID, user: UUID) -> Response:
    return await _change(services, caller, "left", lambda one: grants.remove_from_group(one, caller, group, user))


# Grants ------------------------------------------------------------------------------------------------------------


@router.post("/grants")
async def save_grant(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    collection: FormText = "",
    receiver: FormText = "",
    access: Annotated[GrantAccess, Form()] = "read",
) -> Response:
    """Grant a collection. `receiver` is `user:` or `group:`, followed by an id."""
    require_manager(frame.caller)
    kind, _colon, ident = receiver.partition(":")
    chosen, wanted = _read_id(collection), _read_id(ident)
    wrong = {name: CHOOSE[name] for name, value in {"collection": chosen, "receiver": wanted}.items() if value is None}
    if chosen is None or wanted is None:
        return await _show(request, services, frame, 422, grant_wrong=wrong)
    named = {"user_id": wanted} if kind == "user" else {"group": wanted}
    try:
        async with services.database.transaction() as connection:
            await grants.grant(connection, frame.caller, chosen, access, **named)
    except (NotFound, BadInput) as error:
        return await _show(request, services, frame, error.status, grant_wrong={"receiver": error.line})
    services.live.recheck(frame.caller.owner_id)
    return back_to(f"{PAGE}?said=granted")


@router.post("/grants/{grant}/withdraw")
async def withdraw(services: ServicesOf, caller: KnownCaller, grant: UUID) -> Response:
    return await _change(services, caller, "grant_withdrawn", lambda one: grants.withdraw_grant(one, caller, grant))


def _read_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
