"""A conversion service elsewhere: its answers are held to the mapping's schema, and its failures have their codes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.ai.calls import gate_of_service, list_circuits, try_now
from octavo.convert.mappings.shipped_mappings import load_shipped
from octavo.convert.rules.engine import convert as find
from octavo.convert.rules.result_xml import render
from octavo.core.errors import NotFound
from octavo.core.settings import Settings
from octavo.jobs.queue import NewJob, enqueue
from tests.support.conversions import convert, converted, invoice
from tests.support.library import Desk
from tests.support.processes import PATIENCE_SECONDS
from tests.support.processing import OpenSandbox
from tests.support.sheets import INVOICE, sheet
from tests.support.sites import Answer, Route, Site
from tests.support.working import working

MAPPING = load_shipped("invoice_v1")
XML = render(find([sheet(INVOICE)], MAPPING), MAPPING)
SECONDS = 3
TOLD = "SELECT detail FROM events WHERE kind = 'gateway' ORDER BY id"


@pytest.fixture
def service() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


async def sent(desk: Desk, owner: UUID, folder: Path, service: Site, answer: Route) -> dict[str, Any]:
    """What became of a conversion that was tried once."""
    service.routes["/convert"] = answer
    begun = await convert(desk, owner, invoice().write())
    await desk.rows("UPDATE jobs SET max_attempts = 1 RETURNING id")
    address = f"{service.url}/convert"
    async with working(desk, OpenSandbox(), folder, conversion_gateway_url=address, conversion_gateway_seconds=SECONDS):
        found = await converted(desk, owner, begun.id)
    return {"status": found.status, "code": found.error_code, "record": found.record}


async def test_its_xml_is_the_result(desk: Desk, owner: UUID, folder: Path, service: Site) -> None:
    ended = await sent(desk, owner, folder, service, Answer(body=XML, headers={"Content-Type": "application/xml"}))
    assert ended["status"] == "complete"
    assert "NW-2024-0815" in ended["record"]
    (asked,) = service.asked
    assert (asked.method, asked.headers["x-mapping"], asked.body[:5]) == ("POST", "invoice_v1", b"%PDF-")
    (told,) = await desk.rows(TOLD)
    assert told["detail"]["address"] == f"{service.url}/convert"
    assert told["detail"]["status"] == 200
    assert told["detail"]["duration_ms"] >= 0
    await desk.check_books()


FAILURES = [
    (Answer(400, b"bad mapping"), "failed", "GW_4XX"),
    (Answer(503, b"busy"), "dead_letter", "GW_5XX"),
    (Answer(200, b"<other/>"), "dead_letter", "GW_5XX"),
]


@pytest.mark.parametrize(("answer", "status", "code"), FAILURES, ids=["4xx", "5xx", "other XML"])
async def test_its_failures_have_their_codes(
    desk: Desk, owner: UUID, folder: Path, service: Site, answer: Answer, status: str, code: str
) -> None:
    ended = await sent(desk, owner, folder, service, answer)
    assert (ended["status"], ended["code"], ended["record"]) == (status, code, None)
    assert len(await desk.rows("SELECT id FROM jobs")) == 1
    await desk.check_books()


async def test_a_service_that_does_not_answer_in_time(desk: Desk, owner: UUID, folder: Path, service: Site) -> None:
    def silent(_asked: object) -> Answer:
        service.stopping.wait(3 * SECONDS)
        return Answer()

    ended = await sent(desk, owner, folder, service, silent)
    assert (ended["status"], ended["code"]) == ("dead_letter", "GW_TIMEOUT")


async def test_a_service_that_fails_again_and_again_is_left_alone_and_tried_by_one(desk: Desk) -> None:
    async def pause() -> float:
        return await desk.one("SELECT gateway_pause('a', interval '1 minute')")

    async def answer(*, well: bool) -> None:
        await desk.rows("SELECT count_for_circuit('a', %s, 5, engine_now())", well)

    for _ in range(4):
        await answer(well=False)
        assert await pause() == 0
    await answer(well=False)
    assert 20 < await pause() <= 30
    await desk.rows("UPDATE engine_clock SET shift = interval '31 seconds' RETURNING 1")
    assert await pause() == 0  # one may try
    assert await pause() > 30  # the others wait for it
    await answer(well=True)
    assert await pause() == 0


async def open_circuit(desk: Desk, address: str) -> None:
    await desk.rows("SELECT count_for_circuit(%s, false, 1, engine_now())", gate_of_service(address))


async def test_where_the_policy_is_to_fail_nothing_waits_for_a_service_that_is_away(
    desk: Desk, owner: UUID, folder: Path, service: Site
) -> None:
    address = f"{service.url}/convert"
    await open_circuit(desk, address)
    begun = await convert(desk, owner, invoice().write())
    settings: dict[str, Any] = {"conversion_gateway_url": address, "conversion_gateway_policy": "fail"}
    async with working(desk, OpenSandbox(), folder, **settings):
        found = await converted(desk, owner, begun.id)
    assert (found.status, found.error_code, service.asked) == ("failed", "GW_5XX", [])


async def test_the_limit_is_a_setting(desk: Desk, owner: UUID, folder: Path, service: Site) -> None:
    service.routes["/convert"] = Answer(503, b"busy")
    begun = await convert(desk, owner, invoice().write())
    await desk.rows("UPDATE jobs SET max_attempts = 1 RETURNING id")
    address = f"{service.url}/convert"
    async with working(desk, OpenSandbox(), folder, conversion_gateway_url=address, conversion_gateway_failures=1):
        await converted(desk, owner, begun.id)
    assert await desk.one("SELECT gateway_pause(%s, interval '1 minute')", gate_of_service(address)) > 0


async def test_try_now_sends_what_waits_for_a_service_that_is_back(
    desk: Desk, owner: UUID, folder: Path, service: Site
) -> None:
    address = f"{service.url}/convert"
    service.routes["/convert"] = Answer(body=XML, headers={"Content-Type": "application/xml"})
    await open_circuit(desk, address)
    begun = await convert(desk, owner, invoice().write())
    settings = Settings(data_dir=folder, conversion_gateway_url=address)
    async with working(desk, OpenSandbox(), folder, conversion_gateway_url=address):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await desk.one("SELECT count(*) FROM jobs WHERE status = 'queued' AND run_after > engine_now()"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        async with desk.database.transaction() as connection:
            (shown,) = await list_circuits(connection, settings)
            assert (shown.name, shown.limit, shown.policy, shown.half_open) == ("conversion", 5, "wait", False)
            assert shown.open_until
            delayed = NewJob("convert", owner, delay_seconds=3600)
            await enqueue(connection, [delayed])
            await try_now(connection, settings, "conversion")
            with pytest.raises(NotFound):
                await try_now(connection, settings, "gemini")
        found = await converted(desk, owner, begun.id)
    assert (found.status, len(service.asked)) == ("complete", 1)
    # A job that waits for another reason keeps its time.
    assert await desk.one("SELECT run_after > engine_now() FROM jobs WHERE id = %s", delayed.id)
    async with desk.database.connection() as connection:
        (shown,) = await list_circuits(connection, settings)
    assert (shown.failures, shown.open_until) == (0, None)
