"""What runs inside the sandbox for one step of a PDF: its facts, some of its pages, or the document made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from octavo.extract.contract import to_json
from octavo.extract.pdf.assemble import assemble
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


def run_assemble(task: Task) -> None:
    """The input has the facts on its first line and a batch on every other."""
    facts = facts_from_json(task.input.readline())
    task.output.write(to_json(assemble(facts, map(batch_from_json, task.input))))


def _password(task: Task) -> str | None:
    return str(task.arguments.get("password") or "") or None
