"""What runs inside the sandbox for one step of a PDF: its facts, some of its pages, or the document made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from octavo.core.errors import PageNotDrawn
from octavo.core.json import JSON
from octavo.extract.contract import SourceType, to_json
from octavo.extract.pdf.assemble import assemble_pages, merge_pages
from octavo.extract.pdf.document import PageError, open_document
from octavo.extract.pdf.facts import open_pdf
from octavo.extract.pdf.pages import batch_from_json, batch_to_json, facts_from_json, facts_to_json
from octavo.extract.pdf.read import read_batch

if TYPE_CHECKING:
    from octavo.sandbox import Task


def run_open(task: Task) -> None:
    task.output.write(facts_to_json(open_pdf(Path(task.input_path), _password(task))))


def run_read(task: Task) -> None:
    first, last = (int(str(task.arguments[name])) for name in ("first", "last"))
    layout = bool(task.arguments.get("layout"))
    batch = read_batch(Path(task.input_path), first, last, _password(task), layout=layout)
    task.output.write(batch_to_json(batch) + b"\n")


def run_copy(task: Task) -> None:
    first, last = (int(str(task.arguments[name])) for name in ("first", "last"))
    with open_document(Path(task.input_path), _password(task)) as document:
        try:
            task.output.write(document.copy(first, last))
        except PageError:
            raise PageNotDrawn from None


def run_assemble(task: Task) -> list[JSON]:
    """The input has the facts on its first line and a batch on every other. Answers which pages are unread."""
    facts = facts_from_json(task.input.readline())
    pages = merge_pages(facts, map(batch_from_json, task.input))
    source_type = SourceType(str(task.arguments["source_type"]))
    task.output.write(to_json(assemble_pages(facts, pages, source_type)))
    return [page.number for page in pages if page.is_unread]


def _password(task: Task) -> str | None:
    return str(task.arguments.get("password") or "") or None
