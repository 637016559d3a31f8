"""What runs inside the sandbox: one extracted document as JSON in, the places of its chunks out."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

from octavo.enrich.chunking import chunk

if TYPE_CHECKING:
    from octavo.sandbox import Task


def run(task: Task) -> None:
    """The texts of chunks stay behind: whoever has the document has them by their places."""
    document = json.load(task.input)
    blocks = [SimpleNamespace(**block) for block in document["blocks"]]
    pages = [SimpleNamespace(**page) for page in document["pages"]]
    rows = [
        [one.start, one.end, one.page_from, one.page_to, list(one.heading_path), one.word_count]
        for one in chunk(document["markdown"], blocks, pages)
    ]
    task.output.write(json.dumps(rows).encode())
