"""Operations are for the administrator alone: how things are, and acting on all that was chosen or on nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import UUID, uuid4

import httpx
import pytest

from octavo.core.errors import ErrorClass
from octavo.jobs.kinds import Schedule, sync_schedules
from octavo.web.rooms.operations.job_pages import ROWS
from tests.api.rooms.conftest import administrator, guest, heading, is_page, person, went_to, words
from tests.support.engine import Engine, engine_on
from tests.support.visitors import House, OpenHouse, me, refused

ROUTES = [
    ("GET", "/operations"),
    ("GET", "/operations/pieces"),
    ("GET", "/operations/jobs"),
    ("GET", "/operations/jobs/{job}"),
    ("POST", "/operations/dead-letters"),
    ("POST", "/operations/schedules/nightly/run"),
    ("POST", "/operations/circuits/conversion/try"),
    ("POST", "/operations/jobs/{job}/cancel"),
    ("POST", "/operations/jobs/{job}/resume"),
    ("POST", "/operations/jobs/{job}/prioritise"),
    ("POST", "/operations/jobs/{job}/restart"),
    ("POST", "/operations/jobs/{job}/discard"),
]


@pytest.fixture
def engine(database_info: str, house: House) -> Iterator[Engine]:
    with engine_on(database_info) as engine:
        yield engine


async def owner_of(browser: httpx.AsyncClient) -> UUID:
    return UUID((await me(browser))["owner_id"])


def give_up(engine: Engine, owner: UUID, stages: int = 1) -> UUID:
    """A job whose attempts are used up, behind its first stage."""
    kind = engine.add_kind("frail", attempts=1)
    (job,) = engine.put(owner, kind)
    claimed = engine.claim_one(kinds=[kind])
    for number in range(stages):
        engine.finish_stage(claimed, f"stage-{number + 1}")
    engine.fail(claimed, ErrorClass.TRANSIENT)
    return job


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=[f"{method} {path}" for method, path in ROUTES])
async def test_for_everybody_else_there_is_nothing(house: House, engine: Engine, method: str, path: str) -> None:
    owner = await person(house, "ada@example.org")
    job = give_up(engine, await owner_of(owner))
    visitor = await guest(house)
    await me(visitor)
    events = engine.events(job)
    for browser in (await guest(house), visitor, owner):
        answer = await browser.request(method, path.format(job=job), data={"action": "resume", "ids": str(job)})
        is_page(answer, 404)
        assert str(job) not in answer.text
        api = await browser.request(method, path.format(job=job), headers={"accept": "application/json"})
        refused(api, 404, "NOT_FOUND")
    assert engine.events(job) == events


# How things are ----------------------------------------------------------------------------------------------------


async def test_without_a_worker_it_is_not_healthy_and_says_what_to_do(house: House) -> None:
    page = await (await administrator(house)).get("/operations")
    is_page(page)
    assert heading(page) == "Operations"
    assert "Not healthy" in words(page)
    assert "No worker is running, so no jobs are processed." in words(page)
    assert "No failed jobs." in words(page)


async def test_counts_are_filters_that_lead_to_their_jobs(house: House, engine: Engine) -> None:
    browser = await administrator(house)
    owner = await owner_of(browser)
    queued, working, backing_off, failed, paused, done, cancelled = engine.put(owner, "demo", 7)
    claimed = {job.id: job for job in engine.claim(slots=7)}
    engine.hand_back(claimed[queued])
    engine.fail(claimed[backing_off], ErrorClass.RATE_LIMIT)
    engine.fail(claimed[failed], ErrorClass.PERMANENT)
    engine.pause(paused, claimed[paused].lease_token)
    engine.complete(claimed[done])
    engine.cancel(cancelled)
    gave_up = give_up(engine, owner)
    page = await browser.get("/operations")
    counts = re.findall(r'id="op-count-(\w+)">([\d,]+)<', page.text)
    names = ("queued", "working", "backing_off", "paused", "failed", "dead_letter")
    assert dict(counts) == dict.fromkeys(names, "1")
    expected = {"queued": queued, "working": working, "backing_off": backing_off, "paused": paused, "failed": failed}
    expected |= {"dead_letter": gave_up, "complete": done, "cancelled": cancelled}
    for status, job in expected.items():
        listed = await browser.get("/operations/jobs", params={"status": status})
        assert jobs_on(listed) == [str(job)], status
    everything = await browser.get("/operations/jobs")
    assert set(jobs_on(everything)) == {str(one) for one in (queued, working, backing_off, failed, paused, gave_up)}
    assert jobs_on(await browser.get("/operations/jobs?kind=frail")) == [str(gave_up)]
    assert "No matching jobs" in words(await browser.get("/operations/jobs?kind=unknown"))


def jobs_on(page: httpx.Response) -> list[str]:
    is_page(page)
    return re.findall(r'<a class="strong" href="/operations/jobs/([^"]+)"', page.text)


@pytest.mark.parametrize("status", ["queued", "complete"])
async def test_long_lists_come_in_pages_and_skip_nothing(house: House, engine: Engine, status: str) -> None:
    browser = await administrator(house)
    made = {str(job) for job in engine.put(await owner_of(browser), "demo", ROWS + 7)}
    if status == "complete":
        engine.complete(*engine.claim(slots=ROWS + 7))
    seen: list[str] = []
    address: str | None = f"/operations/jobs?status={status}&kind=demo"
    while address:
        page = await browser.get(address)
        seen += jobs_on(page)
        address = next(iter(re.findall(r'href="([^"]+)" rel="next"', page.text)), "").replace("&amp;", "&")
    assert len(seen) == len(made)
    assert set(seen) == made


async def test_the_chart_has_a_table_and_is_small(house: House, engine: Engine) -> None:
    browser = await administrator(house)
    engine.put(await owner_of(browser), "demo", 12)
    page = (await browser.get("/operations")).text
    (svg,) = re.findall(r"<svg viewBox=\"0 0 48 100\".*?</svg>", page, re.DOTALL)
    assert len(svg) < 6 * 1024
    rows = re.findall(r'<th scope="row" class="numbers">[^<]+</th><td class="numbers">(\d+)</td>', page)
    assert len(rows) == 49
    assert rows[0] == "12"
    assert set(rows[1:]) == {"0"}


async def test_an_administrator_reads_only_their_own_titles(house: House, engine: Engine) -> None:
    browser, owner = await administrator(house), await person(house, "ada@example.org")
    headers = {"x-upload-filename": "secret-plans.txt"}
    for client in (browser, owner):
        answer = await client.post("/api/v1/documents", content=f"Text of {client.cookies}".encode(), headers=headers)
        assert answer.status_code == 202
    engine.run("UPDATE job_kinds SET max_attempts = 1")
    engine.run("UPDATE jobs SET max_attempts = 1")
    for job in engine.claim(slots=2, kinds=["process_document"]):
        engine.fail(job, ErrorClass.TRANSIENT)
    (theirs,) = engine.rows("SELECT id, document_id FROM jobs WHERE owner_id = %s", await owner_of(owner))
    for path in ("/operations", "/operations/jobs", "/operations/pieces"):
        page = await browser.get(path)
        assert page.text.count("secret-plans") == (3 if path != "/operations/jobs" else 1), path
        assert str(theirs["document_id"]) in page.text
    assert "secret-plans" not in (await browser.get(f"/operations/jobs/{theirs['id']}")).text


# Dead letters ------------------------------------------------------------------------------------------------------


async def test_chosen_dead_letters_go_on_from_their_stage_or_start_over(house: House, engine: Engine) -> None:
    browser = await administrator(house)
    owner = await owner_of(browser)
    one, other, rest = give_up(engine, owner), give_up(engine, owner), give_up(engine, owner)
    path = "/operations/dead-letters"
    went_to(await browser.post(path, data={"action": "resume", "ids": str(one)}), "/operations")
    went_to(await browser.post(path, data={"action": "restart", "ids": str(other)}), "/operations")
    assert [engine.status(job) for job in (one, other, rest)] == ["queued", "queued", "dead_letter"]
    assert (engine.stages(one), engine.stages(other)) == ([("stage-1", 1)], [])


async def test_discarding_asks_first_and_names_the_number(house: House, engine: Engine) -> None:
    browser = await administrator(house)
    owner = await owner_of(browser)
    jobs = [give_up(engine, owner) for _ in range(3)]
    chosen = {"action": "discard", "ids": [str(job) for job in jobs[:2]]}
    question = await browser.post("/operations/dead-letters", data=chosen)
    is_page(question)
    assert heading(question) == "Discard 2 failed jobs?"
    assert "Discard 2" in words(question)
    assert [engine.status(job) for job in jobs] == ["dead_letter"] * 3
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)">', question.text)
    sent: dict[str, list[str]] = {}
    for name, value in fields:
        sent.setdefault(name, []).append(value)
    went_to(await browser.post("/operations/dead-letters", data=sent), "/operations")
    assert [engine.status(job) for job in jobs] == ["cancelled", "cancelled", "dead_letter"]


@pytest.mark.parametrize("action", ["resume", "restart", "discard"])
async def test_all_that_were_chosen_or_none(house: House, engine: Engine, action: str) -> None:
    browser = await administrator(house)
    job = give_up(engine, await owner_of(browser))
    (waiting,) = engine.put(await owner_of(browser))
    path = "/operations/dead-letters"
    for other, status in ((waiting, 409), (uuid4(), 404)):
        sent = {"action": action, "ids": [str(job), str(other)], "confirmed": "true"}
        is_page(await browser.post(path, data=sent), status)
    nothing = await browser.post(path, data={"action": action})
    is_page(nothing, 422)
    assert "Select at least one job first." in words(nothing)
    is_page(await browser.post(path, data={"action": "burn", "ids": str(job)}), 422)
    assert engine.status(job) == "dead_letter"


# One job -----------------------------------------------------------------------------------------------------------


async def test_a_job_shows_its_stages_its_timeline_and_what_can_be_done(house: House, engine: Engine) -> None:
    browser = await administrator(house)
    job = give_up(engine, await owner_of(browser))
    here = f"/operations/jobs/{job}"
    page = words(await browser.get(here))
    for part in (
        "Failed for good",
        "It failed. TRANSIENT",
        "stage-1",
        "Resume from stage-1",
        "Start over",
    ):
        assert part in page, part
    assert page.count("Failed for good") == 2  # the state, and the last event
    went_to(await browser.post(f"{here}/resume"), here)
    waiting = words(await browser.get(here))
    assert "Waiting: no worker is running." in waiting
    assert "Start over" not in waiting
    went_to(await browser.post(f"{here}/cancel"), here)
    assert "Try again" in words(await browser.get(here))
    went_to(await browser.post(f"{here}/restart"), here)
    assert engine.status(job) == "queued"
    is_page(await browser.post(f"{here}/resume"), 409)
    is_page(await browser.get(f"/operations/jobs/{uuid4()}"), 404)


async def test_one_dead_letter_is_discarded_after_a_question(house: House, engine: Engine) -> None:
    browser = await administrator(house)
    job = give_up(engine, await owner_of(browser))
    question = await browser.post(f"/operations/jobs/{job}/discard")
    assert heading(question) == "Discard 1 failed job?"
    assert engine.status(job) == "dead_letter"
    went_to(
        await browser.post(f"/operations/jobs/{job}/discard", data={"confirmed": "true"}), f"/operations/jobs/{job}"
    )
    assert engine.status(job) == "cancelled"


# Schedules ---------------------------------------------------------------------------------------------------------


async def test_a_schedule_is_run_now(house: House, engine: Engine) -> None:
    browser = await administrator(house)
    async with house.app.state.services.database.transaction() as connection:
        await sync_schedules(connection, [Schedule("nightly", "demo", "0 3 * * *")])
    assert "nightly 0 3 * * *" in words(await browser.get("/operations"))
    answer = await browser.post("/operations/schedules/nightly/run")
    (job,) = engine.rows("SELECT id FROM jobs")
    went_to(answer, f"/operations/jobs/{job['id']}")
    is_page(await browser.post("/operations/schedules/yearly/run"), 404)


async def test_a_service_that_is_left_alone_is_shown_and_tried_now(open_house: OpenHouse) -> None:
    address = "https://convert.example.org"
    house = await open_house(conversion_gateway_url=address, conversion_gateway_policy="fail")
    browser = await administrator(house)
    assert "Conversion service 0 of 5 Jobs fail Available" in words(await browser.get("/operations"))
    await house.run("SELECT count_for_circuit(%s, false, 1, engine_now())", f"conversion:{address}")
    assert "Conversion service 1 of 5 Jobs fail Paused resumes" in words(await browser.get("/operations"))
    went_to(await browser.post("/operations/circuits/conversion/try"), "/operations#circuits-head")
    assert "Conversion service 1 of 5 Jobs fail Testing" in words(await browser.get("/operations"))
    assert (await browser.get("/api/v1/admin/circuits")).json()["items"][0]["half_open"] is True
