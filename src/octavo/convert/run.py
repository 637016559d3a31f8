"""What runs inside the sandbox: a PDF, or words as JSON, and the text of a mapping in; a conversion out."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from octavo.convert.contract import Box, Sheet, Word, sheets_from_json
from octavo.convert.engine import convert
from octavo.convert.mapping import Mapping
from octavo.convert.mapping_text import mapping_from_text
from octavo.convert.records import conversion_to_json, conversion_to_record
from octavo.convert.suggestions import Suggestion, with_suggestions
from octavo.core.json import JSON
from octavo.extract.pdf.word_run import read_input
from octavo.extract.pdf.words import FEW_WORDS, WordPage, words_as_json

if TYPE_CHECKING:
    from octavo.sandbox import Task


def run(task: Task) -> None:
    """With suggestions, those are weighed too: the rules run again, which is less than keeping what they made."""
    mapping = _mapping(task)
    document: dict[str, Any] = json.load(task.input)
    sheets = sheets_from_json(document["pages"])
    attachments = [(str(name), b64decode(body)) for name, body in document["attachments"]]
    conversion = convert(sheets, mapping, attachments)
    suggested = task.arguments.get("suggestions")
    if isinstance(suggested, list):
        conversion = with_suggestions(conversion, mapping, sheets, _suggestions(suggested))
    task.output.write(conversion_to_json(conversion))


def run_pdf(task: Task) -> None:
    """Both steps in one child, unless a page may only show its text. Words come along where somebody needs them."""
    mapping = _mapping(task)
    read = read_input(task)
    made: dict[str, JSON] = {"conversion": None, "words": None}
    missing = True
    if all(len(page.words) >= FEW_WORDS for page in read.pages):
        conversion = convert([_sheet(page) for page in read.pages], mapping, read.attachments)
        made["conversion"], missing = conversion_to_record(conversion), bool(conversion.missing)
    if missing:
        made["words"] = words_as_json(read)
    task.output.write(json.dumps(made, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())


def _mapping(task: Task) -> Mapping:
    return mapping_from_text(str(task.arguments["mapping"]), str(task.arguments["file"]))


def _sheet(page: WordPage) -> Sheet:
    """The same as when it is written down and read again."""
    words = tuple(Word(text, Box(*(round(side, 2) for side in box))) for text, box in page.words)
    return Sheet(page.number, page.width, page.height, words)


def _suggestions(rows: Sequence[Any]) -> list[Suggestion]:
    return [Suggestion(str(name), str(value), str(quote), page) for name, value, quote, page in rows]
