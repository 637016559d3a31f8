"""Once prepared, describing opens no file: in the sandbox there would be none."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from octavo.ai.inputs import Passage, Source
from octavo.ai.local import answer, describe, prepare

prepare()
opened = []
sys.addaudithook(lambda event, arguments: event == "open" and opened.append(arguments[0]))
passages = [
    Passage("The old bridge was closed in 2019. Everybody is happy about it.", ("Harbour",)),
    Passage("Die alte Brücke wurde 2019 gesperrt, und alle sind froh darüber."),
    Passage("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"),
    Passage("| 1 | 2 |"),
]
for kind in ("pdf", "eml", "image"):
    describe(Source(passages, kind=kind, title="Bridge", language="en-US"))
answer("When was the bridge closed?", passages)
print(opened)
"""


def test_nothing_is_opened_after_preparing() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "[]\n"
