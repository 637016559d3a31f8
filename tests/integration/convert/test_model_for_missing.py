"""A model is asked for what rules miss of what is required; only what the document says too is verified."""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import UUID

from octavo.ai.gateway_setup import open_gateway
from octavo.convert.conversions import show_model_cost
from octavo.core.settings import Settings
from tests.support.conversions import convert, converted
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import SECRET, Trouble
from tests.support.library import Desk
from tests.support.pdf import Pdf, Words
from tests.support.processing import OpenSandbox
from tests.support.working import working

SUMS = ("Net: 10.00 EUR", "VAT 25%: 2.50 EUR", "Total: 12.50 EUR")
LINES = ("INVOICE", "This paper is our eighth, called X-8, and of the year", "Date: 2024-08-15", *SUMS)
PDF = Pdf([[Words(line, 72, 100 + 20 * row) for row, line in enumerate(LINES)]]).write()


async def record_of(desk: Desk, owner: UUID, folder: Path, gemini: FakeGemini) -> dict[str, Any]:
    settings = Settings.model_validate({"providers": "gemini", "gemini_key": SECRET, "gemini_url": gemini.url})
    begun = await convert(desk, owner, PDF)
    async with (
        aclosing(open_gateway(settings, desk.database)) as gateway,
        working(desk, OpenSandbox(), folder, gateway=gateway),
    ):
        found = await converted(desk, owner, begun.id)
    assert found.status == "complete", found.error_message
    record = json.loads(found.record or "")
    async with desk.database.connection() as connection:
        cost = await show_model_cost(connection, owner, begun.id)
    return record | {"values": {row[0]: row for row in record["values"]}, "cost": cost}


async def test_what_a_model_finds_has_its_place(desk: Desk, owner: UUID, folder: Path) -> None:
    said = {"fields": [{"name": "invoice_number", "value": "X-8", "quote": "called X-8"}]}
    with FakeGemini() as gemini:
        gemini.answer = lambda _asked: json.dumps(said)
        record = await record_of(desk, owner, folder, gemini)
        (asked,) = gemini.asked
    assert "invoice_number (identifier)" in asked.text
    assert "total (" not in asked.text
    _, value, _, place, *_, status, calibrated = record["values"]["invoice_number"]
    assert (value, place[-1], status, calibrated) == ("X-8", "called X-8", "needs_review", False)
    told = {"task": "extract_fields", "fields": ["invoice_number"], "made_by": "gemini:gemini-2.5-flash", "error": None}
    assert record["model"] == told | {"said": said["fields"]}
    assert record["cost"].calls == 1
    assert record["cost"].tokens > 0
    assert record["cost"].cost_usd > 0


async def test_a_model_that_cannot_answer_costs_no_conversion(desk: Desk, owner: UUID, folder: Path) -> None:
    with FakeGemini() as gemini:
        gemini.script.append(Trouble.BAD_KEY)
        record = await record_of(desk, owner, folder, gemini)
    assert "invoice_number" not in record["values"]
    assert record["values"]["total"][1] == "12.50"
    assert (record["model"]["made_by"], record["model"]["error"]) == (None, "AI_BAD_KEY")
