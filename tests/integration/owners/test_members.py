"""Several people share an owner: each with a role that holds at once, and there is always somebody left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from uuid import UUID, uuid4

import pytest

from octavo.core.errors import AlreadyMember, LastOwner, NotAllowed, NotFound, OctavoError
from octavo.database import Connection
from octavo.library.collections import list_collections
from octavo.library.shares import ShareRefused, open_share, share
from octavo.owners import Caller, Role, local_owner, make_sign_in_link, use_sign_in_link
from octavo.owners.account_links import find_invitation, invite
from octavo.owners.callers import LinkRefused
from octavo.owners.identities import Identity, apply_role
from octavo.owners.members import (
    add_member,
    change_role,
    list_members,
    list_owners,
    remove_member,
    switch_owner,
)
from tests.integration.owners.conftest import People, user_of


async def roles(connection: Connection, caller: Caller) -> dict[str, str]:
    return {member.email: member.role for member in await list_members(connection, caller.owner_id)}


async def at(people: People, secret: str, owner: Caller) -> Caller:
    """A person's browser, switched to another owner."""
    person = await people.caller(secret)
    async with people.database.transaction() as connection:
        await switch_owner(connection, user_of(person), secret, owner.owner_id)
    return await people.caller(secret)


async def test_somebody_with_an_account_is_added_changed_and_removed(people: People, connection: Connection) -> None:
    ada, bob = await people.add("ada@example.org"), await people.add("bob@example.org")
    added = await add_member(connection, ada, "BOB@example.org", "reader")
    assert (added.user_id, added.email, added.role) == (bob.user_id, "bob@example.org", "reader")
    assert await roles(connection, ada) == {"ada@example.org": "owner", "bob@example.org": "reader"}
    assert (await change_role(connection, ada, user_of(bob), "member")).role == "member"
    await remove_member(connection, ada, user_of(bob))
    assert await roles(connection, ada) == {"ada@example.org": "owner"}


async def test_nobody_is_added_twice_or_without_an_account(people: People, connection: Connection) -> None:
    ada = await people.add("ada@example.org")
    await people.add("bob@example.org")
    await add_member(connection, ada, "bob@example.org", "reader")
    with pytest.raises(AlreadyMember):
        await add_member(connection, ada, "bob@example.org", "owner")
    with pytest.raises(NotFound):
        await add_member(connection, ada, "nobody@example.org", "reader")
    assert await roles(connection, ada) == {"ada@example.org": "owner", "bob@example.org": "reader"}


@pytest.mark.parametrize("role", ["member", "reader"])
async def test_only_owners_manage_members(people: People, connection: Connection, role: Role) -> None:
    ada, secret = await people.add("ada@example.org"), await people.sign_up("bob@example.org")
    await people.add("eve@example.org")
    await add_member(connection, ada, "bob@example.org", role)
    bob = await at(people, secret, ada)
    assert (bob.owner_id, bob.role) == (ada.owner_id, role)
    with pytest.raises(NotAllowed):
        await add_member(connection, bob, "eve@example.org", "reader")
    with pytest.raises(NotAllowed):
        await change_role(connection, bob, user_of(bob), "owner")
    with pytest.raises(NotAllowed):
        await remove_member(connection, bob, user_of(ada))
    assert await roles(connection, ada) == {"ada@example.org": "owner", "bob@example.org": role}


async def test_a_role_holds_from_the_next_request_on(people: People, connection: Connection) -> None:
    ada, secret = await people.add("ada@example.org"), await people.sign_up("bob@example.org")
    await add_member(connection, ada, "bob@example.org", "member")
    bob = await at(people, secret, ada)
    assert bob.may_write
    await change_role(connection, ada, user_of(bob), "reader")
    assert not (await people.caller(secret)).may_write


async def test_a_removed_membership_ends_the_sessions_for_that_owner_only(
    people: People, connection: Connection
) -> None:
    ada, here = await people.add("ada@example.org"), await people.sign_up("bob@example.org")
    await people.run(
        "INSERT INTO sessions (token_hash, owner_id, user_id, expires_at) "
        "SELECT sha256('home'), owner_id, id, now() + '1 h' FROM users WHERE email = 'bob@example.org'"
    )
    await add_member(connection, ada, "bob@example.org", "member")
    bob = await at(people, here, ada)
    await remove_member(connection, ada, user_of(bob))
    assert await people.find(here) is None
    assert (await people.caller("home")).user_id == bob.user_id


@pytest.mark.parametrize("leave", [remove_member, partial(change_role, role="reader")])
async def test_a_former_owner_keeps_no_link_that_leads_back(
    people: People, connection: Connection, leave: Callable[[Connection, Caller, UUID], Awaitable[object]]
) -> None:
    ada, secret = await people.add("ada@example.org"), await people.sign_up("bob@example.org")
    await add_member(connection, ada, "bob@example.org", "owner")
    bob = await at(people, secret, ada)
    _, token = await invite(connection, bob, "me-again@example.org", "owner")
    await leave(connection, ada, user_of(bob))
    with pytest.raises(LinkRefused):
        await find_invitation(connection, token)


@pytest.mark.parametrize("role", ["reader", None])
async def test_claims_that_no_longer_make_an_owner_end_the_invitations(
    people: People, connection: Connection, role: Role | None
) -> None:
    secret = await people.sign_up("ada@example.org")
    ada = await people.caller(secret)
    local = await apply_role(connection, user_of(ada), Identity("https://login.example.org", "ada", None, "owner"))
    assert local is not None
    assert local == await local_owner(connection)
    await connection.commit()
    async with people.database.transaction() as other:
        await switch_owner(other, user_of(ada), secret, local)
    _, token = await invite(connection, await people.caller(secret), "me-again@example.org", "owner")
    await apply_role(connection, user_of(ada), Identity("https://login.example.org", "ada", None, role))
    with pytest.raises(LinkRefused):
        await find_invitation(connection, token)


