"""Permissions per collection: groups of members, and the collections that limited members can read or change.

Reading needs no code here: the database connections of a limited member show only documents in collections that were
granted (`database.Viewer`). Changes use unrestricted connections, after `require_writable` has checked the documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import psycopg

from octavo.core.errors import BadInput, NotFound
from octavo.core.types import new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.audit import record
from octavo.owners.callers import Caller, GroupNameTaken
from octavo.owners.members import lock_members
from octavo.records.account import Grant, GrantAccess, Group, GroupMember

QUERIES = load_queries("grants")


# Groups ------------------------------------------------------------------------------------------------------------


async def list_groups(connection: Connection, owner_id: UUID) -> list[Group]:
    return [_as_group(row) for row in await fetch_rows(connection, QUERIES.groups, {"owner": owner_id})]


async def add_group(connection: Connection, caller: Caller, name: str) -> Group:
    await lock_members(connection, caller)
    group = new_id()
    await _name(connection, QUERIES.insert_group, {"id": group, "owner": caller.owner_id, "name": name})
    await record(connection, caller.owner_id, "group.add", group)
    return await _show_group(connection, caller, group)


async def rename_group(connection: Connection, caller: Caller, group: UUID, name: str) -> Group:
    await lock_members(connection, caller)
    await _name(connection, QUERIES.rename_group, {"owner": caller.owner_id, "group": group, "name": name})
    return await _show_group(connection, caller, group)


async def delete_group(connection: Connection, caller: Caller, group: UUID) -> None:
    """Delete a group and its grants. Its members stay members of the account."""
    await lock_members(connection, caller)
    await _change(connection, QUERIES.delete_group, {"owner": caller.owner_id, "group": group})
    await record(connection, caller.owner_id, "group.delete", group)


async def add_to_group(connection: Connection, caller: Caller, group: UUID, user_id: UUID) -> Group:
    await lock_members(connection, caller)
    await _change(connection, QUERIES.add_to_group, {"owner": caller.owner_id, "group": group, "user": user_id})
    await record(connection, caller.owner_id, "group.join", user_id, group=str(group))
    return await _show_group(connection, caller, group)


async def remove_from_group(connection: Connection, caller: Caller, group: UUID, user_id: UUID) -> Group:
    await lock_members(connection, caller)
    await _change(connection, QUERIES.remove_from_group, {"owner": caller.owner_id, "group": group, "user": user_id})
    await record(connection, caller.owner_id, "group.leave", user_id, group=str(group))
    return await _show_group(connection, caller, group)


async def _name(connection: Connection, query: bytes, values: dict[str, Any]) -> None:
    label = " ".join(str(values["name"]).split())
    if not label:
        raise BadInput("A group needs a name.")
    try:
        await _change(connection, query, {**values, "name": label})
    except psycopg.errors.UniqueViolation:
        raise GroupNameTaken from None


async def _change(connection: Connection, query: bytes, values: dict[str, Any]) -> None:
    if (await connection.execute(query, values)).rowcount == 0:
        raise NotFound


async def _show_group(connection: Connection, caller: Caller, group: UUID) -> Group:
    for one in await list_groups(connection, caller.owner_id):
        if one.id == group:
            return one
    raise NotFound


def _as_group(row: dict[str, Any]) -> Group:
    members = [GroupMember(UUID(one["user_id"]), one["email"]) for one in row.pop("members")]
    return Group(**row, members=members)


# Grants ------------------------------------------------------------------------------------------------------------


async def list_grants(connection: Connection, owner_id: UUID) -> list[Grant]:
    rows = await fetch_rows(connection, QUERIES.grants, {"owner": owner_id, "grant": None})
    return [Grant(**row) for row in rows]


async def grant(
    connection: Connection,
    caller: Caller,
    collection: UUID,
    access: GrantAccess,
    *,
    user_id: UUID | None = None,
    group: UUID | None = None,
) -> Grant:
    """Let a member or a group read or change the documents of a collection.

    Replaces an earlier grant of this collection to the same member or group.
    """
    if (user_id is None) == (group is None):
        raise BadInput("Send either `user_id` or `group_id`.")
    await lock_members(connection, caller)
    values = {"id": new_id(), "owner": caller.owner_id, "collection": collection, "access": access}
    made = await fetch_rows(connection, QUERIES.insert_grant, {**values, "user": user_id, "group": group})
    if not made:
        raise NotFound
    receiver = f"member {user_id}" if user_id else f"group {group}"
    await record(connection, caller.owner_id, "grant.add", collection, access=access, receiver=receiver)
    (shown,) = await fetch_rows(connection, QUERIES.grants, {"owner": caller.owner_id, "grant": made[0]["id"]})
    return Grant(**shown)


async def withdraw_grant(connection: Connection, caller: Caller, wanted: UUID) -> None:
    await lock_members(connection, caller)
    gone = await fetch_rows(connection, QUERIES.delete_grant, {"owner": caller.owner_id, "grant": wanted})
    if not gone:
        raise NotFound
    await record(connection, caller.owner_id, "grant.withdraw", gone[0]["collection_id"])


# What a limited member may change ----------------------------------------------------------------------------------


async def writable_collections(connection: Connection, caller: Caller) -> dict[str, UUID]:
    """Return the names and ids of the collections in which a limited member may add and change documents."""
    values = {"owner": caller.owner_id, "user": caller.user_id}
    return {row["name"]: row["id"] for row in await fetch_rows(connection, QUERIES.writable_collections, values)}


async def require_writable(connection: Connection, caller: Caller, documents: Iterable[UUID]) -> None:
    """Raise `NotFound` unless a limited member is allowed to change all of these documents."""
    wanted = set(documents)
    values = {"owner": caller.owner_id, "user": caller.user_id, "documents": list(wanted)}
    if len(await fetch_rows(connection, QUERIES.writable_documents, values)) < len(wanted):
        raise NotFound


async def require_changeable(connection: Connection, caller: Caller, thing: str, ident: UUID) -> None:
    """Raise `NotFound` unless a limited member is allowed to change this object.

    `thing` is the type of the object: document, highlight, upload, or change (an earlier edit of documents).
    """
    if thing == "upload":
        values = {"owner": caller.owner_id, "user": caller.user_id, "upload": ident}
        if not (await fetch_rows(connection, QUERIES.is_own_upload, values))[0]["own"]:
            raise NotFound
        return
    await require_writable(connection, caller, await _documents_of(connection, thing, ident))


async def _documents_of(connection: Connection, thing: str, ident: UUID) -> Sequence[UUID]:
    if thing == "document":
        return [ident]
    queries = {"highlight": QUERIES.document_of_highlight, "change": QUERIES.documents_of_change}
    found = [row["document_id"] for row in await fetch_rows(connection, queries[thing], {thing: ident})]
    if not found:
        raise NotFound
    return found
