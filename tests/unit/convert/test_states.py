"""A value is found, checked, confirmed or needs review, and a conversion is complete only if nothing needs review."""

from __future__ import annotations

import pytest

from octavo.convert.corrections import Correction, Editor, RowChange, correct
from octavo.convert.mappings.shipped_mappings import load_shipped, mapping_from_text
from octavo.convert.rules.engine import convert
from octavo.convert.rules.result_xml import render
from octavo.convert.values import Conversion, Status, conversion_from_json, conversion_from_record, conversion_to_json
from octavo.core.errors import BadInput
from octavo.facts.words import Box, Place
from tests.support.sheets import INVOICE, sheet

MAPPING = load_shipped("invoice_v1")
WRONG = INVOICE.replace("350.55", "359.55")
CLUB = """
name: club_v1
xml: Member
fields:
  member: {type: identifier, xml: Number, required: true, labels: {en: [member no]}}
  joined: {type: date, xml: Joined, required: true, labels: {en: [joined]}, otherwise: first}
"""


def read(text: str) -> Conversion:
    return convert([sheet(text)], MAPPING)


def status(conversion: Conversion, name: str) -> str:
    found = conversion.single(name)
    assert found
    return found.status


def test_amounts_that_add_up_are_checked() -> None:
    found = read(INVOICE)
    assert {status(found, name) for name in ("net", "tax", "total")} == {Status.CHECKED}
    assert status(found, "invoice_number") == Status.FOUND


def test_amounts_that_do_not_add_up_need_review_and_so_does_the_conversion() -> None:
    found = read(WRONG)
    assert {status(found, name) for name in ("net", "tax", "total")} == {Status.NEEDS_REVIEW}
    assert found.needs_review


def test_what_a_person_says_is_confirmed_and_has_no_place_of_the_wrong_value() -> None:
    found = correct(read(WRONG), MAPPING, [Correction("total", "350.55"), Correction("net", "285.00")]).conversion
    total, net = found.single("total"), found.single("net")
    assert total
    assert net
    assert (total.status, total.place) == (Status.CONFIRMED, None)
    assert (net.status, net.place is not None) == (Status.CONFIRMED, True)


def test_a_person_is_right_even_if_a_check_fails() -> None:
    found = correct(read(INVOICE), MAPPING, [Correction("total", "999.00")]).conversion
    assert status(found, "total") == Status.CONFIRMED
    assert found.checks[0].holds is False
    assert found.needs_review


def test_states_survive_storage_and_older_records_have_them_too() -> None:
    found = read(WRONG)
    assert conversion_from_json(conversion_to_json(found), MAPPING) == found
    older = {
        "values": [["total", "5.00", 0.9, None, False, None, None]],
        "checks": [],
        "missing": [],
        "source": "rules",
    }
    assert conversion_from_record(older, MAPPING).values[0].status == Status.NEEDS_REVIEW


def test_a_paper_does_not_fit_the_mapping_for_invoices() -> None:
    assert not read("On clay\nAbstract\nA 64-bit logger recorded 25.47 million samples.\nTotal 25.47").fits
    assert read(INVOICE).fits


def test_one_value_and_a_guess_are_not_evidence() -> None:
    mapping = mapping_from_text(CLUB, "club_v1.yaml")
    assert convert([sheet("Member no: A-17\nJoined: 2024-05-01")], mapping).fits
    assert not convert([sheet("Member no: A-17\nsome day, 2024-05-01")], mapping).fits


def test_labels_of_a_mapping_count_beside_those_of_the_engine() -> None:
    simon = load_shipped("pt_simon_invoice_v1")
    found = convert([sheet("Nomor faktur: F-77\nTanggal faktur: 2024-05-01\nJumlah tagihan: 12.50 EUR")], simon)
    assert {one.name: one.value for one in found.values} == {
        "invoice_number": "F-77",
        "invoice_date": "2024-05-01",
        "total": "12.50",
        "currency": "EUR",
    }


ADA = Editor("ada@example.org", "2026-11-17T10:00:00+00:00")


def test_a_correction_says_who_when_and_where() -> None:
    place = Place(1, Box(10, 20, 60, 30), "350,55")
    wanted = [Correction("total", "350.55", 1, place.box), Correction("net", "285.00", 2)]
    made = correct(read(WRONG), MAPPING, wanted, places={"total": place}, editor=ADA)
    total, net = (made.conversion.single(name) for name in ("total", "net"))
    assert total
    assert net
    assert (total.by, total.at, total.place) == (*ADA, place)
    assert (net.place, net.on_page) == (None, 2)
    again = conversion_from_json(conversion_to_json(made.conversion), MAPPING)
    assert again.values == made.conversion.values
    xml = render(made.conversion, MAPPING).decode()
    assert 'p:by="ada@example.org"' in xml
    assert 'p:status="confirmed"' in xml


def test_a_failed_check_is_accepted_when_a_person_confirms_all_of_its_values() -> None:
    check = MAPPING.checks[0].text
    accepted = correct(read(WRONG), MAPPING, [], accept=[check], editor=ADA).conversion
    assert (accepted.checks[0].holds, accepted.checks[0].accepted) == (False, True)
    assert Status.NEEDS_REVIEW not in {status(accepted, name) for name in ("net", "tax", "total")}
    every = [Correction(name, value.value) for name in ("net", "tax", "total") if (value := accepted.single(name))]
    assert correct(read(WRONG), MAPPING, every).conversion.checks[0].accepted
    assert correct(read(WRONG), MAPPING, every[:2]).conversion.checks[0].needs_review
    with pytest.raises(BadInput, match="has no check"):
        correct(accepted, MAPPING, [], accept=["1 = 2"])


def test_rows_are_added_moved_and_removed() -> None:
    def table(found: Conversion) -> list[list[str]]:
        return [[cell.value for cell in row.values()] for row in found.table("lines")]

    tea, pen = {"description": "Tea", "amount": "2.00"}, {"description": "Pen", "amount": "1.00"}
    rows = [RowChange("lines", "add", values=tea), RowChange("lines", "add", 1, values=pen)]
    added = correct(read(WRONG), MAPPING, [], rows=rows, editor=ADA).conversion
    assert table(added)[0] == ["Pen", "1.00"]
    assert table(added)[-1] == ["Tea", "2.00"]
    moved = correct(added, MAPPING, [], rows=[RowChange("lines", "move", 1, 2)])
    assert table(moved.conversion)[1] == ["Pen", "1.00"]
    assert moved.changes == [{"table": "lines", "action": "move", "row": 1, "to": 2}]
    removed = correct(moved.conversion, MAPPING, [], rows=[RowChange("lines", "remove", 2)])
    assert ["Pen", "1.00"] not in table(removed.conversion)
    assert removed.changes[0]["before"] == pen
    for wrong in (RowChange("lines", "remove", 99), RowChange("nothing", "add"), RowChange("lines", "add", values={})):
        with pytest.raises(BadInput):
            correct(added, MAPPING, [], rows=[wrong])


def test_a_table_that_cannot_be_read_makes_the_conversion_need_review() -> None:
    rows = [line for line in INVOICE.split("\n") if "120.00" not in line and "4.50" not in line]
    found = read("\n".join(rows))
    assert (found.table("lines"), found.missing, found.needs_review) == ([], ("lines",), True)
    assert "lines" not in read("\n".join(line for line in rows if "Quantity" not in line)).missing
