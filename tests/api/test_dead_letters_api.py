"""The ways to discard a dead letter: only that, or process it again without any result, or end what it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import httpx
import pytest

from octavo.core.errors import ErrorClass
from octavo.owners import make_sign_in_link
from tests.support.engine import Engine, engine_on
from tests.support.visitors import House, me, refused

HERE = "/api/v1/admin/dead-letters"


@pytest.fixture
def engine(database_info: str, house: House) -> Iterator[Engine]:
    with engine_on(database_info) as engine:
        yield engine


async def administrator(house: House) -> httpx.AsyncClient:
    browser = await house.browser()
    await browser.post("/sign-in", data={"token": await make_sign_in_link(house.database)})
    return browser


def give_up(engine: Engine, owner: UUID, kind: str = "frail", parent: UUID | None = None) -> UUID:
    """A job whose attempts are used up, behind its first stage."""
    engine.add_kind(kind, attempts=1)
    (job,) = engine.put(owner, kind)
    claimed = engine.claim_one(kinds=[kind])
    engine.finish_stage(claimed, "first")
    engine.fail(claimed, ErrorClass.TRANSIENT)
    engine.run("UPDATE jobs SET parent_id = %s WHERE id = %s", parent, job)
    return job


async def test_discarding_can_process_it_again_from_the_beginning(house: House, engine: Engine) -> None:
    admin = await administrator(house)
    owner = UUID((await me(admin))["owner_id"])
    one, many = give_up(engine, owner), [give_up(engine, owner), give_up(engine, owner)]
    shown = (await admin.post(f"{HERE}/{one}/discard", json={"then": "restart"})).json()
    assert (shown["status"], shown["stage"], shown["failures"]) == ("queued", None, 0)
    answer = await admin.post(f"{HERE}/discard", json={"ids": [str(job) for job in many], "then": "restart"})
    assert answer.json() == {"changed": 2}
    assert engine.one("SELECT count(*) FROM jobs WHERE status = 'queued'") == 3
    assert engine.one("SELECT count(*) FROM job_stages") == 0
    kinds = [event["kind"] for event in engine.events(one)]
    assert kinds[-2:] == ["discarded", "retry"]


async def test_discarding_alone_leaves_it_at_that(house: House, engine: Engine) -> None:
    admin = await administrator(house)
    job = give_up(engine, UUID((await me(admin))["owner_id"]))
    assert (await admin.post(f"{HERE}/{job}/discard")).json()["status"] == "cancelled"
    refused(await admin.post(f"{HERE}/{uuid4()}/discard"), 404, "NOT_FOUND")


async def test_discarding_can_end_the_analysis_as_an_error(house: House, engine: Engine) -> None:
    admin = await administrator(house)
    owner = UUID((await me(admin))["owner_id"])
    added = await admin.post("/api/v1/documents", content=b"A text.", headers={"x-upload-filename": "a.txt"})
    document = added.json()["document_id"]
    await house.run("UPDATE documents SET text_ready = true, revision = 1 WHERE id = %s", document)
    analysis = (await admin.post("/api/v1/analyses", json={"document_id": document})).json()["id"]
    part, loose = give_up(engine, owner, "answer_segment", UUID(analysis)), give_up(engine, owner)
    refused(
        await admin.post(f"{HERE}/discard", json={"ids": [str(part), str(loose)], "then": "fail_parent"}),
        409,
        "NO_PARENT",
    )
    assert engine.one("SELECT count(*) FROM jobs WHERE status = 'dead_letter'") == 2
    answer = await admin.post(f"{HERE}/{part}/discard", json={"then": "fail_parent"})
    assert answer.json()["status"] == "cancelled"
    shown = (await admin.get(f"/api/v1/analyses/{analysis}")).json()
    assert shown["status"] == "error"
