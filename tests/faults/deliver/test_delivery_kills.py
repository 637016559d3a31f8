"""Workers that die between sending and writing it down send again, with the same id, and in order."""

from __future__ import annotations

import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from octavo.deliver.channels import new_secret
from tests.support.deliveries import EVERYTHING, SKIP_WAITS_AT_REST, SUBSCRIBE, Receiver, receiver
from tests.support.engine import Engine, Workers, engine_on, workers_in
from tests.support.processes import PATIENCE_SECONDS, wait_until

# A worker that loses a lease while it lives may send again and out of order, which is not what is tried here.
LEASE = 10
SUBSCRIBER = UUID("00000000-0000-7000-8000-000000000009")


@pytest.fixture
def engine(database_info: str) -> Iterator[Engine]:
    with engine_on(database_info) as one:
        yield one
        one.check_invariants()


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as one:
        yield one


@pytest.fixture
def workers(folder: Path, database_info: str, there: Receiver) -> Iterator[Workers]:
    with workers_in(folder, database_info, lease_seconds=LEASE, fetch_allow=there.allowed) as some:
        yield some


def subscribe(engine: Engine, there: Receiver) -> UUID:
    owner = engine.add_owner()
    values = (SUBSCRIBER, owner, "webhook", there.url, new_secret(), EVERYTHING, False)
    engine.run(SUBSCRIBE, *values)
    return owner


def wanted(engine: Engine) -> list[str]:
    """The ids of all events of other jobs than deliveries, in the order in which they are read."""
    told = """
        SELECT e.id FROM events e JOIN jobs j ON j.id = e.process_id WHERE j.kind = 'demo' ORDER BY e.epoch, e.id"""
    return [f"evt_{row['id']}" for row in engine.rows(told)]


def wait_for_deliveries(engine: Engine) -> None:
    def nothing_left() -> bool:
        unfinished = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')"
        unread = """
            SELECT count(*) FROM events e, relay r, jobs j
            WHERE (e.epoch, e.id) > (r.epoch, r.id) AND j.id = e.process_id AND j.kind = 'demo'"""
        return not any(engine.one(what) for what in (unread, "SELECT count(*) FROM outgoing", unfinished))

    wait_until(nothing_left, "everything is delivered")


def check_order(there: Receiver) -> None:
    lines: defaultdict[str, list[int]] = defaultdict(list)
    for body in there.bodies():
        lines[body["data"]["process_id"]].append(body["data"]["id"])
    assert all(line == sorted(line) for line in lines.values())


@pytest.mark.parametrize(
    ("point", "sent_again"),
    [("stage.work.before", False), ("stage.commit.before", True), ("stage.commit.after", False)],
)
def test_an_unrecorded_delivery_is_sent_again_with_the_same_id(
    engine: Engine, there: Receiver, workers: Workers, point: str, sent_again: bool
) -> None:
    owner = subscribe(engine, there)
    engine.put(owner, input={"stages": 0})
    victim = workers.start(faults=f"{point}@1=kill", worker_slots=1)
    assert victim.wait(PATIENCE_SECONDS) == -signal.SIGKILL, workers.log.read_text()
    engine.bury(victim)
    workers.start()
    wait_for_deliveries(engine)
    times = Counter(there.ids())
    assert set(times) == set(wanted(engine))
    assert sum(times.values()) == len(times) + sent_again
    check_order(there)
    secret = engine.one("SELECT secret FROM subscribers")
    for one in there.received:
        one.verify(secret)
    written = "SELECT count(*) FROM deliveries WHERE status = 'delivered'"
    assert engine.one(written) == len(times)


def test_workers_that_are_killed_again_and_again_lose_and_disorder_nothing(
    engine: Engine, there: Receiver, workers: Workers
) -> None:
    """Two relays and two workers at a time, on jobs that go on meanwhile; receivers fail now and then."""
    there.script += [500 if number % 7 == 3 else 200 for number in range(100)]
    owner = subscribe(engine, there)
    running = [workers.start(), workers.start()]
    jobs = engine.put(owner, count=15, max_attempts=9, input={"stages": 3, "seconds": 0.05})

    def arrived() -> set[str]:
        engine.run(SKIP_WAITS_AT_REST)
        return set(there.ids())

    for number in range(4):
        wait_until(lambda number=number: len(arrived()) >= 8 * (number + 1), "some have arrived")
        running[0].kill()
        engine.bury(running[0])
        running = [*running[1:], workers.start()]
    wait_until(lambda: arrived() and all(engine.status(job) == "complete" for job in jobs), "all jobs end")
    wait_until(lambda: arrived() >= set(wanted(engine)), "everything has arrived")
    assert set(there.ids()) == set(wanted(engine))
    keys = Counter(row["key"] for row in engine.rows("SELECT key FROM jobs WHERE kind = 'deliver'"))
    assert sorted(keys) == sorted(f"{one.removeprefix('evt_')}:{SUBSCRIBER}" for one in wanted(engine))
    check_order(there)
