"""What runs inside the sandbox: a plain document and what a model wrote of it in, one `Extracted` as JSON out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from octavo.extract.by_model.rewriting import rewrite
from octavo.extract.contract import from_json, to_json

if TYPE_CHECKING:
    from octavo.sandbox import Task


def run_rewrite(task: Task) -> None:
    """The document is on the first line of the input, the texts by the places of their sections on the second."""
    plain = from_json(task.input.readline())
    texts = {int(place): text for place, text in json.loads(task.input.readline()).items()}
    task.output.write(to_json(rewrite(plain, texts, str(task.arguments["made_by"]))))
