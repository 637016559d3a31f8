"""Keys are shown once, work until they end, and never do more than whoever made them."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from octavo.core.errors import NotAllowed, NotFound
from octavo.database import Connection
from octavo.owners import Caller, Role, Scope, open_anonymous_session, read_key
from octavo.owners.callers import list_keys, make_key, revoke_key
from octavo.owners.members import add_member, change_role, remove_member
from octavo.records.account import KeyView, NewKey
from tests.integration.owners.conftest import People, user_of


async def key_of(connection: Connection, caller: Caller, scope: Scope = "write", days: int | None = None) -> NewKey:
    return await make_key(connection, caller, name="A program", scope=scope, days=days)


async def test_a_key_is_long_and_random_and_kept_only_as_a_hash(people: People, connection: Connection) -> None:
    ada = await people.add("ada@example.org")
    made, other = await key_of(connection, ada), await key_of(connection, ada)
    assert re.fullmatch(r"octavo_[\w-]{43}", made.key)
    assert made.key != other.key
    assert made.start == made.key[:12]
    row = await (await connection.execute(b"SELECT * FROM api_keys WHERE id = %s", [made.id])).fetchone()
    assert hashlib.sha256(made.key.encode()).digest() in (row or ())
    assert made.key not in repr(row)
    assert made.key not in repr(made)


async def test_a_key_acts_for_its_owner_with_its_scope(people: People, connection: Connection) -> None:
    ada = await people.add("ada@example.org")
    made = await key_of(connection, ada, "read")
    assert await read_key(connection, made.key) == Caller(ada.owner_id, "user", ada.user_id, "owner", "read", "key")
    for wrong in (made.key[:-1], made.key + "x", made.start, "", "octavo_"):
        assert await read_key(connection, wrong) is None


async def test_a_key_ends_when_it_expires(people: People, connection: Connection) -> None:
    made = await key_of(connection, await people.add("ada@example.org"), days=7)
    assert made.expires_at
    assert timedelta(days=6) < made.expires_at - datetime.now(UTC) < timedelta(days=8)
    assert await read_key(connection, made.key)
    await people.run("UPDATE api_keys SET expires_at = clock_timestamp()")
    assert await read_key(connection, made.key) is None


async def test_a_revoked_key_stops_working_immediately_and_cannot_be_revoked_again(
    people: People, connection: Connection
) -> None:
    ada = await people.add("ada@example.org")
    made = await key_of(connection, ada)
    await revoke_key(connection, ada, made.id)
    assert await read_key(connection, made.key) is None
    assert await list_keys(connection, ada) == []
    with pytest.raises(NotFound):
        await revoke_key(connection, ada, made.id)


async def test_a_key_that_is_used_while_it_is_revoked_is_not_used_after(people: People, connection: Connection) -> None:
    ada = await people.add("ada@example.org")
    made = await key_of(connection, ada)

    async def use() -> bool:
        async with people.database.connection() as one:
            return await read_key(one, made.key) is not None

    async with people.database.transaction() as revoking:
        await revoke_key(revoking, ada, made.id)
        assert await use()  # not revoked yet, and not made to wait for it
    assert not await use()
    assert await people.one("SELECT revoked_at IS NOT NULL FROM api_keys")


async def test_parallel_use_and_revocation_of_a_key_end_consistently(people: People, connection: Connection) -> None:
    ada = await people.add("ada@example.org")
    made = await key_of(connection, ada)

    async def use() -> None:
        async with people.database.connection() as one:
            await read_key(one, made.key)

    async def revoke() -> bool:
        async with people.database.transaction() as one:
            try:
                await revoke_key(one, ada, made.id)
            except NotFound:
                return False
            return True

    revoked = asyncio.gather(*(revoke() for _ in range(3)))
    await asyncio.gather(*(use() for _ in range(10)))
    assert sorted(await revoked) == [False, False, True]
    assert await read_key(connection, made.key) is None


async def test_use_is_noted_once_a_minute_at_most(people: People, connection: Connection) -> None:
    made = await key_of(connection, await people.add("ada@example.org"))
    assert await people.one("SELECT last_used_at FROM api_keys") is None
    version = "SELECT xmin::text FROM api_keys WHERE last_used_at IS NOT NULL"
    await asyncio.gather(*(read_key(connection, made.key) for _ in range(3)))
    first = await people.one(version)
    assert first
    await read_key(connection, made.key)
    assert await people.one(version) == first
    await people.run("UPDATE api_keys SET last_used_at = last_used_at - interval '61 s'")
    await read_key(connection, made.key)
    fresh = "SELECT last_used_at > clock_timestamp() - interval '1 minute' FROM api_keys"
    assert await people.one(fresh) is True


@pytest.mark.parametrize(
    ("role", "allowed"), [("reader", ["read"]), ("member", ["read", "write"]), ("owner", ["read", "write", "admin"])]
)
async def test_nobody_makes_a_key_above_their_role(
    people: People, connection: Connection, role: Role, allowed: list[Scope]
) -> None:
    caller = await people.add("ada@example.org")
    limited = replace(caller, role=role)
    made: list[Scope] = []
    scopes: tuple[Scope, ...] = ("read", "write", "admin")
    for scope in scopes:
        try:
            made.append((await key_of(connection, limited, scope)).scope)
        except NotAllowed:
            continue
    assert made == allowed


async def test_a_key_weakens_with_its_maker_and_ends_with_their_membership(
    people: People, connection: Connection
) -> None:
    ada, bob = await people.add("ada@example.org"), await people.add("bob@example.org")
    await add_member(connection, ada, "bob@example.org", "owner")
    at_adas = Caller(ada.owner_id, "user", bob.user_id, "owner", "admin", "session")
    made = await key_of(connection, at_adas, "admin")
    strong = await read_key(connection, made.key)
    assert strong
    assert strong.may_manage
    await change_role(connection, ada, user_of(bob), "reader")
    weak = await read_key(connection, made.key)
    assert weak
    assert not weak.may_write
    await remove_member(connection, ada, user_of(bob))
    assert await read_key(connection, made.key) is None
    await add_member(connection, ada, "bob@example.org", "owner")
    assert await read_key(connection, made.key) is None


async def test_keys_of_others_are_seen_by_owners_only(people: People, connection: Connection) -> None:
    ada, bob = await people.add("ada@example.org"), await people.add("bob@example.org")
    await add_member(connection, ada, "bob@example.org", "member")
    member = Caller(ada.owner_id, "user", bob.user_id, "member", "write", "session")
    hers, his = await key_of(connection, ada), await key_of(connection, member, "read")
    assert {one.id for one in await list_keys(connection, ada)} == {hers.id, his.id}
    assert {one.id for one in await list_keys(connection, member)} == {his.id}
    with pytest.raises(NotFound):
        await revoke_key(connection, member, hers.id)
    await revoke_key(connection, ada, his.id)
    assert await list_keys(connection, member) == []


async def test_a_foreign_key_and_a_missing_one_are_the_same(people: People, connection: Connection) -> None:
    ada, bob = await people.add("ada@example.org"), await people.add("bob@example.org")
    made = await key_of(connection, ada)
    for key in (made.id, uuid4()):
        with pytest.raises(NotFound):
            await revoke_key(connection, bob, key)
    assert await list_keys(connection, bob) == []
    assert await read_key(connection, made.key)


async def test_visitors_and_lesser_keys_make_and_see_no_keys(people: People, connection: Connection) -> None:
    _, visitor = await open_anonymous_session(connection)
    ada = await people.add("ada@example.org")
    program = await read_key(connection, (await key_of(connection, ada, "write")).key)
    assert program
    for caller in (visitor, program):
        with pytest.raises(NotAllowed):
            await key_of(connection, caller, "read")
        with pytest.raises(NotAllowed):
            await list_keys(connection, caller)
        with pytest.raises(NotAllowed):
            await revoke_key(connection, caller, uuid4())


async def test_a_view_of_a_key_has_no_secret() -> None:
    assert "key" not in KeyView.__dataclass_fields__
