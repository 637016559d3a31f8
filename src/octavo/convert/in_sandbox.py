"""Runs the conversion rules in the sandbox and validates their output in the calling process."""

from __future__ import annotations

import asyncio
import json
import tempfile
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import ValidationError

from octavo.convert.errors import BadMapping, NotThisKind, SlowPattern
from octavo.convert.mappings.shipped_mappings import mapping_from_text, parse_mapping, summarise
from octavo.convert.values import (
    Conversion,
    Status,
    Suggestion,
    Value,
    conversion_from_json,
    conversion_from_record,
    conversion_to_json,
    conversion_to_record,
)
from octavo.core.errors import BadInput, Defect
from octavo.core.types import JSON
from octavo.extract.pdf.placed_words import (
    FEW_WORDS,
    MOST_PAGES,
    WordPage,
    read_words,
    recognise_words,
    words_as_json,
)
from octavo.facts.words import Box, Sheet, Word, sheets_from_json
from octavo.records.conversions import MappingSummary
from octavo.sandbox import ENDED, Limits, OutOfMemory, OutOfTime, StepOutOfTime, Task, sandboxed
from octavo.sandbox.channel import printable
from octavo.sandbox.protocol import MAX_TEXT

if TYPE_CHECKING:
    from octavo.extract.pdf.pdf_file import PdfInSandbox
    from octavo.sandbox import Sandbox

# Reading the largest allowed mapping takes a tenth of this time.
CHECK_LIMITS = Limits(memory_bytes=1 << 30, cpu_seconds=2, wall_seconds=10, output_bytes=0)
STUCK = "A pattern in the mapping took too long on this document and was stopped."


async def check_mapping_in_sandbox(sandbox: Sandbox, text: str, file: str) -> MappingSummary:
    """Check the text of a mapping in the sandbox, because it is untrusted input. Raises `BadMapping`."""
    try:
        outcome = await sandbox.run(check_mapping.call(text=text, file=file), limits=CHECK_LIMITS)
    except BadInput as error:
        raise BadMapping(error.detail) from None
    except (OutOfTime, OutOfMemory):
        raise BadMapping(f"{file}: too complex to be checked within the limits") from None
    except ENDED:
        raise BadMapping(f"{file}: it could not be checked") from None
    try:
        return MappingSummary.model_validate(outcome.value)
    except ValidationError:
        raise Defect("The sandbox returned an invalid mapping summary.") from None


@sandboxed
def check_mapping(task: Task, *, text: str, file: str) -> JSON:
    """Parse a mapping, compile its patterns, and return its summary."""
    del task
    return summarise(mapping_from_text(text, file)).model_dump(mode="json")


class PdfConversion(NamedTuple):
    """A converted PDF.

    `words` contains the words of the PDF as JSON, so that a model can search them for missing required fields. It can
    be None if no required field is missing.
    """

    conversion: Conversion
    words: bytes | None


async def convert_pdf_in_sandbox(pdf: PdfInSandbox, mapping_text: str, file: str) -> PdfConversion:
    """Convert a PDF. If all pages contain text, this takes a single call to the sandbox.

    Otherwise, further calls run OCR and apply the rules to the recognised words.
    """
    call = convert_pdf.call(mapping_text=mapping_text, file=file, password=pdf.password)
    try:
        made = await pdf.run(call, MOST_PAGES)
    except StepOutOfTime:
        raise SlowPattern(STUCK) from None
    _refuse_slow(made.value)
    mapping = await asyncio.to_thread(parse_mapping, mapping_text, file)
    read = _parsed(made.output)
    if read.get("conversion") is not None:
        words = None if read.get("words") is None else json.dumps(read["words"], ensure_ascii=False).encode()
        return PdfConversion(_checked(conversion_from_record(read["conversion"], mapping)), words)
    words = (await recognise_words(pdf, read.get("words"))).document
    return PdfConversion(await convert_in_sandbox(pdf.sandbox, words, mapping_text, file), words)


def _parsed(output: bytes) -> dict[str, Any]:
    try:
        read: Any = json.loads(output)
        if isinstance(read, dict):
            return cast("dict[str, Any]", read)
    except (ValueError, RecursionError):
        pass
    raise Defect("The output of the conversion is invalid.")


