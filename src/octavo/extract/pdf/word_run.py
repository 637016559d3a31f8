"""What runs inside the sandbox to read the words of a PDF and the XML files inside it."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.extract.pdf.words import pages_as_json, read_words
from octavo.model.json import JSON

if TYPE_CHECKING:
    from octavo.sandbox import Task


def run(task: Task) -> None:
    """Attachments as base64, because JSON has no bytes."""
    read = read_words(Path(task.input_path), str(task.arguments.get("password") or "") or None)
    attachments: list[JSON] = [[name, b64encode(body).decode()] for name, body in read.attachments]
    document = {"page_count": read.page_count, "pages": pages_as_json(read), "attachments": attachments}
    task.output.write(json.dumps(document, ensure_ascii=False, allow_nan=False).encode())
