"""Owners are told inside the application, once, what is ready and what went wrong with their documents."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from octavo.core.errors import ErrorClass, NotFound
from octavo.deliver.deliveries import relay
from octavo.deliver.subscribers import (
    NotAnError,
    Notification,
    forget_attempts,
    forget_notifications,
    list_notifications,
    mark_all_read,
    mark_read,
    resolve,
)
from octavo.jobs.job_run import ClaimedJob
from octavo.jobs.worker_state import DueIn
from tests.support.deliveries import PostOffice
from tests.support.engine import Engine
from tests.support.library import Desk

PROCESS = ["process_document"]


async def shown(desk: Desk, owner: UUID, *, unread: bool = False) -> list[Notification]:
    async with desk.database.connection() as connection:
        return (await list_notifications(connection, owner, unread=unread, cursor=None, limit=100)).items


def claim(engine: Engine) -> ClaimedJob:
    return engine.claim_one(kinds=PROCESS)


async def test_a_ready_document_that_somebody_added_by_hand_has_no_notification(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    await desk.add(owner, b"text", given={"title": "Annual report"})
    engine.complete(claim(engine))
    await office.relay()
    assert await shown(desk, owner) == []


async def add_import(desk: Desk, owner: UUID, count: int, key: UUID | None = None) -> None:
    marked = {"import": str(key or uuid4())}
    for number in range(count):
        await desk.add(owner, f"note {number} {marked}".encode(), given=marked)


async def test_an_import_has_one_notification_that_is_updated(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    await add_import(desk, owner, 4)
    engine.complete(claim(engine))
    await office.relay()
    (first,) = await shown(desk, owner)
    assert (first.type, first.level, first.sentence) == ("import.progress", "news", "Import: 4 added · 1 ready.")
    engine.complete(claim(engine))
    engine.complete(claim(engine))
    engine.fail(claim(engine), ErrorClass.UNSUPPORTED)
    await office.relay()
    (second,) = await shown(desk, owner)
    assert (second.id, second.level) == (first.id, "error")
    assert second.sentence == "Import: 4 added · 3 ready · 1 needs you."
    assert second.link == f"/library?import_id={second.process_id}"
    assert await shown(desk, engine.add_owner()) == []


async def test_a_finished_import_is_unread_again(desk: Desk, office: PostOffice, engine: Engine, owner: UUID) -> None:
    await add_import(desk, owner, 1)
    engine.complete(claim(engine))
    await office.relay()
    async with desk.database.connection() as connection:
        await mark_all_read(connection, owner)
    engine.advance(61)
    await office.relay()
    await office.relay()
    (told,) = await shown(desk, owner, unread=True)
    assert (told.type, told.sentence) == ("import.completed", "Import finished: 1 added · 1 ready.")


async def test_the_relay_runs_when_an_import_is_finished(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    await add_import(desk, owner, 1)
    await office.relay()
    assert not isinstance(await relay(desk.database), DueIn), "its document is not processed yet"
    engine.complete(claim(engine))
    await office.relay()
    engine.advance(30)
    due = await relay(desk.database)
    assert isinstance(due, DueIn)
    assert due <= 30


async def test_two_imports_have_two_notifications(desk: Desk, office: PostOffice, engine: Engine, owner: UUID) -> None:
    for _ in range(2):
        await add_import(desk, owner, 2)
    for _ in range(4):
        engine.complete(claim(engine))
    await office.relay()
    assert [one.sentence for one in await shown(desk, owner)] == ["Import: 2 added · 2 ready."] * 2


async def test_people_get_one_message_about_an_import_and_programs_one_for_each_document(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    person = office.subscribe(owner, "ada@example.org", ["document.completed"], channel="mail")
    program = office.subscribe(owner, events=["document.completed"])
    await add_import(desk, owner, 3)
    for _ in range(3):
        engine.complete(claim(engine))
    await office.relay()
    assert office.line(person) == []
    engine.advance(61)
    await office.relay()
    await office.relay()
    assert [one["type"] for one in office.line(person)] == ["import.completed"]
    assert [one["type"] for one in office.line(program)] == ["document.completed"] * 3


@pytest.mark.parametrize(
    ("error", "told_as"), [(ErrorClass.UNSUPPORTED, "document.failed"), (ErrorClass.TRANSIENT, "job.dead_letter")]
)
async def test_a_failure_is_reported_with_its_code(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID, error: ErrorClass, told_as: str
) -> None:
    await desk.add(owner, b"text", given={"title": "Scan"})
    engine.run("UPDATE jobs SET max_attempts = 1")
    engine.fail(claim(engine), error)
    await office.relay()
    (told,) = await shown(desk, owner)
    assert (told.type, told.level, told.error_code) == (told_as, "error", error.upper())
    assert told.sentence.startswith("“Scan” ")


async def test_a_duplicate_that_is_complete_immediately_is_counted_too(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    marked = {"import": str(uuid4())}
    await desk.add(owner, b"text", given=marked)
    engine.complete(claim(engine))
    await desk.add(owner, b"text", duplicates="new", given=marked)
    await office.relay()
    assert [one.sentence for one in await shown(desk, owner)] == ["Import: 2 added · 2 ready."]


async def test_nothing_of_a_title_is_in_an_event(desk: Desk, office: PostOffice, engine: Engine, owner: UUID) -> None:
    await desk.add(owner, b"text", given={"title": "A very secret title"})
    engine.complete(claim(engine))
    await office.relay()
    assert engine.rows("SELECT id FROM events e WHERE e::text LIKE '%%secret title%%'") == []


async def test_reading_and_resolving_record_the_user_and_the_time(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    person = uuid4()
    engine.run("INSERT INTO users (id, email, password_hash, owner_id) VALUES (%s, 'a@x', '', %s)", person, owner)
    await desk.add(owner, b"bad")
    await add_import(desk, owner, 1)
    engine.fail(claim(engine), ErrorClass.UNSUPPORTED)
    engine.complete(claim(engine))
    await office.relay()
    bad, good = sorted(await shown(desk, owner), key=lambda one: one.level)
    async with desk.database.transaction() as connection:
        assert (await list_notifications(connection, owner, unread=True, cursor=None, limit=1)).unread == 2
        first = await mark_read(connection, owner, good.id)
        assert first.read_at
        assert (await mark_read(connection, owner, good.id)).read_at == first.read_at
        solved = await resolve(connection, owner, person, bad.id)
        assert (solved.resolved_by, solved.read_at is not None, solved.resolved_at is not None) == (person, True, True)
        assert (await resolve(connection, owner, None, bad.id)) == solved
        assert await mark_all_read(connection, owner) == 0
        stranger = engine.add_owner()
        for refused in (mark_read(connection, stranger, good.id), resolve(connection, stranger, None, bad.id)):
            with pytest.raises(NotFound):
                await refused
    async with desk.database.connection() as connection:
        with pytest.raises(NotAnError):
            await resolve(connection, owner, person, good.id)
    assert await shown(desk, owner, unread=True) == []


async def test_a_purged_document_takes_its_notifications_along(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    made = await desk.add(owner, b"text", given={"title": "Gone"})
    engine.complete(claim(engine))
    await office.relay()
    engine.run("DELETE FROM documents WHERE id = %s", made.document_id)
    assert await shown(desk, owner) == []


async def test_notifications_of_a_visitor_move_to_the_account_at_sign_in(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    """Also what happened to the visitor's documents and was not relayed before."""
    visitor = uuid4()
    engine.run("INSERT INTO owners (id, kind) VALUES (%s, 'anonymous')", visitor)
    for body in (b"told before", b"told after"):
        await desk.add(visitor, body, given={"import": str(uuid4())})
        engine.complete(claim(engine))
        if body == b"told before":
            await office.relay()
    engine.one("SELECT merge_owner(%s, %s)", visitor, owner)
    await office.relay()
    assert len(await shown(desk, owner)) == 2


