"""An invoice of which there is only a picture: recognised, converted, and its values have places on the page."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from octavo.convert import PRELOAD
from octavo.convert.mappings.shipped_mappings import mapping_from_text, shipped_text
from octavo.convert.values import conversion_from_json
from octavo.extract.ocr.recognition import PRELOAD as OCR_PRELOAD
from octavo.sandbox import Sandbox
from tests.support.conversions import convert, converted
from tests.support.library import Desk
from tests.support.scans import lines, scanned_pdf, sheet
from tests.support.working import working

TOP, LEFT = 60, 72
SAID = ["Invoice number: 48117", "Invoice date: 2024-08-15", "Total amount due: 350.55 EUR"]
HEIGHT = 140


async def test_a_scanned_invoice_is_converted_and_its_total_is_marked_where_it_is_printed(
    desk: Desk, owner: UUID, folder: Path
) -> None:
    paper = sheet(lines(SAID, top=TOP, left=LEFT, size=14), folder, height=HEIGHT)
    body = scanned_pdf([paper])
    assert b"48117" not in body
    begun = await convert(desk, owner, body)
    async with Sandbox(preload=(*OCR_PRELOAD, *PRELOAD)) as sandbox, working(desk, sandbox, folder):
        found = await converted(desk, owner, begun.id)
    assert (found.status, found.error_code) == ("complete", None)
    mapping = mapping_from_text(shipped_text("invoice_v1"), "invoice_v1.yaml")
    made = conversion_from_json(found.complete_record, mapping)
    assert {one.name: one.value for one in made.values} | {
        "invoice_number": "48117",
        "invoice_date": "2024-08-15",
        "total": "350.55",
        "currency": "EUR",
    } == {one.name: one.value for one in made.values}
    total = made.single("total")
    assert total
    assert total.place
    line = TOP + 2 * 14 * 1.3
    assert abs(total.place.box.bottom - line) < 8
    assert LEFT < total.place.box.left < total.place.box.right < 612
