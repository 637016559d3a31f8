"""A PDF is converted in the sandbox, and what a mapping's pattern does there ends there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from octavo.convert.errors import BadMapping, SlowPattern
from octavo.convert.in_sandbox import check_mapping_in_sandbox, convert_in_sandbox
from octavo.convert.mappings.shipped_mappings import shipped_text
from octavo.core.errors import Encrypted
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.extract.pdf.placed_words import read_words_in_sandbox
from octavo.sandbox import Sandbox
from tests.support.pdf import Pdf, Words

PAGE = [Words("Invoice no: A-17", 72, 100), Words("Date: 2024-08-15", 72, 120), Words("Total: 12.50 EUR", 72, 140)]


async def test_a_pdf_becomes_values_with_places(sandbox: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "invoice.pdf"
    path.write_bytes(Pdf([PAGE]).write())
    words = await read_words_in_sandbox(PdfInSandbox(sandbox, path))
    found = await convert_in_sandbox(sandbox, words.document, shipped_text("invoice_v1"), "invoice_v1.yaml")
    number = found.single("invoice_number")
    assert words.page_count == 1
    assert number
    assert number.place
    assert number.value == "A-17"
    assert number.place.box.top == pytest.approx(90, abs=4)
    assert not found.missing


async def test_a_locked_pdf_says_so(sandbox: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "invoice.pdf"
    path.write_bytes(Pdf([PAGE]).write("secret"))
    with pytest.raises(Encrypted):
        await read_words_in_sandbox(PdfInSandbox(sandbox, path))
    words = await read_words_in_sandbox(PdfInSandbox(sandbox, path, "secret"))
    assert b"A-17" in words.document


SLOW = "name: slow_v1\nxml: Slow\nfields: {{a: {{type: text, xml: A, patterns: ['{}']}}}}"
REPLACING = "name: slow_v1\nxml: Slow\nfields: {{a: {{type: text, xml: A, patterns: [x]}}}}\noptions: {{replace: [{}]}}"


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        (SLOW.format("(a+)+b$"), "a: '(a+)+b$': more than 1 second"),
        (REPLACING.format("['(a+)+b$', x]"), "options.replace: more than 1 second"),
        (REPLACING.format(", ".join(["[a, aa]"] * 60)), "options.replace: the text of this document becomes too long"),
    ],
    ids=["backtracking", "replacement", "growth"],
)
async def test_a_pattern_that_does_not_end_is_ended_and_named(sandbox: Sandbox, mapping: str, reason: str) -> None:
    page = {"number": 1, "width": 600, "height": 800, "words": [["a" * 60, 10, 10, 500, 20]]}
    document = json.dumps({"pages": [page], "attachments": []}).encode()
    with pytest.raises(SlowPattern, match=re.escape(reason)):
        await convert_in_sandbox(sandbox, document, mapping, "slow_v1.yaml")


async def test_a_mapping_that_takes_long_to_check_is_refused(sandbox: Sandbox) -> None:
    ranges = "".join(f"\\u{number:04x}-\\uffff" for number in range(150))
    mapping = SLOW.format("', '".join(f"(?i){number}[{ranges}]" for number in range(30)))
    with pytest.raises(BadMapping, match=r"b\.yaml: too complex"):
        await check_mapping_in_sandbox(sandbox, mapping, "b.yaml")
    with pytest.raises(BadMapping, match=r"b\.yaml: line 1: anchors"):
        await check_mapping_in_sandbox(sandbox, "a: &a b", "b.yaml")
    assert (await check_mapping_in_sandbox(sandbox, SLOW.format("a"), "b.yaml")).fields == ["a"]
