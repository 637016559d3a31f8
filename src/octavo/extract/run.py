"""What runs inside the sandbox: one file in, one `Extracted` as JSON out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from octavo.extract.contract import to_json
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.formats import known_processors
from octavo.extract.registry import Hints
from octavo.model.errors import Empty

if TYPE_CHECKING:
    from octavo.sandbox import Task

_PROCESSORS = known_processors()


def run(task: Task) -> None:
    """Leaves the result in the task's output: a book is larger than what the sandbox returns as a value."""
    head = task.input.read(HEAD_BYTES)
    if not head:
        raise Empty("The file has no bytes.")
    filename = str(task.arguments.get("filename") or "")
    source_type = detect(head, filename, str(task.arguments.get("content_type") or ""))
    extracted = _PROCESSORS[source_type].extract(Path(task.input_path), Hints(source_type, filename))
    task.output.write(to_json(extracted))
