"""Jobs over HTTP: first who may see and change what, then what is answered."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from octavo.core.errors import ErrorClass
from octavo.core.types import Lane, hash_token
from tests.api.conftest import Web
from tests.support.engine import Engine, engine_on

JOB_FIELDS = [
    *("id", "kind", "document_id", "status", "stage", "attempt", "failures", "max_attempts", "progress", "eta"),
    *("waiting_because", "error", "stages", "created_at", "queued_at", "started_at", "progressed_at"),
    *("completed_at", "failed_at", "lane"),
]
UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
CALLERS = ["anonymous", "stranger", "owner", "admin"]
# A route, the state in which the owner's job is, and what each caller is answered.
ROUTES: list[tuple[str, str, str, list[int]]] = [
    ("GET", "/api/v1/jobs", "queued", [200, 200, 200, 200]),
    ("GET", "/api/v1/jobs/{job}", "queued", [404, 404, 200, 404]),
    ("POST", "/api/v1/jobs/{job}/cancel", "queued", [404, 404, 200, 404]),
    ("POST", "/api/v1/jobs/{job}/retry", "cancelled", [404, 404, 200, 404]),
    ("POST", "/api/v1/jobs/{job}/prioritise", "queued", [404, 404, 200, 404]),
    ("GET", "/api/v1/imports", "queued", [200, 200, 200, 200]),
    ("POST", "/api/v1/imports/pause", "queued", [200, 200, 200, 200]),
    ("POST", "/api/v1/imports/resume", "queued", [200, 200, 200, 200]),
    ("GET", "/api/v1/admin/dead-letters", "dead_letter", [401, 403, 403, 200]),
    ("POST", "/api/v1/admin/dead-letters/{job}/requeue", "dead_letter", [401, 403, 403, 200]),
    ("POST", "/api/v1/admin/dead-letters/{job}/discard", "dead_letter", [401, 403, 403, 200]),
    ("POST", "/api/v1/admin/dead-letters/requeue", "dead_letter", [401, 403, 403, 200]),
    ("POST", "/api/v1/admin/dead-letters/discard", "dead_letter", [401, 403, 403, 200]),
    ("GET", "/api/v1/admin/workers", "queued", [401, 403, 403, 200]),
    ("GET", "/api/v1/admin/health", "queued", [401, 403, 403, 200]),
    ("GET", "/api/v1/admin/activity", "queued", [401, 403, 403, 200]),
]
CASES = [
    pytest.param(*route[:3], caller, status, id=f"{route[0]} {route[1]} {caller}")
    for route in ROUTES
    for caller, status in zip(CALLERS, route[3], strict=True)
]
CODES = {401: "UNAUTHENTICATED", 403: "FORBIDDEN", 404: "NOT_FOUND", 409: "ILLEGAL_TRANSITION", 422: "VALIDATION"}


@dataclass(frozen=True, slots=True)
class House:
    """A server, its database, and a browser for each caller."""

    engine: Engine
    owner: UUID
    browsers: dict[str, httpx.Client]

    @property
    def browser(self) -> httpx.Client:
        return self.browsers["owner"]

    @property
    def admin(self) -> httpx.Client:
        return self.browsers["admin"]

    def job(self, status: str = "queued") -> UUID:
        (job,) = self.engine.put(self.owner, max_attempts=1)
        if status == "cancelled":
            self.engine.cancel(job)
        elif status != "queued":
            claimed = self.engine.claim_one()
            if status == "complete":
                self.engine.complete(claimed)
            elif status == "dead_letter":
                self.engine.fail(claimed, ErrorClass.TRANSIENT)
        return job


@pytest.fixture
def house(web: Web) -> Iterator[House]:
    with engine_on(web.database_info) as engine:
        engine.run("DELETE FROM owners")  # and with them their jobs and sessions
        engine.run("DELETE FROM workers")
        owners = {"stranger": engine.add_owner(), "owner": engine.add_owner(), "admin": uuid4()}
        engine.run("INSERT INTO owners (id, kind) VALUES (%s, 'local')", owners["admin"])
        browsers = {name: browser(web, engine, owners.get(name)) for name in CALLERS}
        yield House(engine, owners["owner"], browsers)
        for one in browsers.values():
            one.close()


def browser(web: Web, engine: Engine, owner: UUID | None) -> httpx.Client:
    cookies: dict[str, str] = {}
    if owner:
        cookies["octavo_session"] = secrets.token_urlsafe(16)
        engine.run(
            "INSERT INTO sessions (token_hash, owner_id, expires_at) VALUES (%s, %s, now() + interval '1 hour')",
            hash_token(cookies["octavo_session"]),
            owner,
        )
    # Nothing is encrypted here, and reading certificates is what takes long about a client.
    return httpx.Client(base_url=web.address, cookies=cookies, trust_env=False, verify=False)


def refused(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["code"]) == (status, CODES[status])
    return body


# Who ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path", "state", "caller", "status"), CASES)
def test_every_route_and_every_caller(
    house: House, method: str, path: str, state: str, caller: str, status: int
) -> None:
    job = house.job(state)
    before = house.engine.job(job)
    body = {"ids": [str(job)]} if path.endswith(("dead-letters/requeue", "dead-letters/discard")) else None
    answer = house.browsers[caller].request(method, path.format(job=job), json=body)
    if status == 200:
        assert answer.status_code == 200, answer.text
    else:
        refused(answer, status)
        assert house.engine.job(job) == before
    if method == "GET":
        assert house.engine.job(job) == before


def test_a_foreign_job_is_answered_like_one_that_is_not_there(house: House) -> None:
    stranger = house.browsers["stranger"]
    foreign = refused(stranger.get(f"/api/v1/jobs/{house.job()}"), 404)
    assert refused(stranger.get(f"/api/v1/jobs/{uuid4()}"), 404) == foreign
    assert stranger.get("/api/v1/jobs").json() == {"items": [], "next_cursor": None}


def test_a_session_that_ended_is_nobody(house: House) -> None:
    house.job()
    house.engine.run("UPDATE sessions SET expires_at = now()")
    assert house.browser.get("/api/v1/jobs").json() == {"items": [], "next_cursor": None}
    refused(house.admin.get("/api/v1/admin/workers"), 401)


def test_the_administrators_list_has_everybodys_dead_letters(house: House) -> None:
    job = house.job("dead_letter")
    (found,) = house.admin.get("/api/v1/admin/dead-letters").json()["items"]
    assert (found["id"], found["error"]) == (str(job), {"code": "TRANSIENT", "message": "It failed."})


# What --------------------------------------------------------------------------------------------------------------


def test_a_job_has_the_fields_of_the_contract(house: House) -> None:
    job = house.job()
    found = house.browser.get(f"/api/v1/jobs/{job}").json()
    assert list(found) == JOB_FIELDS
    assert (found["id"], found["kind"], found["status"]) == (str(job), "demo", "queued")
    assert found["progress"] == {"done": 0, "total": None, "unit": None}
    assert found["waiting_because"] == {
        "reason": "no_worker",
        "detail": "no worker is running",
        "facts": {"live_workers": 0},
    }
    assert UTC_TIME.fullmatch(found["created_at"])
    assert house.browser.get("/api/v1/jobs").json()["items"] == [found]


def test_pages_follow_each_other(house: House) -> None:
    jobs = {str(job) for job in house.engine.put(house.owner, count=5)}
    first = house.browser.get("/api/v1/jobs", params={"limit": 3}).json()
    second = house.browser.get("/api/v1/jobs", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert {job["id"] for job in first["items"] + second["items"]} == jobs
    assert second["next_cursor"] is None


@pytest.mark.parametrize(
    "query",
    [
        "status=sleeping",
        "limit=0",
        "limit=501",
        "limit=many",
        "limit=99999999999999999999",
        "cursor=%00",
        "cursor=nonsense",
        "cursor=%ff",
        f"cursor={'x' * 501}",
        "kind=%00",
        "kind=%ff%fe",
        "document_id=1",
    ],
)
def test_what_cannot_be_asked_is_refused(house: House, query: str) -> None:
    refused(house.browser.get(f"/api/v1/jobs?{query}"), 422)


@pytest.mark.parametrize("job", ["1", "%00", "x" * 500, "not-a-uuid"])
@pytest.mark.parametrize(
    "path", ["/api/v1/jobs/{}/cancel", "/api/v1/jobs/{}/retry", "/api/v1/admin/dead-letters/{}/discard"]
)
def test_an_id_that_is_none_names_nothing(house: House, path: str, job: str) -> None:
    refused(house.admin.post(path.format(job)), 404)


@pytest.mark.parametrize(
    "body",
    [
        b'{"from_stage": 1}',
        b'{"from_stage": "\\u0000"}',
        b'{"from_stage": "\\ud800"}',
        b'{"from_stage": "never-finished"}',
        b'{"stage": "x"}',
        b'{"from_stage": "x"',
        b"[]",
    ],
)
def test_a_retry_that_cannot_be_is_refused(house: House, body: bytes) -> None:
    job = house.job("cancelled")
    before = house.engine.job(job)
    headers = {"content-type": "application/json"}
    refused(house.browser.post(f"/api/v1/jobs/{job}/retry", content=body, headers=headers), 422)
    assert house.engine.job(job) == before


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/jobs/{job}/cancel", "complete"),
        ("/api/v1/jobs/{job}/cancel", "cancelled"),
        ("/api/v1/jobs/{job}/retry", "queued"),
        ("/api/v1/jobs/{job}/retry", "processing"),
        ("/api/v1/jobs/{job}/retry", "complete"),
        ("/api/v1/jobs/{job}/prioritise", "complete"),
        ("/api/v1/jobs/{job}/prioritise", "dead_letter"),
    ],
)
def test_what_a_job_in_its_state_cannot_do_changes_nothing(house: House, path: str, status: str) -> None:
    job = house.job(status)
    before, events = house.engine.job(job), house.engine.events(job)
    refused(house.browser.post(path.format(job=job)), 409)
    assert (house.engine.job(job), house.engine.events(job)) == (before, events)


def test_a_job_of_an_import_moves_up_once(house: House) -> None:
    (job,) = house.engine.put(house.owner, lane=Lane.BULK)
    answers = [house.browser.post(f"/api/v1/jobs/{job}/prioritise").json()["lane"] for _ in range(2)]
    assert answers == ["interactive", "interactive"]
    assert [event["kind"] for event in house.engine.events(job)] == ["created", "prioritised"]


def test_paused_imports_are_the_reason_why_their_jobs_wait(house: House) -> None:
    (job,) = house.engine.put(house.owner, lane=Lane.BULK)
    paused = house.browser.post("/api/v1/imports/pause").json()
    assert paused["paused_at"]
    assert (house.browser.get("/api/v1/imports").json(), paused["waiting"]) == (paused, 1)
    waiting = house.browser.get(f"/api/v1/jobs/{job}").json()["waiting_because"]
    assert (waiting["reason"], waiting["detail"]) == ("imports_paused", "imports are paused")
    assert house.browser.post("/api/v1/imports/resume").json()["paused_at"] is None
    assert house.browser.get(f"/api/v1/jobs/{job}").json()["waiting_because"]["reason"] != "imports_paused"


def test_cancel_and_retry_answer_the_job_as_it_is_then(house: House) -> None:
    job = house.job()
    assert house.browser.post(f"/api/v1/jobs/{job}/cancel").json()["status"] == "cancelled"
    assert house.browser.post(f"/api/v1/jobs/{job}/retry", json={}).json()["status"] == "queued"


def test_a_retry_from_a_stage_does_that_stage_again(house: House) -> None:
    (job,) = house.engine.put(house.owner)
    claimed = house.engine.claim_one()
    for stage in ("read", "save", "split"):
        house.engine.finish_stage(claimed, stage)
    house.engine.fail(claimed, ErrorClass.PERMANENT)
    found = house.browser.post(f"/api/v1/jobs/{job}/retry", json={"from_stage": "save"}).json()
    assert [stage["stage"] for stage in found["stages"]] == ["read"]


@pytest.mark.parametrize(("verb", "status"), [("requeue", "queued"), ("discard", "cancelled")])
def test_dead_letters_are_changed_together_or_not_at_all(house: House, verb: str, status: str) -> None:
    letters, alive = [house.job("dead_letter") for _ in range(3)], house.job("cancelled")
    path = f"/api/v1/admin/dead-letters/{verb}"
    refused(house.admin.post(path, json={"ids": [str(letters[0]), str(alive)]}), 409)
    refused(house.admin.post(path, json={"ids": [str(letters[0]), str(uuid4())]}), 404)
    refused(house.admin.post(path, json={"ids": []}), 422)
    refused(house.admin.post(path, json={"ids": ["1"]}), 422)
    assert {house.engine.status(letter) for letter in letters} == {"dead_letter"}
    answer = house.admin.post(path, json={"ids": [str(letter) for letter in letters]})
    assert answer.json() == {"changed": 3}
    assert {house.engine.status(letter) for letter in letters} == {status}
    refused(house.admin.post(f"/api/v1/admin/dead-letters/{letters[0]}/{verb}"), 409)


def test_the_administrator_sees_workers_and_how_much_there_is_to_do(house: House) -> None:
    house.job("dead_letter")
    house.job()
    house.engine.run(
        "INSERT INTO workers SELECT %s, 'host', 7, '{demo}', 10, 0, at, at, at + interval '60 s' FROM engine_now() at",
        uuid4(),
    )
    (worker,) = house.admin.get("/api/v1/admin/workers").json()["items"]
    assert (worker["pid"], worker["kinds"], worker["slots"], worker["alive"]) == (7, ["demo"], 10, True)
    health = house.admin.get("/api/v1/admin/health").json()
    assert (health["ready"], health["live_workers"]) == (True, 1)
    assert health["jobs"] == {"dead_letter": 1, "queued": 1}
    assert [check["name"] for check in health["checks"]] == ["database", "connections", "storage", "disk"]


def test_the_administrator_sees_what_the_installation_does(house: House) -> None:
    house.job("dead_letter")
    house.job()
    claimed = house.engine.claim_one()
    house.job()
    activity = house.admin.get("/api/v1/admin/activity").json()
    (kind,) = activity["kinds"]
    assert {name: kind[name] for name in ("queued", "delayed", "running", "paused", "failed")} == {
        "queued": 1,
        "delayed": 0,
        "running": 1,
        "paused": 0,
        "failed": 1,
    }
    assert kind["oldest_wait_seconds"] >= 0
    assert activity["stages"] == []
    assert activity["spending"] == {
        "month_usd": 0.0,
        "budget_usd": 100.0,
        "new_answers": 0,
        "reused_answers": 0,
        "sources": [],
    }
    for part in ("1", "2"):
        house.engine.finish_stage(claimed, "counted", part)
    house.engine.complete(claimed)
    activity = house.admin.get("/api/v1/admin/activity").json()
    (stage,) = activity["stages"]
    assert (stage["stage"], stage["jobs"], stage["mean_seconds"]) == ("counted", 1, 1.0)
    assert activity["kinds"][0]["finished_last_minute"] == 1


def test_openapi_describes_jobs_and_refusals(house: House) -> None:
    described = house.browser.get("/api/openapi.json").json()
    assert list(described["components"]["schemas"]["JobView"]["properties"]) == JOB_FIELDS
    for method, path, _, _ in ROUTES:
        responses = described["paths"][path][method.lower()]["responses"]
        problems = [one for status, one in responses.items() if status != "200"]
        assert {"200", "401"} <= set(responses)
        assert all(list(one["content"]) == ["application/problem+json"] for one in problems)
