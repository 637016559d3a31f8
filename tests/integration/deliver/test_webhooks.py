"""A receiver that fails, hangs and breaks off gets every event at least once, in order, with a good signature."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from uuid import UUID, uuid4

import pytest

from octavo.core.errors import NotFound
from octavo.deliver.channels import NoSecret, NotReplayable
from octavo.deliver.subscribers import replay_delivery, rotate_secret, send_test
from octavo.fetch import GuardedClient
from octavo.owners import Caller
from tests.support.deliveries import Answer, PostOffice, Received, delivering, receiver
from tests.support.engine import Engine
from tests.support.library import Desk

ALL_OF_IT: list[Answer] = [500, "hang", "cut", (429, {"retry-after": "1"}), 408, 425, 500, "cut", "hang", 504]
ALONE: dict[str, list[Answer]] = {
    "errors": [500, 503, 502],
    "silence": ["hang"],
    "broken off": ["cut", "cut"],
    "asks for patience": [(429, {"retry-after": "1"}), (503, {"retry-after": "2"})],
}


def live(engine: Engine, owner: UUID, jobs: int = 3) -> list[UUID]:
    """Jobs with five events each."""
    made = engine.put(owner, count=jobs)
    for job in engine.claim(slots=jobs):
        for stage in ("one", "two"):
            engine.finish_stage(job, stage)
        engine.complete(job)
    return made


def check_order(received: Sequence[Received]) -> None:
    """What is repeated is repeated before the next comes."""
    lines: defaultdict[str, list[int]] = defaultdict(list)
    for one in received:
        lines[one.json["data"]["process_id"]].append(one.json["data"]["id"])
    for line in lines.values():
        assert line == sorted(line)


async def test_every_event_comes_at_least_once_in_order_and_signed(
    office: PostOffice, engine: Engine, owner: UUID
) -> None:
    await deliver_all(office, engine, owner, ALL_OF_IT)


@pytest.mark.long
@pytest.mark.parametrize("script", ALONE.values(), ids=list(ALONE))
async def test_after_one_kind_of_failure_every_event_comes_in_order_and_signed(
    office: PostOffice, engine: Engine, owner: UUID, script: list[Answer]
) -> None:
    await deliver_all(office, engine, owner, script)


async def deliver_all(office: PostOffice, engine: Engine, owner: UUID, script: list[Answer]) -> None:
    with receiver(*script) as there:
        subscriber = office.subscribe(owner, there.url)
        live(engine, owner)
        async with delivering(office, fetch_allow=there.allowed, delivery_seconds=2):
            await office.until_delivered()
        events = engine.rows("SELECT e.id FROM events e JOIN jobs j ON j.id = e.process_id WHERE j.kind = 'demo'")
        assert set(there.ids()) == {f"evt_{row['id']}" for row in events}
        assert len(there.received) >= len(events) + len(script)
        check_order(there.received)
        for one in there.received:
            one.verify(office.secret(subscriber))
    outcomes = [status for status, _, _ in office.tries(subscriber)]
    assert outcomes.count("delivered") == len(events)
    assert len(script) <= outcomes.count("failed") == len(there.received) - len(events)


async def test_an_event_is_sent_with_its_fields_and_no_document_content(
    office: PostOffice, engine: Engine, owner: UUID
) -> None:
    with receiver() as there:
        subscriber = office.subscribe(owner, there.url, ["job.completed"])
        (process,) = live(engine, owner, 1)
        async with delivering(office, fetch_allow=there.allowed):
            await office.until_delivered()
        (one,) = there.received
    (event,) = engine.rows("SELECT * FROM events WHERE process_id = %s AND kind = 'complete'", process)
    at = event["at"].isoformat()
    assert one.json["type"] == "job.completed"
    assert one.json["timestamp"].startswith(at[:19])
    assert one.json["data"] == {
        "id": event["id"],
        "at": one.json["timestamp"],
        "kind": "complete",
        "process_id": str(process),
        "document_id": None,
        "state_after": "complete",
        "detail": {"attempt": 1},
    }
    assert one.headers["content-type"] == "application/json"
    assert office.tries(subscriber) == [("delivered", 200, None)]


async def test_a_completed_document_is_sent_with_its_facts(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    with receiver() as there:
        office.subscribe(owner, there.url, ["document.created", "document.completed"])
        await desk.add(owner, b"text", given={"title": "Invoice 17", "author": "Ada Holm"})
        engine.complete(engine.claim_one(kinds=["process_document"]))
        async with delivering(office, fetch_allow=there.allowed):
            await office.until_delivered()
        sent = {one.json["type"]: one.json["data"].get("facts") for one in there.received}
    assert sent["document.created"] is None
    assert sent["document.completed"]["author"] == {
        "value": "Ada Holm",
        "normalized": "ada holm",
        "confidence": 1,
        "status": "confirmed",
    }


async def test_an_event_arrives_within_two_seconds(office: PostOffice, engine: Engine, owner: UUID) -> None:
    """Of real time, with the pauses that a relay makes, beside a long line of other jobs of the same owner."""
    with receiver() as there:
        office.subscribe(owner, there.url, ["job.completed"])
        async with delivering(office, fetch_allow=there.allowed):
            engine.put(owner, count=200)
            took: list[float] = []
            while len(took) < 3 and not any(seconds < 2 for seconds in took):  # a busy machine has more than one try
                engine.complete(engine.claim_one())
                happened = time.monotonic()
                await office.until(lambda: len(there.received) > len(took), "it arrives")
                took.append(time.monotonic() - happened)
            assert min(took) < 2
            await office.until_delivered()


async def test_one_that_is_gone_is_stopped_and_what_waits_for_it_is_dropped(
    office: PostOffice, engine: Engine, owner: UUID
) -> None:
    with receiver(410) as there:
        subscriber = office.subscribe(owner, there.url)
        live(engine, owner, 1)
        async with delivering(office, fetch_allow=there.allowed):
            await office.until_delivered()
            live(engine, owner, 1)
            await office.until_delivered()
        assert len(there.received) == 1
    (row,) = engine.rows("SELECT active, stopped_because FROM subscribers WHERE id = %s", subscriber)
    assert (row["active"], row["stopped_because"]) == (False, "RECEIVER_GONE")
    assert office.tries(subscriber) == [("failed", 410, "RECEIVER_GONE")]


async def test_a_refused_delivery_is_not_retried_and_delays_no_other(
    office: PostOffice, engine: Engine, owner: UUID
) -> None:
    refusals = (302, 400, 401, 404)
    with ExitStack() as stack:
        elsewhere = {"location": "http://127.0.0.1:1/"}
        receivers = {status: stack.enter_context(receiver((status, elsewhere))) for status in refusals}
        subscribers = {
            status: office.subscribe(owner, there.url, ["job.created", "job.completed"])
            for status, there in receivers.items()
        }
        live(engine, owner, 1)
        async with delivering(office, fetch_allow=",".join(there.allowed for there in receivers.values())):
            await office.until_delivered()
        for there in receivers.values():
            assert len(set(there.ids())) == len(there.received) == 2
    for status, subscriber in subscribers.items():
        assert office.tries(subscriber) == [("failed", status, "RECEIVER_REFUSED"), ("delivered", 200, None)]
    assert engine.one("SELECT count(*) FROM jobs WHERE kind = 'deliver' AND status = 'failed'") == len(refusals)


async def test_a_receiver_that_never_recovers_becomes_a_dead_letter(
    office: PostOffice, engine: Engine, owner: UUID
) -> None:
    with receiver(*[500] * 12) as there:
        subscriber = office.subscribe(owner, there.url, ["job.created", "job.completed"])
        live(engine, owner, 1)
        async with delivering(office, fetch_allow=there.allowed):
            await office.until_delivered()
        check_order(there.received)
    assert office.tries(subscriber) == [("failed", 500, "RECEIVER_FAILED")] * 12 + [("delivered", 200, None)]
    (dead,) = engine.rows("SELECT error_code FROM jobs WHERE kind = 'deliver' AND status = 'dead_letter'")
    assert dead["error_code"] == "RECEIVER_FAILED"


async def test_nothing_is_sent_inside_even_when_only_the_name_leads_there(
    office: PostOffice, engine: Engine, owner: UUID
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        del host, port
        return ["127.0.0.1"]

    with receiver() as there:
        subscriber = office.subscribe(owner, f"http://hooks.example.org:{there.port}/hook", ["job.completed"])
        live(engine, owner, 1)
        async with delivering(office, GuardedClient(frozenset(), resolve=resolve)):
            await office.until_delivered()
        assert there.received == []
    assert office.tries(subscriber) == [("failed", None, "FETCH_REFUSED")]


async def test_a_test_delivery_is_sent_immediately_and_signed(office: PostOffice, engine: Engine, owner: UUID) -> None:
    """Also to one that is stopped, so that it can be seen whether it works again."""
    with receiver() as there:
        subscriber = office.subscribe(owner, there.url)
        engine.run("UPDATE subscribers SET active = false WHERE id = %s", subscriber)
        async with delivering(office, fetch_allow=there.allowed):
            async with office.database.transaction() as connection:
                caller = Caller(owner, "user", None, "owner", "admin", "session")
                job = await send_test(connection, caller, subscriber)
            await office.until(lambda: engine.status(job) == "complete", "it is sent")
        (one,) = there.received
        one.verify(office.secret(subscriber))
    assert (one.json["type"], one.id) == ("webhook.test", f"test_{job}")
    assert office.tries(subscriber) == [("delivered", 200, None)]


async def test_a_receiver_that_hangs_takes_two_slots_at_most(office: PostOffice, engine: Engine, owner: UUID) -> None:
    with receiver(*["hang"] * 10) as silent, receiver() as quick:
        office.subscribe(owner, silent.url, ["job.completed"])
        office.subscribe(owner, quick.url, ["job.completed"])
        live(engine, owner, 10)
        async with delivering(office, fetch_allow=f"{silent.allowed},{quick.allowed}", delivery_seconds=45):
            await office.until(lambda: len(quick.received) == 10, "the other one has everything")
            assert len(silent.received) == 2
            engine.run("UPDATE subscribers SET active = false")
            silent.over.set()
            await office.until_delivered()


def member(owner: UUID) -> Caller:
    return Caller(owner, "user", None, "owner", "admin", "session")


async def test_after_a_rotation_both_secrets_sign_for_a_day(office: PostOffice, engine: Engine, owner: UUID) -> None:
    with receiver() as there:
        subscriber = office.subscribe(owner, there.url, ["job.completed"])
        old = office.secret(subscriber)
        async with office.database.transaction() as connection:
            made = await rotate_secret(connection, member(owner), subscriber)
        assert made.secret == office.secret(subscriber) != old
        for over in (False, True):
            if over:
                engine.run("UPDATE subscribers SET old_until = engine_now()")
            live(engine, owner, 1)
            async with delivering(office, fetch_allow=there.allowed):
                await office.until_delivered()
        first, later = there.received
    for secret in (made.secret, old):
        first.verify(secret or "")
    later.verify(made.secret or "")
    assert len(first.headers["webhook-signature"].split()) == 2
    assert len(later.headers["webhook-signature"].split()) == 1


async def test_only_webhooks_have_a_secret_to_rotate(office: PostOffice, owner: UUID) -> None:
    mail = office.subscribe(owner, "ann@example.org", channel="mail")
    async with office.database.transaction() as connection:
        with pytest.raises(NoSecret):
            await rotate_secret(connection, member(owner), mail)
        with pytest.raises(NotFound):
            await rotate_secret(connection, member(owner), uuid4())


async def test_a_delivery_is_sent_again_as_it_was(office: PostOffice, engine: Engine, owner: UUID) -> None:
    with receiver() as there:
        subscriber = office.subscribe(owner, there.url, ["job.completed"])
        live(engine, owner, 1)
        async with delivering(office, fetch_allow=there.allowed):
            await office.until_delivered()
            attempt = engine.one("SELECT id FROM deliveries WHERE subscriber_id = %s", subscriber)
            async with office.database.transaction() as connection:
                await replay_delivery(connection, member(owner), subscriber, attempt)
            await office.until_delivered()
        first, again = there.received
    assert (again.id, again.body) == (first.id, first.body)
    assert office.tries(subscriber) == [("delivered", 200, None)] * 2


async def test_what_cannot_be_sent_again_is_refused(office: PostOffice, engine: Engine, owner: UUID) -> None:
    with receiver() as there:
        subscriber = office.subscribe(owner, there.url, ["job.completed"])
        async with delivering(office, fetch_allow=there.allowed):
            async with office.database.transaction() as connection:
                await send_test(connection, member(owner), subscriber)
            await office.until_delivered()
        attempt = engine.one("SELECT id FROM deliveries WHERE subscriber_id = %s", subscriber)
        async with office.database.transaction() as connection:
            with pytest.raises(NotReplayable, match="test"):
                await replay_delivery(connection, member(owner), subscriber, attempt)
            with pytest.raises(NotFound):
                await replay_delivery(connection, member(owner), subscriber, uuid4())
            await connection.execute(b"UPDATE subscribers SET active = false")
            with pytest.raises(NotReplayable, match="paused"):
                await replay_delivery(connection, member(owner), subscriber, attempt)
