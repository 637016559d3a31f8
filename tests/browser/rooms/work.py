"""Real things to show: dead letters of jobs that really failed, keys, people, webhooks with a log."""

from __future__ import annotations

from uuid import UUID, uuid4

from tests.support.browser import Place, Visitor
from tests.support.engine import Engine
from tests.support.processes import wait_until

SECONDS = 30


def make_dead_letters(place: Place, number: int) -> list[UUID]:
    """Jobs of the machine's own owner that the running worker gave up after their first and only attempt."""
    engine = place.database
    owner = engine.one("SELECT id FROM owners WHERE kind = 'local'")
    known = "SELECT count(*) FROM job_kinds WHERE name = 'demo'"
    wait_until(lambda: engine.one(known), SECONDS, "a worker has said what kinds there are")
    failing = {"stages": 1, "fail": "transient"}
    jobs = engine.put(owner, "demo", number, input=failing, max_attempts=1, priority=0)
    wait_until(lambda: all(is_dead(engine, job) for job in jobs), SECONDS, "the jobs are given up")
    return jobs


def is_dead(engine: Engine, job: UUID) -> bool:
    return engine.status(job) == "dead_letter"


def fill_rooms(member: Visitor) -> str:
    """A key, a second person, a stopped webhook with a log, and notifications; answers the webhook's id."""
    member.ask("POST", "/keys", json={"name": "A script with a name that is longer than most names", "scope": "write"})
    with member.place.client() as other:
        email = f"somebody.with.a.long.address.{uuid4().hex}@department.example.org"
        other.post("/api/v1/account", json={"email": email, "password": "correct horse battery"})
    member.ask("POST", "/members", json={"email": email, "role": "reader"})
    address = "https://hooks.example.org/a/rather/long/address/of/a/webhook/0f9a8b7c6d5e4f3a2b1c"
    hook = str(member.ask("POST", "/webhooks", json={"address": address})["id"])
    engine = member.place.database
    engine.run("UPDATE subscribers SET active = false, stopped_because = 'GONE' WHERE id = %s", hook)
    for status, answer, code in (("failed", 503, "GW_5XX"), ("delivered", 204, None)):
        engine.run(
            "INSERT INTO deliveries (id, subscriber_id, job_id, attempt, type, status, answer, seconds, error_code)"
            " VALUES (gen_random_uuid(), %s, gen_random_uuid(), 1, 'document.failed', %s, %s, 0.25, %s)",
            *(hook, status, answer, code),
        )
    tell(member, None)
    tell(member, "CRASHED")
    return hook


def tell(member: Visitor, error: str | None) -> UUID:
    made, owner = uuid4(), member.ask("GET", "/session")["owner_id"]
    kind, level = ("job.failed", "error") if error else ("document.completed", "news")
    member.place.database.run(
        "INSERT INTO notifications (id, owner_id, event_id, process_id, type, level, error_code, created_at)"
        " VALUES (%s, %s, %s, gen_random_uuid(), %s, %s, %s, now())",
        *(made, owner, made.int % 2**60, kind, level, error),
    )
    return made
