"""What runs inside the sandbox: one extracted document as JSON in, the places of its chunks out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from octavo.extract.chunks.chunking import chunk

if TYPE_CHECKING:
    from octavo.sandbox import Task


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    start: int
    end: int
    text: str
    level: int | None
    page: int | None
    box: tuple[float, float, float, float] | None


@dataclass(frozen=True, slots=True)
class Page:
    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Moment:
    start: int
    seconds: float


def run(task: Task) -> None:
    """The texts of chunks stay behind: whoever has the document has them by their places."""
    document = json.load(task.input)
    blocks = [Block(*(block[name] for name in Block.__slots__)) for block in document["blocks"]]
    pages = [Page(*(page[name] for name in Page.__slots__)) for page in document["pages"]]
    # Documents that were extracted by an earlier version have none.
    moments = [Moment(*(moment[name] for name in Moment.__slots__)) for moment in document.get("moments", ())]
    rows = [
        [one.start, one.end, one.page_from, one.page_to, one.heading_path, one.word_count, one.seconds, one.boxes]
        for one in chunk(document["markdown"], blocks, pages, moments)
    ]
    task.output.write(json.dumps(rows).encode())