async def test_old_notifications_are_deleted_except_unresolved_errors(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    for _ in range(3):
        await add_import(desk, owner, 1)
        engine.complete(claim(engine))
    await desk.add(owner, b"4")
    engine.fail(claim(engine), ErrorClass.UNSUPPORTED)
    await office.relay()
    news = [one.id for one in await shown(desk, owner) if one.level == "news"]
    old, young = "now() - interval '91 days'", "now() - interval '89 days'"
    engine.run(f"UPDATE notifications SET created_at = {old}, read_at = {old}")
    engine.run(f"UPDATE notifications SET created_at = {young} WHERE id = %s", news[0])
    assert await forget_notifications(desk.database) == 2
    assert [one.level for one in await shown(desk, owner)] == ["news", "error"]
    subscriber = office.subscribe(owner)
    for days in (91, 89):
        engine.run(
            "INSERT INTO deliveries (id, subscriber_id, job_id, attempt, type, status, seconds, at) VALUES"
            " (gen_random_uuid(), %s, gen_random_uuid(), 1, 'x', 'delivered', 0, now() - make_interval(days => %s))",
            *(subscriber, days),
        )
    assert await forget_attempts(desk.database) == 1


async def test_a_retry_after_an_import_changes_its_line_and_nothing_else(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    await add_import(desk, owner, 2)
    engine.complete(claim(engine))
    engine.fail(claim(engine), ErrorClass.UNSUPPORTED)
    engine.advance(61)
    for _ in range(2):
        await office.relay()
    async with desk.database.connection() as connection:
        await mark_all_read(connection, owner)
    (before,) = await shown(desk, owner)
    assert before.sentence == "Import finished: 2 added · 1 ready · 1 needs you."
    engine.requeue(engine.one("SELECT id FROM jobs WHERE status = 'failed'"))
    engine.complete(claim(engine))
    await office.relay()
    (after,) = await shown(desk, owner)
    assert (after.type, after.read_at, after.created_at) == (before.type, before.read_at, before.created_at)
    assert after.sentence == "Import finished: 2 added · 2 ready."