async def test_the_shared_links_of_a_removed_member_end(people: People, connection: Connection) -> None:
    ada, secret = await people.add("ada@example.org"), await people.sign_up("bob@example.org")
    await people.run("INSERT INTO collections (id, owner_id, name) VALUES (%s, %s, 'A')", uuid4(), ada.owner_id)
    (collection,) = await list_collections(connection, ada.owner_id)
    await add_member(connection, ada, "bob@example.org", "member")
    bob = await at(people, secret, ada)
    _, kept = await share(connection, ada, collection=collection.id)
    _, ended = await share(connection, bob, collection=collection.id)
    await remove_member(connection, ada, user_of(bob))
    assert (await open_share(connection, kept)).collection == "A"
    with pytest.raises(ShareRefused):
        await open_share(connection, ended)


async def test_a_membership_that_is_gone_by_any_way_ends_the_session(people: People, connection: Connection) -> None:
    secret = await people.sign_up("ada@example.org")
    await people.run("DELETE FROM memberships")
    assert await people.find(secret) is None


async def test_the_last_owner_stays(people: People, connection: Connection) -> None:
    ada, bob = await people.add("ada@example.org"), await people.add("bob@example.org")
    await add_member(connection, ada, "bob@example.org", "member")
    with pytest.raises(LastOwner):
        await remove_member(connection, ada, user_of(ada))
    with pytest.raises(LastOwner):
        await change_role(connection, ada, user_of(ada), "member")
    await change_role(connection, ada, user_of(bob), "owner")
    await change_role(connection, ada, user_of(ada), "member")
    assert await roles(connection, ada) == {"ada@example.org": "member", "bob@example.org": "owner"}


async def test_of_two_owners_who_remove_each_other_one_stays(people: People, connection: Connection) -> None:
    ada = await people.add("ada@example.org")
    secret = await people.sign_up("bob@example.org")
    await add_member(connection, ada, "bob@example.org", "owner")
    bob = await at(people, secret, ada)

    async def remove(caller: Caller, other: Caller) -> type[OctavoError] | None:
        async with people.database.transaction() as one:
            try:
                await remove_member(one, caller, user_of(other))
            except OctavoError as error:
                return type(error)
            return None

    outcomes = await asyncio.gather(remove(ada, bob), remove(bob, ada))
    assert sorted(outcomes, key=str) == [NotAllowed, None]
    assert list((await roles(connection, ada)).values()) == ["owner"]


async def test_of_two_owners_who_leave_in_parallel_one_stays(people: People, connection: Connection) -> None:
    ada = await people.add("ada@example.org")
    secret = await people.sign_up("bob@example.org")
    await add_member(connection, ada, "bob@example.org", "owner")
    bob = await at(people, secret, ada)

    async def leave(caller: Caller) -> bool:
        async with people.database.transaction() as one:
            try:
                await change_role(one, caller, user_of(caller), "reader")
            except LastOwner:
                return False
            return True

    assert sorted(await asyncio.gather(leave(ada), leave(bob))) == [False, True]
    assert sorted((await roles(connection, ada)).values()) == ["owner", "reader"]


async def test_a_member_who_was_removed_meanwhile_cannot_change_anything(
    people: People, connection: Connection
) -> None:
    """Their request came in while they were an owner, and gets its turn when they are none."""
    ada, secret = await people.add("ada@example.org"), await people.sign_up("bob@example.org")
    await people.add("eve@example.org")
    await add_member(connection, ada, "bob@example.org", "owner")
    bob = await at(people, secret, ada)
    await remove_member(connection, ada, user_of(bob))
    with pytest.raises(NotAllowed):
        await add_member(connection, bob, "eve@example.org", "owner")
    with pytest.raises(NotAllowed):
        await remove_member(connection, bob, user_of(ada))


async def test_people_can_be_members_of_the_machines_owner_and_all_leave_again(
    people: People, connection: Connection
) -> None:
    machine = await people.caller(await use_sign_in_link(connection, await make_sign_in_link(connection)))
    bob = await people.add("bob@example.org")
    await add_member(connection, machine, "bob@example.org", "owner")
    await remove_member(connection, machine, user_of(bob))
    assert await roles(connection, machine) == {}


async def test_a_person_acts_for_any_owner_they_are_a_member_of_and_no_other(
    people: People, connection: Connection
) -> None:
    ada, secret = await people.add("ada@example.org"), await people.sign_up("bob@example.org")
    bob = await people.caller(secret)
    for foreign in (ada.owner_id, await local_owner(connection), uuid4()):
        with pytest.raises(NotFound):
            await switch_owner(connection, user_of(bob), secret, foreign)
    await add_member(connection, ada, "bob@example.org", "reader")
    assert (await at(people, secret, ada)).owner_id == ada.owner_id
    choices = {choice.owner_id: (choice.role, choice.email) for choice in await list_owners(connection, user_of(bob))}
    assert choices == {bob.owner_id: ("owner", "bob@example.org"), ada.owner_id: ("reader", "ada@example.org")}
    assert (await at(people, secret, bob)).owner_id == bob.owner_id


async def test_nobody_switches_somebody_elses_session(people: People, connection: Connection) -> None:
    ada, secret = await people.add("ada@example.org"), await people.sign_up("bob@example.org")
    with pytest.raises(NotFound):
        await switch_owner(connection, user_of(ada), secret, ada.owner_id)
    with pytest.raises(NotFound):
        await remove_member(connection, ada, uuid4())
    with pytest.raises(NotFound):
        await change_role(connection, ada, uuid4(), "owner")
