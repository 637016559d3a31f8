"""Conversion as others call it: the rules run in the sandbox, what comes out is checked and rendered here."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from octavo.convert.contract import Conversion
from octavo.convert.mapping_text import mapping_from_text
from octavo.convert.records import conversion_from_json, conversion_from_record
from octavo.convert.suggestions import Suggestion
from octavo.core.errors import Defect
from octavo.core.json import JSON
from octavo.extract.pdf.steps import PdfInSandbox
from octavo.extract.pdf.word_steps import recognise_words
from octavo.extract.pdf.words import MOST_PAGES
from octavo.sandbox import Sandbox


class Converted(NamedTuple):
    """`words` are there if something that is required is missing: who looks for it needs them."""

    conversion: Conversion
    words: bytes | None


async def convert_pdf_in_sandbox(pdf: PdfInSandbox, mapping_text: str, file: str) -> Converted:
    """In one child where all pages have words, otherwise in three: words, what is recognised, rules."""
    arguments: dict[str, JSON] = {"mapping": mapping_text, "file": file}
    made = await pdf.run("octavo.convert.run:run_pdf", arguments, MOST_PAGES)
    mapping = mapping_from_text(mapping_text, file)
    read = _parsed(made.output)
    if read.get("conversion") is not None:
        words = None if read.get("words") is None else json.dumps(read["words"], ensure_ascii=False).encode()
        return Converted(_unasked(conversion_from_record(read["conversion"], mapping)), words)
    words = (await recognise_words(pdf, read.get("words"))).document
    return Converted(await convert_in_sandbox(pdf.sandbox, words, mapping_text, file), words)


def _parsed(output: bytes) -> dict[str, Any]:
    try:
        read: Any = json.loads(output)
        if isinstance(read, dict):
            return cast("dict[str, Any]", read)
    except (ValueError, RecursionError):
        pass
    raise Defect("What was made of a document cannot be used.")


async def convert_in_sandbox(
    sandbox: Sandbox, words: bytes, mapping_text: str, file: str, suggestions: Sequence[Suggestion] | None = None
) -> Conversion:
    """`words` are the pages and attachments of a document as JSON, `mapping_text` is the mapping's file."""
    mapping = await asyncio.to_thread(mapping_from_text, mapping_text, file)
    rows: list[JSON] | None = None
    if suggestions is not None:
        rows = [[one.name, one.value, one.quote, one.page] for one in suggestions]
    arguments: dict[str, JSON] = {"mapping": mapping_text, "file": file, "suggestions": rows}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        given.write(words)
        given.flush()
        await sandbox.run("octavo.convert.run:run", arguments, input_file=given, output_file=made)
        return _unasked(await asyncio.to_thread(lambda: conversion_from_json(made.read(), mapping)))


def _unasked(conversion: Conversion) -> Conversion:
    """A child asks nobody, whatever it says."""
    return replace(conversion, asked=None)
