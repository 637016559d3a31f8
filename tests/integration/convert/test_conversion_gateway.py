"""A conversion service elsewhere: its answers are held to the mapping's schema, and its failures have their codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.convert.mappings.shipped_mappings import load_shipped
from octavo.convert.rules.engine import convert as find
from octavo.convert.rules.result_xml import render
from tests.support.conversions import convert, converted, invoice
from tests.support.library import Desk
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

    for _ in range(4):
        await desk.rows("SELECT gateway_answered('a', false)")
        assert await pause() == 0
    await desk.rows("SELECT gateway_answered('a', false)")
    assert 5 < await pause() <= 10
    await desk.rows("UPDATE engine_clock SET shift = interval '11 seconds' RETURNING 1")
    assert await pause() == 0  # one may try
    assert await pause() > 10  # the others wait for it
    await desk.rows("SELECT gateway_answered('a', true)")
    assert await pause() == 0
