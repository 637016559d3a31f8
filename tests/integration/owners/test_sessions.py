"""A browser acts for an owner as long as its session lasts, and not a moment longer."""

from __future__ import annotations

import asyncio

import pytest

from octavo.core.errors import SignInRefused
from octavo.database import Connection
from octavo.owners import (
    SESSION_SECONDS,
    local_owner,
    make_sign_in_link,
    open_anonymous_session,
    read_session,
    use_sign_in_link,
)
from octavo.owners.sessions import end_session
from tests.integration.owners.conftest import People

AGE = "UPDATE sessions SET expires_at = clock_timestamp() + make_interval(secs => %s)"


async def test_a_visitor_is_known_again_and_is_nobody_else(people: People, connection: Connection) -> None:
    secret, visitor = await open_anonymous_session(connection)
    _, other = await open_anonymous_session(connection)
    assert await people.caller(secret) == visitor
    assert (visitor.kind, visitor.role, visitor.scope, visitor.user_id) == ("anonymous", "owner", "write", None)
    assert visitor.owner_id != other.owner_id
    assert await people.find("guess") is None


async def test_a_session_ends_when_it_is_over_or_ended(people: People, connection: Connection) -> None:
    secret, _ = await open_anonymous_session(connection)
    await people.run(AGE, 0)
    assert await people.find(secret) is None
    await people.run(AGE, 60)
    assert await people.find(secret)
    await end_session(connection, secret)
    assert await people.find(secret) is None


async def test_a_session_that_is_used_lasts_on_and_is_written_once_a_day(
    people: People, connection: Connection
) -> None:
    secret, _ = await open_anonymous_session(connection)
    renewed: list[bool] = []
    for seconds_left in (SESSION_SECONDS, SESSION_SECONDS - 23 * 3600, SESSION_SECONDS - 25 * 3600, 60):
        await people.run(AGE, seconds_left)
        opened = await read_session(connection, secret)
        assert opened
        renewed.append(opened.renewed)
    assert renewed == [False, False, True, True]
    left = "SELECT extract(epoch FROM expires_at - clock_timestamp())::float FROM sessions"
    assert await people.one(left) == pytest.approx(SESSION_SECONDS, abs=60)


async def test_the_owner_of_the_machine_signs_in_by_link_and_administers(
    people: People, connection: Connection
) -> None:
    secret = await use_sign_in_link(connection, await make_sign_in_link(connection))
    caller = await people.caller(secret)
    assert caller.owner_id == await local_owner(connection)
    assert (caller.kind, caller.scope, caller.is_admin) == ("local", "admin", True)


async def test_a_sign_in_link_works_for_only_one_of_many_parallel_requests(
    people: People, connection: Connection
) -> None:
    token = await make_sign_in_link(connection)

    async def use() -> bool:
        async with people.database.transaction() as one:
            try:
                await use_sign_in_link(one, token)
            except SignInRefused:
                return False
            return True

    assert sorted(await asyncio.gather(*(use() for _ in range(10)))) == [*[False] * 9, True]
    assert await people.one("SELECT count(*) FROM sessions") == 1


async def test_a_link_that_is_withdrawn_while_it_is_used_is_used_or_withdrawn(
    people: People, connection: Connection
) -> None:
    """Whoever comes second waits for the first, so there is never a session of a link that was withdrawn before."""
    token = await make_sign_in_link(connection)
    async with people.database.transaction() as withdrawing:
        await withdrawing.execute(b"DELETE FROM sign_in_links")
        using = asyncio.create_task(use_sign_in_link(connection, token))
        while not await people.one("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            continue  # asking gives the other its turn
    with pytest.raises(SignInRefused):
        await using
    assert await people.one("SELECT count(*) FROM sessions") == 0


async def test_a_visitor_who_opens_the_link_keeps_the_documents(people: People, connection: Connection) -> None:
    old, visitor = await open_anonymous_session(connection)
    await people.run("INSERT INTO collections (id, owner_id, name) VALUES (uuidv7(), %s, 'Mine')", visitor.owner_id)
    async with people.database.transaction() as one:
        secret = await use_sign_in_link(one, await make_sign_in_link(one), replacing=old)
    caller = await people.caller(secret)
    assert await people.one("SELECT owner_id FROM collections") == caller.owner_id
    assert await people.find(old) is None
