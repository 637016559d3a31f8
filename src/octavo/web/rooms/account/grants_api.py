"""The API for groups of members, and for the collections that limited members can read or change."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from octavo.core.errors import NotAllowed
from octavo.core.pagination import Page
from octavo.owners import Caller, grants
from octavo.records.account import Grant, GrantAccess, Group
from octavo.web.context.callers import KnownCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import problems

groups_router = APIRouter(prefix="/api/v1/groups", tags=["account"])
grants_router = APIRouter(prefix="/api/v1/grants", tags=["account"])


class GroupRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class GrantRequest(BaseModel):
    """A collection, and either the member (`user_id`) or the group (`group_id`) who gets access to it."""

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
    """Create a group of members, to whom collections can be granted together."""
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
    """List the collections that limited members and groups can read or change, by collection."""
    require_manager(caller)
    async with services.database.connection() as connection:
        return Page(await grants.list_grants(connection, caller.owner_id), None)


@grants_router.post("", status_code=201, responses=problems(400, 401, 403, 404, 422))
async def add_grant(
    services: ServicesOf, caller: KnownCaller, wanted: GrantRequest, idempotency: IdempotencyOf
) -> Grant:
    """Let a member or a group read a collection or, with the access `write`, also change its documents.

    Replaces their earlier grant of the collection. Grants limit nobody: they matter for limited members only.
    """
    async with services.database.transaction() as connection:
        made = await grants.grant(
            connection, caller, wanted.collection_id, wanted.access, user_id=wanted.user_id, group=wanted.group_id
        )
        return await idempotency.keep(connection, made)


@grants_router.delete("/{grant}", status_code=204, responses=problems(401, 403, 404, 422))
async def withdraw_grant(services: ServicesOf, caller: KnownCaller, grant: UUID) -> None:
    """Withdraw a grant. It takes effect with the next request of the people who had it."""
    async with services.database.transaction() as connection:
        await grants.withdraw_grant(connection, caller, grant)
