"""What runs inside the sandbox: one page, as a batch of its own.

Each page has a child to itself, so that its memory is given back and a page that goes wrong costs no other.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from octavo.extract.contract import SourceType
from octavo.extract.pdf.pages import Batch, batch_to_json
from octavo.extract.pdf.recognise import read_drawn
from octavo.extract.pictures.sheets import read_sheet

if TYPE_CHECKING:
    from octavo.sandbox import Task


def run_page(task: Task) -> None:
    path, number = Path(task.input_path), int(str(task.arguments["number"]))
    language, password = str(task.arguments["language"]), str(task.arguments.get("password") or "") or None
    if task.arguments["source_type"] == SourceType.IMAGE:
        page = read_sheet(path, number, language)
    else:
        page = read_drawn(path, number, password, language)
    task.output.write(batch_to_json(Batch((page,))) + b"\n")
