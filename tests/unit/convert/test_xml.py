"""XML fits the mapping's own schema, says where values stand, and is the same for the same values."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from octavo.convert.mappings.shipped_mappings import load_shipped, shipped_names
from octavo.convert.rules.engine import convert
from octavo.convert.rules.result_xml import PROVENANCE, SchemaMismatch, read_xml, render, schema_of, validate
from octavo.convert.values import conversion_from_json, conversion_to_json
from octavo.core.errors import Defect
from tests.support.sheets import INVOICE, sheet
from tests.support.tree import ROOT

MAPPING = load_shipped("invoice_v1")
FOUND = convert([sheet(INVOICE)], MAPPING)
NAMES = {"i": MAPPING.namespace}


def test_both_forms_fit_the_schema() -> None:
    for plain in (False, True):
        validate(render(FOUND, MAPPING, plain=plain), MAPPING)


# Each fork is a process that has validated nothing yet. Without the lock, about one in six fails, crashes or hangs.
FIRST_VALIDATIONS = """
import os, signal, threading
from octavo.convert.mappings.shipped_mappings import load_shipped
from octavo.convert.rules.engine import convert
from octavo.convert.rules.result_xml import render, validate
from tests.support.sheets import INVOICE, sheet

mapping = load_shipped("invoice_v1")
document, barrier, failed = render(convert([sheet(INVOICE)], mapping), mapping), threading.Barrier(8), []

def validate_with_others():
    barrier.wait()
    try:
        validate(document, mapping)
    except BaseException as error:
        failed.append(error)

for _ in range(40):
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == 0
    else:
        signal.alarm(30)
        threads = [threading.Thread(target=validate_with_others) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        os._exit(len(failed))
"""


def test_threads_of_a_new_process_validate_their_first_documents_at_the_same_moment() -> None:
    assert subprocess.run([sys.executable, "-c", FIRST_VALIDATIONS], check=False, cwd=ROOT).returncode == 0


def test_every_element_says_where_its_value_stands() -> None:
    total = ET.fromstring(render(FOUND, MAPPING)).find("i:TotalAmount", NAMES)
    assert total is not None
    said = {name.removeprefix(f"{{{PROVENANCE}}}"): text for name, text in total.attrib.items()}
    assert said == {
        "page": "1",
        "box": "294.0 252.0 330.0 262.0",
        "quote": "350.55",
        "confidence": said["confidence"],
        "status": "checked",
        "verified": "true",
    }


def test_the_plain_form_has_nothing_of_it() -> None:
    plain = render(FOUND, MAPPING, plain=True)
    assert PROVENANCE.encode() not in plain
    root = ET.fromstring(plain)
    assert [line.text for line in root.findall("i:Lines/i:Line/i:Amount", NAMES)] == ["240.00", "45.00"]


def test_the_same_values_make_the_same_bytes() -> None:
    again = conversion_from_json(conversion_to_json(FOUND), MAPPING)
    assert render(again, MAPPING) == render(FOUND, MAPPING)
    assert schema_of(MAPPING) == schema_of(MAPPING)


def test_what_is_required_and_missing_is_nil_and_the_xml_stays_valid() -> None:
    document = render(convert([sheet("Total: 5.00 EUR")], MAPPING), MAPPING)
    validate(document, MAPPING)
    assert b'<InvoiceNumber xsi:nil="true"/>' in document


def test_letters_that_no_xml_may_hold_are_left_out() -> None:
    document = render(convert([sheet("Seller: Abcde\x01f\ufffe <&> Ltd\nTotal: 5.00")], MAPPING), MAPPING)
    seller = ET.fromstring(document).find("i:Seller", NAMES)
    assert seller is not None
    assert seller.text == "Abcdef <&> Ltd"


@pytest.mark.parametrize("name", shipped_names())
def test_every_mapping_has_a_schema(name: str) -> None:
    mapping = load_shipped(name)
    validate(render(convert([sheet("nothing")], mapping), mapping), mapping)


def test_xml_that_does_not_fit_is_our_mistake() -> None:
    with pytest.raises(Defect, match="does not match its schema"):
        validate(render(FOUND, MAPPING).replace(b">350.55<", b">much<"), MAPPING)


BAD = [b"", b"[]", b'{"values":[["total","x",1,null,true,null,null]],"checks":[],"missing":[],"source":"rules"}']


@pytest.mark.parametrize("written", BAD)
def test_what_comes_out_of_the_sandbox_is_checked(written: bytes) -> None:
    with pytest.raises(Defect):
        conversion_from_json(written, MAPPING)


def test_xml_is_read_back_as_it_was_written() -> None:
    back = read_xml(render(FOUND, MAPPING), MAPPING, "gateway")
    assert [(one.path, one.value, one.verified) for one in back.values] == [
        (one.path, one.value, one.verified) for one in FOUND.values
    ]
    assert back.missing == FOUND.missing
    plain = read_xml(render(FOUND, MAPPING, plain=True), MAPPING, "gateway")
    assert {(one.place, one.verified) for one in plain.values} == {(None, False)}


@pytest.mark.parametrize("document", [b"", b"<Invoice/>", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b"{}"])
def test_xml_of_something_else_is_refused(document: bytes) -> None:
    with pytest.raises(SchemaMismatch):
        read_xml(document, MAPPING, "gateway")
