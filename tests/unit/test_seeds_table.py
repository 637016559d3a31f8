"""The table of the design documents' requirements is complete, in order, and names tests that exist."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (?P<document>\d{3})-(?P<number>\d+) \| (?P<what>[^|]+) \| (?P<state>.+) \|$", re.MULTILINE)
TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>\w+)`")
STATES = ("works: ", "decided otherwise: ", "open: ")
DOCUMENTS = ["000", "001", "002", "003", "004"]


def rows() -> list[re.Match[str]]:
    return list(ROW.finditer((ROOT / "docs" / "seeds.md").read_text()))


def test_every_document_has_its_rows_in_order() -> None:
    found = {document: list(group) for document, group in groupby(rows(), key=lambda row: row["document"])}
    assert list(found) == DOCUMENTS
    for group in found.values():
        assert [int(row["number"]) for row in group] == list(range(1, len(group) + 1))
        assert len(group) > 40


def test_every_row_has_a_state_and_its_proof_or_reason() -> None:
    for row in rows():
        assert row["state"].startswith(STATES), row[0]
        assert len(row["state"].split()) > 1, row[0]


def test_every_test_that_the_table_names_exists() -> None:
    named = [(test["path"], test["name"]) for row in rows() for test in TEST.finditer(row["state"])]
    assert len(named) > 300
    for path, name in named:
        assert re.search(rf"^(?:async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{path}::{name}"
