"""A mapping is checked as a whole, and what is wrong is said with file, field and reason."""

from __future__ import annotations

import re

import pytest

from octavo.convert.errors import BadMapping, UnknownMapping
from octavo.convert.mappings.mapping_files import read_mapping
from octavo.convert.mappings.shipped_mappings import load_shipped, mapping_from_text, parse_mapping, shipped_names

GOOD = """
name: bill_v2
xml: Bill
fields:
  total: {type: amount, xml: Total, labels: {en: [total]}, required: true}
  lines:
    type: table
    xml: Lines
    row: Line
    columns:
      name: {type: text, xml: Name, labels: {en: [item]}}
      amount: {type: amount, xml: Amount, labels: {en: [amount]}}
checks: [sum(lines.amount) = total]
"""
BROKEN = [
    ("type: amount, xml: Total", "type: money, xml: Total", "total: unknown type 'money'; use one of amount, number"),
    ("xml: Total", "xml: 1st", "total: '1st' is not a valid name for an XML element"),
    ("labels: {en: [total]}", "patterns: ['(']", "total: invalid pattern '('"),
    ("labels: {en: [total]}", "lables: {en: [total]}", "total: unknown key 'lables'"),
    ("labels: {en: [total]}, ", "", "total: needs at least one of"),
    ("required: true", "required: maybe", "total: required must be true or false"),
    ("= total", "= totals", "checks: sum(lines.amount) = totals: unknown field totals"),
    ("= total", "total", "checks: a check must have two sides"),
    ("row: Line", "row: Line\n    rows: 2", "lines: unknown key 'rows'"),
    ("name: bill_v2", "name: bill", "name: can contain only lower-case letters"),
    ("xml: Lines", "xml: Total", "fields: two elements are named Total"),
    ("fields:", "fields: [", "invalid YAML"),
    ("xml: Bill", "xml: Bill\nxml: Bill", "'xml' is a duplicate key"),
]


def test_the_mappings_that_come_with_us_are_right() -> None:
    assert shipped_names() == ["invoice_v1", "pt_simon_invoice_v1", "receipt_v1"]
    assert [load_shipped(name).name for name in shipped_names()] == shipped_names()


def test_an_unknown_mapping_is_told_which_there_are() -> None:
    with pytest.raises(UnknownMapping, match="invoice_v1, pt_simon_invoice_v1, receipt_v1"):
        load_shipped("no_such_v9")


def test_a_mapping_of_ones_own_is_read() -> None:
    mapping = read_mapping(GOOD, "bill_v2.yaml")
    assert [field.name for field in mapping.fields] == ["total", "lines"]
    assert mapping.namespace == "urn:octavo:mapping:bill_v2"


@pytest.mark.parametrize(("old", "new", "reason"), BROKEN, ids=[reason[:30] for *_, reason in BROKEN])
def test_a_broken_mapping_is_refused_with_file_field_and_reason(old: str, new: str, reason: str) -> None:
    with pytest.raises(BadMapping) as refused:
        mapping_from_text(GOOD.replace(old, new, 1), "bill_v2.yaml")
    assert "bill_v2.yaml: " in str(refused.value)
    assert reason in str(refused.value)


def listed(count: int, form: str) -> str:
    return ", ".join(form.format(number) for number in range(count))


SINGLE = "name: b_v1\nxml: B\nfields: {{a: {{type: text, xml: A, {}}}}}"
BOMBS = {
    "line 3: anchors": SINGLE.format("labels: {en: &l [a], de: *l}"),
    "line 1: anchors": "&all {name: b_v1}",
    "nested more than": "name: " + "[" * 50_000,
    "has more than 20,000 values": f"name: [{'a,' * 100_000}]",
    "at most 2,000 characters": f"name: {'1:' * 100_000}1",
    "at most 300 are": "name: b_v1\nxml: B\nfields: {" + listed(301, "f{0}: {{type: text, xml: F{0}, value: v}}") + "}",
    "at most 5,000 are": SINGLE.format(f"labels: {{en: [{listed(5001, 'l{}')}]}}"),
    "at most 500 are": SINGLE.format(f"patterns: [{listed(501, 'p{}')}]"),
    "longer than 200": SINGLE.format(f"labels: {{en: [{'a' * 201}]}}"),
    "at most 100 are": SINGLE.format("value: v") + f"\nchecks: [{listed(101, 'a = a')}]",
    "invalid replacement": SINGLE.format("value: v") + "\noptions: {replace: [[a, '\\9']]}",
    "a key must be text": "? [a]\n: b",
}


@pytest.mark.parametrize("reason", BOMBS)
def test_a_mapping_that_means_more_than_it_says_is_refused(reason: str) -> None:
    with pytest.raises(BadMapping, match=re.escape(reason)):
        mapping_from_text(BOMBS[reason], "b.yaml")


def test_a_template_has_the_same_bounds() -> None:
    with pytest.raises(BadMapping, match="at most 500 are"):
        mapping_from_text(f"keywords: [{listed(501, 'p{}')}]", "b.yml")


def test_only_the_sandbox_compiles_patterns() -> None:
    assert parse_mapping(SINGLE.format("patterns: ['(']"), "b.yaml").name == "b_v1"
    with pytest.raises(BadMapping, match="a: invalid pattern"):
        mapping_from_text(SINGLE.format("patterns: ['(']"), "b.yaml")


def test_a_mapping_can_extend_one_that_comes_with_us() -> None:
    text = "name: mine_v1\nextends: invoice_v1\nfields: {total: {labels: {tlh: [naDev]}}}"
    mapping = mapping_from_text(text, "mine_v1.yaml")
    total, theirs = mapping.field("total"), load_shipped("invoice_v1").field("total")
    assert total
    assert theirs
    assert total.labels == (*theirs.labels, "naDev")
    assert mapping.checks == load_shipped("invoice_v1").checks
