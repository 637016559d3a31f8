"""A PDF is converted in the sandbox, and what a mapping's pattern does there ends there."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from octavo.convert.in_sandbox import convert_in_sandbox
from octavo.convert.mappings.shipped_mappings import shipped_text
from octavo.core.errors import Encrypted
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.extract.pdf.placed_words import read_words_in_sandbox
from octavo.sandbox import ENDED, Limits, Sandbox
from tests.support.pdf import Pdf, Words

PAGE = [Words("Invoice no: A-17", 72, 100), Words("Date: 2024-08-15", 72, 120), Words("Total: 12.50 EUR", 72, 140)]


async def test_a_pdf_becomes_values_with_places(tmp_path: Path) -> None:
    path = tmp_path / "invoice.pdf"
    path.write_bytes(Pdf([PAGE]).write())
    async with aclosing(Sandbox()) as sandbox:
        words = await read_words_in_sandbox(PdfInSandbox(sandbox, path))
        found = await convert_in_sandbox(sandbox, words.document, shipped_text("invoice_v1"), "invoice_v1.yaml")
    number = found.single("invoice_number")
    assert words.page_count == 1
    assert number
    assert number.place
    assert number.value == "A-17"
    assert number.place.box.top == pytest.approx(90, abs=4)
    assert not found.missing


async def test_a_locked_pdf_says_so(tmp_path: Path) -> None:
    path = tmp_path / "invoice.pdf"
    path.write_bytes(Pdf([PAGE]).write("secret"))
    async with aclosing(Sandbox()) as sandbox:
        with pytest.raises(Encrypted):
            await read_words_in_sandbox(PdfInSandbox(sandbox, path))
        words = await read_words_in_sandbox(PdfInSandbox(sandbox, path, "secret"))
    assert b"A-17" in words.document


async def test_a_pattern_that_never_ends_is_ended() -> None:
    mapping = "name: slow_v1\nxml: Slow\nfields: {a: {type: text, xml: A, patterns: ['(a+)+b$']}}"
    page = {"number": 1, "width": 600, "height": 800, "words": [["a" * 60, 10, 10, 500, 20]]}
    words = json.dumps({"pages": [page], "attachments": []}).encode()
    limits = replace(Limits(), cpu_seconds=1, wall_seconds=20)
    async with aclosing(Sandbox(limits=limits)) as sandbox:
        with pytest.raises(ENDED):
            await convert_in_sandbox(sandbox, words, mapping, "slow_v1.yaml")
