"""What runs inside the sandbox: one file in, one `Extracted` as JSON out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from octavo.core.errors import Empty
from octavo.extract.contract import SourceType, to_json
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.formats import known_processors
from octavo.extract.registry import Hints

if TYPE_CHECKING:
    from octavo.sandbox import Task

_PROCESSORS = known_processors()


def run(task: Task) -> None:
    """Leaves the result in the task's output: a book is larger than what the sandbox returns as a value."""
    head = task.input.read(HEAD_BYTES)
    if not head:
        raise Empty("The file has no bytes.")
    filename, content_type, url, password, known = (
        str(task.arguments.get(name) or "") for name in ("filename", "content_type", "url", "password", "source_type")
    )
    source_type = SourceType(known) if known else detect(head, filename, content_type)
    hints = Hints(source_type, filename, content_type, url, password)
    extracted = _PROCESSORS[source_type].extract(Path(task.input_path), hints)
    task.output.write(to_json(extracted))
