"""What runs inside the sandbox to read the words of a PDF and the XML files inside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.extract.pdf.word_reading import read_words
from octavo.extract.pdf.words import WordPages, words_as_json

if TYPE_CHECKING:
    from octavo.sandbox import Task


def run(task: Task) -> None:
    task.output.write(json.dumps(words_as_json(read_input(task)), ensure_ascii=False, allow_nan=False).encode())


def read_input(task: Task) -> WordPages:
    return read_words(Path(task.input_path), str(task.arguments.get("password") or "") or None)
