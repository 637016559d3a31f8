"""Once prepared, describing opens no file, because in the sandbox there is none, and every process tells the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from octavo.language.insights import ChunkText, DocumentSource
from octavo.language import answer, describe, prepare

prepare()
opened = []
sys.addaudithook(lambda event, arguments: event == "open" and opened.append(arguments[0]))
passages = [
    ChunkText("The old bridge was closed in 2019. Everybody is happy about it.", ("Harbour",)),
    ChunkText("Die alte Brücke wurde 2019 gesperrt, und alle sind froh darüber."),
    ChunkText("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"),
    ChunkText("| 1 | 2 |"),
]
for kind in ("pdf", "eml", "image"):
    describe(DocumentSource(passages, kind=kind, title="Bridge", language="en-US"))
answer("When was the bridge closed?", passages)
print(opened)
description = describe(DocumentSource(passages * 3))
print(description.document.model_dump_json(), *(chunk.model_dump_json() for chunk in description.chunks))
print(answer("When was the old bridge closed?", passages).model_dump_json())
"""


@pytest.fixture(scope="module")
def outputs() -> list[str]:
    """Of two processes that put their sets in different orders."""
    command = [sys.executable, "-c", PROGRAM]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in "12"
    ]
    return [process.communicate()[0] for process in running]


def test_nothing_is_opened_after_preparing(outputs: list[str]) -> None:
    assert outputs[0].splitlines()[0] == "[]"


def test_every_process_tells_the_same(outputs: list[str]) -> None:
    assert outputs[0] == outputs[1]
    assert "bridge" in outputs[0]
