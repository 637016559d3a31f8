"""A value is found, checked, confirmed or needs review, and a conversion is complete only if nothing needs review."""

from __future__ import annotations

from octavo.convert.conversion_json import conversion_from_json, conversion_from_record, conversion_to_json
from octavo.convert.mappings.shipped_mappings import load_shipped, mapping_from_text
from octavo.convert.results import Correction, correct
from octavo.convert.rules.engine import convert
from octavo.convert.values import Conversion, Status
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
    found = correct(read(WRONG), MAPPING, [Correction("total", "350.55"), Correction("net", "285.00")])
    total, net = found.single("total"), found.single("net")
    assert total
    assert net
    assert (total.status, total.place) == (Status.CONFIRMED, None)
    assert (net.status, net.place is not None) == (Status.CONFIRMED, True)


def test_a_person_is_right_even_if_a_check_fails() -> None:
    found = correct(read(INVOICE), MAPPING, [Correction("total", "999.00")])
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
