"""Members: the people who can act for the same account (owner), each with a role."""

from __future__ import annotations

from uuid import UUID

from octavo.core.errors import AlreadyMember, LastOwner, NotAllowed, NotFound
from octavo.core.types import hash_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.accounts import find_account
from octavo.owners.audit import record
from octavo.owners.callers import Caller, OwnerSeesAll, Role
from octavo.records.account import Member, OwnerChoice

QUERIES = load_queries("members")


async def list_members(connection: Connection, owner_id: UUID) -> list[Member]:
    return [Member(**row) for row in await fetch_rows(connection, QUERIES.list_members, {"owner": owner_id})]


async def list_owners(connection: Connection, user_id: UUID) -> list[OwnerChoice]:
    return [OwnerChoice(**row) for row in await fetch_rows(connection, QUERIES.list_owners, {"user": user_id})]


async def add_member(
    connection: Connection, caller: Caller, email: str, role: Role, *, limited: bool = False
) -> Member:
    """Make a registered person a member of the account for which the caller acts."""
    await lock_members(connection, caller)
    refuse_limited_owner(role, limited=limited)
    account = await find_account(connection, email)
    if account is None:
        raise NotFound("There is no account with this address.")
    values = {"owner": caller.owner_id, "user": account.id, "role": role, "limited": limited}
    cursor = await connection.execute(QUERIES.add_member, values)
    if cursor.rowcount == 0:
        raise AlreadyMember
    await record(connection, caller.owner_id, "member.add", account.id, role=role)
    return await show_member(connection, caller, account.id)


async def change_role(connection: Connection, caller: Caller, user_id: UUID, role: Role) -> Member:
    """Change the role of a member. This takes effect with the member's next request."""
    members = await lock_members(connection, caller)
    if role != "owner":
        _refuse_last_owner(caller, members, user_id)
    cursor = await connection.execute(QUERIES.change_role, {"owner": caller.owner_id, "user": user_id, "role": role})
    if cursor.rowcount:
        await record(connection, caller.owner_id, "member.role", user_id, role=role)
    return await show_member(connection, caller, user_id)


async def limit_member(connection: Connection, caller: Caller, user_id: UUID, *, limited: bool) -> Member:
    """Limit a member to the collections that are granted to them, or remove this limit.

    This takes effect with the member's next request. A member who becomes limited loses the shared links that they
    created.
    """
    members = await lock_members(connection, caller)
    if user_id not in members:
        raise NotFound
    refuse_limited_owner(members[user_id].role, limited=limited)
    if members[user_id].limited != limited:
        await connection.execute(QUERIES.limit_member, {"owner": caller.owner_id, "user": user_id, "limited": limited})
        await record(connection, caller.owner_id, "member.limit", user_id, limited=str(limited).lower())
    return await show_member(connection, caller, user_id)


def refuse_limited_owner(role: Role, *, limited: bool) -> None:
    if limited and role == "owner":
        raise OwnerSeesAll


async def remove_member(connection: Connection, caller: Caller, user_id: UUID) -> None:
    """Remove a member, and delete the member's sessions, API keys and shared links for this account."""
    members = await lock_members(connection, caller)
    _refuse_last_owner(caller, members, user_id)
    await connection.execute(QUERIES.remove_member, {"owner": caller.owner_id, "user": user_id})
    await record(connection, caller.owner_id, "member.remove", user_id)


async def switch_owner(connection: Connection, user_id: UUID, secret: str, owner_id: UUID) -> None:
    """Make a session act for another account of which the person is a member."""
    values = {"session_hash": hash_token(secret), "user": user_id, "owner": owner_id}
    cursor = await connection.execute(QUERIES.switch_owner, values)
    if cursor.rowcount == 0:
        raise NotFound


async def lock_members(connection: Connection, caller: Caller) -> dict[UUID, Member]:
    """Lock the account and return its members.

    Checks the caller's permission again, because it may have been revoked since the request started.
    """
    if not caller.may_manage:
        raise NotAllowed
    await connection.execute(QUERIES.lock_owner, {"owner": caller.owner_id})
    members = {member.user_id: member for member in await list_members(connection, caller.owner_id)}
    if caller.user_id and (caller.user_id not in members or members[caller.user_id].role != "owner"):
        raise NotAllowed
    return members


def _refuse_last_owner(caller: Caller, members: dict[UUID, Member], user_id: UUID) -> None:
    """Raise `LastOwner` if this person is the only member with the role `owner`.

    The local account (the administrator's account on this machine) is exempt, because it can be used without any
    member.
    """
    if user_id not in members:
        raise NotFound
    owners = [member.user_id for member in members.values() if member.role == "owner"]
    if owners == [user_id] and caller.kind != "local":
        raise LastOwner


async def show_member(connection: Connection, caller: Caller, user_id: UUID) -> Member:
    for member in await list_members(connection, caller.owner_id):
        if member.user_id == user_id:
            return member
    raise NotFound
