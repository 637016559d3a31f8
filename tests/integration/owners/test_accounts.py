"""Signing up and in: one account for an address, a new session each time, and a visitor's documents come along."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from octavo.core.errors import EmailTaken, WrongCredentials
from octavo.database import Connection
from octavo.owners import Caller, make_sign_in_link, open_anonymous_session, use_sign_in_link
from octavo.owners.accounts import change_password, find_account, sign_in
from tests.integration.owners.conftest import People, user_of


async def add_document(people: People, owner_id: UUID, content: bytes, title: str) -> UUID:
    """A finished document with its canonical upload, as if it had come in by the usual way."""
    document = uuid4()
    sha256 = content.ljust(32, b".")
    await people.run(
        "INSERT INTO documents (id, owner_id, process_id, title, filename, content_type, source_type, sha256, bytes) "
        "VALUES (%s, %s, %s, %s, 'a.txt', 'text/plain', 'text', %s, 7)",
        *(document, owner_id, uuid4(), title, sha256),
    )
    await people.run(
        "INSERT INTO uploads (id, owner_id, document_id, process_id, state, is_canonical, duplicates, filename, "
        "content_type, source_type, sha256, bytes) "
        "VALUES (%s, %s, %s, %s, 'uploaded', true, 'reuse', 'a.txt', 'text/plain', 'text', %s, 7)",
        *(uuid4(), owner_id, document, uuid4(), sha256),
    )
    return document


async def documents(connection: Connection, owner_id: UUID) -> dict[str, UUID | None]:
    """Titles, and whose twin each document is."""
    rows = await connection.execute(b"SELECT title, duplicate_of FROM documents WHERE owner_id = %s", [owner_id])
    return dict(await rows.fetchall())


async def sign_in_as(people: People, email: str, *, replacing: str | None = None) -> str:
    async with people.database.transaction() as connection:
        account = await find_account(connection, email)
        assert account
        assert account.password_hash
        return await sign_in(connection, account, account.password_hash, replacing=replacing)


async def visit(people: People) -> tuple[str, Caller]:
    async with people.database.transaction() as connection:
        return await open_anonymous_session(connection)


# Signing up --------------------------------------------------------------------------------------------------------


async def test_a_person_is_at_home_in_an_owner_of_their_own(people: People) -> None:
    caller = await people.add("Ada@Example.org")
    assert (caller.kind, caller.role, caller.scope, caller.via) == ("user", "owner", "admin", "session")
    assert not caller.is_admin
    assert await people.one("SELECT email FROM users WHERE id = %s", caller.user_id) == "ada@example.org"


async def test_an_address_has_one_account_even_if_two_sign_up_in_parallel(people: People) -> None:
    spellings = ["ada@example.org", "ADA@example.org"] * 5
    outcomes = await asyncio.gather(*(people.sign_up(email) for email in spellings), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes].count(EmailTaken) == 9
    assert await people.one("SELECT count(*) FROM users") == 1
    assert await people.one("SELECT count(*) FROM owners") == 1
    assert await people.one("SELECT count(*) FROM sessions") == 1


async def test_documents_of_a_visitor_move_to_the_new_account(people: People, connection: Connection) -> None:
    old, visitor = await visit(people)
    await add_document(people, visitor.owner_id, b"one", "One")
    secret = await people.sign_up("ada@example.org", replacing=old)
    person = await people.caller(secret)
    assert person.kind == "user"
    assert await documents(connection, person.owner_id) == {"One": None}
    assert await people.find(old) is None


async def test_no_other_browser_of_the_visitor_is_signed_in(people: People, connection: Connection) -> None:
    """Somebody who had planted the session must not share the account that is made in it."""
    old, visitor = await visit(people)
    planted = b"INSERT INTO sessions (token_hash, owner_id, expires_at) VALUES (sha256('planted'), %s, now() + '1 h')"
    await connection.execute(planted, [visitor.owner_id])
    assert await people.find("planted")
    await people.sign_up("ada@example.org", replacing=old)
    assert await people.find("planted") is None


async def test_an_address_that_is_taken_leaves_the_visitor_as_they_were(people: People, connection: Connection) -> None:
    await people.add("ada@example.org")
    old, visitor = await visit(people)
    await add_document(people, visitor.owner_id, b"one", "One")
    with pytest.raises(EmailTaken):
        await people.sign_up("ada@example.org", replacing=old)
    assert await people.caller(old) == visitor
    assert await documents(connection, visitor.owner_id) == {"One": None}


async def test_two_accounts_made_from_one_visitor_in_parallel_share_nothing(
    people: People, connection: Connection
) -> None:
    old, visitor = await visit(people)
    await add_document(people, visitor.owner_id, b"one", "One")
    secrets = await asyncio.gather(*(people.sign_up(f"{name}@example.org", replacing=old) for name in "ab"))
    owners = [(await people.caller(secret)).owner_id for secret in secrets]
    assert owners[0] != owners[1]
    assert sorted([await documents(connection, owner) for owner in owners], key=len) == [{}, {"One": None}]


# Signing in --------------------------------------------------------------------------------------------------------


async def test_a_visitors_documents_become_the_persons_and_twins_say_so(people: People, connection: Connection) -> None:
    person = await people.add("ada@example.org")
    kept = await add_document(people, person.owner_id, b"same", "Kept")
    old, visitor = await visit(people)
    await add_document(people, visitor.owner_id, b"same", "Twin")
    await add_document(people, visitor.owner_id, b"other", "Other")
    secret = await sign_in_as(people, "Ada@example.org", replacing=old)
    assert (await people.caller(secret)).owner_id == person.owner_id
    assert await documents(connection, person.owner_id) == {"Kept": None, "Twin": kept, "Other": None}
    canonical = "SELECT count(*) FROM uploads WHERE owner_id = %s AND is_canonical"
    assert await people.one(canonical, person.owner_id) == 2
    assert await people.one("SELECT count(*) FROM owners WHERE id = %s", visitor.owner_id) == 0
    assert await people.find(old) is None


async def test_every_sign_in_opens_a_new_session_and_ends_the_old_one(people: People) -> None:
    first = await people.sign_up("ada@example.org")
    second = await sign_in_as(people, "ada@example.org", replacing=first)
    assert second != first
    assert await people.find(first) is None
    assert await people.find(second)


async def test_a_person_and_the_owner_of_the_machine_are_never_merged(people: People, connection: Connection) -> None:
    ada = await people.sign_up("ada@example.org")
    await people.add("bob@example.org")
    machine = await use_sign_in_link(connection, await make_sign_in_link(connection))
    for title, secret in (("Ada's", ada), ("The machine's", machine)):
        owner = (await people.caller(secret)).owner_id
        await add_document(people, owner, title.encode(), title)
        bob = await people.caller(await sign_in_as(people, "bob@example.org", replacing=secret))
        assert await documents(connection, bob.owner_id) == {}
        assert await documents(connection, owner) == {title: None}
        assert await people.find(secret) is None


async def test_a_visitor_who_signed_up_in_the_meantime_is_not_merged(people: People, connection: Connection) -> None:
    """One browser signs up in one tab and signs in as somebody else in another, at the same moment."""
    await people.add("bob@example.org")
    for _ in range(5):
        old, visitor = await visit(people)
        await add_document(people, visitor.owner_id, visitor.owner_id.bytes, str(visitor.owner_id))
        outcomes = await asyncio.gather(
            people.sign_up(f"{visitor.owner_id}@example.org", replacing=old),
            sign_in_as(people, "bob@example.org", replacing=old),
        )
        new, bob = [await people.caller(secret) for secret in outcomes]
        mine, his = await documents(connection, new.owner_id), await documents(connection, bob.owner_id)
        assert (str(visitor.owner_id) in mine) != (str(visitor.owner_id) in his)


async def test_two_sign_ins_from_one_visitor_take_the_documents_once(people: People, connection: Connection) -> None:
    owners = [(await people.add(f"{name}@example.org")).owner_id for name in "ab"]
    old, visitor = await visit(people)
    await add_document(people, visitor.owner_id, b"one", "One")
    await asyncio.gather(*(sign_in_as(people, f"{name}@example.org", replacing=old) for name in "ab"))
    assert sorted([await documents(connection, owner) for owner in owners], key=len) == [{}, {"One": None}]


async def test_somebody_whom_nobody_has_any_more_gets_a_new_home(people: People) -> None:
    caller = await people.add("ada@example.org")
    await people.run("DELETE FROM memberships WHERE user_id = %s", caller.user_id)
    again = await people.caller(await sign_in_as(people, "ada@example.org"))
    assert again.owner_id != caller.owner_id
    assert (again.user_id, again.role) == (caller.user_id, "owner")


# Passwords ---------------------------------------------------------------------------------------------------------


async def test_a_new_password_ends_all_other_sessions_of_that_person(people: People, connection: Connection) -> None:
    mine = await people.sign_up("ada@example.org")
    elsewhere = await sign_in_as(people, "ada@example.org")
    bob = await people.sign_up("bob@example.org")
    account = await find_account(connection, "ada@example.org")
    assert account
    await change_password(connection, account, "new hash", keeping=mine)
    assert await people.find(elsewhere) is None
    assert await people.find(mine)
    assert await people.find(bob)


async def test_a_sign_in_that_began_before_the_password_changed_does_not_end_after_it(
    people: People, connection: Connection
) -> None:
    mine = await people.sign_up("ada@example.org")
    seen = await find_account(connection, "ada@example.org")
    assert seen
    assert seen.password_hash
    await change_password(connection, seen, "new hash", keeping=mine)
    with pytest.raises(WrongCredentials):
        await sign_in(connection, seen, seen.password_hash, replacing=None)
    with pytest.raises(WrongCredentials):
        await change_password(connection, seen, "another", keeping=mine)


async def test_an_account_does_not_show_its_hash(people: People, connection: Connection) -> None:
    user = user_of(await people.add("ada@example.org"))
    await people.run("UPDATE users SET password_hash = 'canary' WHERE id = %s", user)
    assert "canary" not in repr(await find_account(connection, "ada@example.org"))