async def convert_in_sandbox(
    sandbox: Sandbox, words: bytes, mapping_text: str, file: str, suggestions: Sequence[Suggestion] | None = None
) -> Conversion:
    """Apply the conversion rules in the sandbox.

    `words` contains the document's pages and attachments as JSON, and `mapping_text` is the content of the mapping
    file.
    """
    mapping = await asyncio.to_thread(parse_mapping, mapping_text, file)
    rows = None
    if suggestions is not None:
        rows = [(one.name, one.value, one.quote, one.page) for one in suggestions]
    call = convert_words.call(mapping_text=mapping_text, file=file, suggestions=rows)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        given.write(words)
        given.flush()
        try:
            _refuse_slow((await sandbox.run(call, input_file=given, output_file=made)).value)
        except StepOutOfTime:
            raise SlowPattern(STUCK) from None
        return _checked(await asyncio.to_thread(lambda: conversion_from_json(made.read(), mapping)))


def _refuse_slow(value: JSON) -> None:
    """Raise `SlowPattern` if the sandboxed process returned an error message instead of a result.

    The process returns such a message if a pattern is too slow. It cannot raise an error in the calling process.
    """
    if isinstance(value, str):
        raise SlowPattern(printable(value[:MAX_TEXT]))


def _checked(conversion: Conversion) -> Conversion:
    """Reject a document that does not fit the mapping, and remove forged results.

    The sandboxed process can neither call a model nor ask a person. Any model calls, confirmations or accepted checks
    in its output must therefore be forged.
    """
    if not conversion.fits:
        raise NotThisKind
    checks = tuple(replace(one, accepted=False) for one in conversion.checks)
    return replace(conversion, model_lookup=None, checks=checks, values=tuple(map(_unconfirmed, conversion.values)))


def _unconfirmed(value: Value) -> Value:
    status = Status.NEEDS_REVIEW if value.is_confirmed else value.status
    return replace(value, status=status, page=None, by=None, at=None)


@sandboxed
def convert_words(
    task: Task,
    *,
    mapping_text: str,
    file: str,
    suggestions: Sequence[tuple[str, str, str, int | None]] | None,
) -> str | None:
    """Apply the rules to a document's words, and add a model's suggestions if there are any.

    Returns an error message if a pattern is too slow. The rules run again when suggestions are added, because that is
    cheaper than storing the result of the first run.
    """
    from octavo.convert.rules.engine import convert, with_suggestions
    from octavo.convert.rules.patterns import kill_stuck_patterns

    mapping = mapping_from_text(mapping_text, file)
    document: dict[str, Any] = json.load(task.input)
    sheets = sheets_from_json(document["pages"])
    attachments = [(str(name), b64decode(body)) for name, body in document["attachments"]]
    try:
        with kill_stuck_patterns():
            conversion = convert(sheets, mapping, attachments)
    except SlowPattern as error:
        return error.detail or STUCK
    if suggestions is not None:
        conversion = with_suggestions(conversion, mapping, sheets, [Suggestion(*row) for row in suggestions])
    task.output.write(conversion_to_json(conversion))
    return None


@sandboxed
def convert_pdf(task: Task, *, mapping_text: str, file: str, password: str | None) -> str | None:
    """Read the words of a PDF and apply the rules. Returns an error message if a pattern is too slow.

    If a page may be a scan, the rules run twice: here, to find slow patterns early, and in a separate call after OCR.
    The output contains the words in two cases: for that second call, and for a model to search if a required value is
    missing.
    """
    from octavo.convert.rules.engine import convert
    from octavo.convert.rules.patterns import kill_stuck_patterns

    mapping = mapping_from_text(mapping_text, file)
    read = read_words(Path(task.input_path), password)
    made: dict[str, JSON] = {"conversion": None, "words": None}
    missing = True
    try:
        with kill_stuck_patterns():
            conversion = convert([_sheet(page) for page in read.pages], mapping, read.attachments)
    except SlowPattern as error:
        return error.detail or STUCK
    if all(len(page.words) >= FEW_WORDS for page in read.pages):
        made["conversion"], missing = conversion_to_record(conversion), bool(conversion.missing)
    if missing:
        made["words"] = words_as_json(read)
    task.output.write(json.dumps(made, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
    return None


def _sheet(page: WordPage) -> Sheet:
    """Convert a PDF page to a `Sheet` (a page with its words). Positions are rounded as in `sheets_from_json`."""
    words = tuple(Word(text, Box(*(round(side, 2) for side in box))) for text, box in page.words)
    return Sheet(page.number, page.width, page.height, words)
