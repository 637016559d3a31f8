"""What runs inside the sandbox to find a quote on a page of a PDF."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.extract.pictures.quotes import find_quote

if TYPE_CHECKING:
    from octavo.sandbox import Task


def run(task: Task) -> None:
    found = find_quote(Path(task.input_path), int(str(task.arguments["number"])), str(task.arguments["quote"]))
    task.output.write(json.dumps(asdict(found), allow_nan=False).encode())
