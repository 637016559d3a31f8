"""Four times the text takes about four times as long, however odd the text is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.core.languages import count_words
from octavo.extract.decode import decode
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.formats import latex, markup, org, text
from octavo.extract.registry import Hints

SIZE = 10_000
# Linear is 4, quadratic 16; the machine may be busy, so the best of several runs counts.
MOST = 9
RUNS = 3

ODD = {
    "prose": "Some words that make a sentence. ",
    "paragraphs": "a\n\n",
    "short lines": "a\n",
    "headings": "# a\n",
    "underlined": "a\n=\n",
    "quotes in quotes": ">",
    "quotes": "> a\n",
    "lists in lists": "- ",
    "list": "- a\n",
    "empty items": "-\n",
    "brackets": "[",
    "open brackets": "[a](",
    "definitions": "[a]: b\n",
    "stars": "*a ",
    "fences": "```\n",
    "backticks": "`",
    "comments": "<!--\n\n",
    "tags": "<a b=c ",
    "table heads": "|a|b|\n",
    "tables": "|a|\n|-|\n",
    "borders": "|",
    "dashes": "- -",
    "empty lines": "\n",
    "spaces": " ",
    "form feeds": "a\f",
    "capitals": "ABCD\n\n",
    "columns": "a    b\n",
    "underscores": "_a",
    "signs": "-",
}


def seconds(work: Callable[[str], Extracted], content: str) -> float:
    def once() -> float:
        start = time.process_time()
        work(content)
        return time.process_time() - start

    return min(once() for _ in range(RUNS))


@pytest.mark.parametrize("part", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("work", [text.from_markdown, text.from_text], ids=["markdown", "text"])
def test_reading_is_linear(work: Callable[[str], Extracted], part: str) -> None:
    small, large = ("x" + part * (size // len(part)) for size in (SIZE, 4 * SIZE))
    # What takes next to no time says nothing about growth.
    assert seconds(work, large) < MOST * max(seconds(work, small), 0.002)


MARKUP = {
    SourceType.RST: (markup.PROCESSOR, ["**a ", "``a ", ":a:`", ".. a::\n", "= =\n", "+-", " a\n", ":"]),
    SourceType.ORG: (org.ORG, ["* a   ", "*a ", "[[a", "|a", "- a\n", ":a:\n"]),
    SourceType.ASCIIDOC: (org.ASCIIDOC, ["= a   ", "a:: b\n", "+\n", "|===\n", ". a\n", "*a "]),
    SourceType.LATEX: (latex.PROCESSOR, ["\\begin{verbatim}a", "{", "$a", "\\\\", "\\item a ", "%a\n", "a & b \\\\ "]),
}


@pytest.mark.parametrize(("kind", "part"), [(kind, part) for kind, (_, parts) in MARKUP.items() for part in parts])
def test_reading_markup_is_linear(tmp_path: Path, kind: SourceType, part: str) -> None:
    path = tmp_path / "text"

    def work(content: str) -> Extracted:
        path.write_text(content)
        return MARKUP[kind][0].extract(path, Hints(kind))

    small, large = ("x\n\n" + part * (size // len(part)) for size in (SIZE, 4 * SIZE))
    assert seconds(work, large) < MOST * max(seconds(work, small), 0.002)


@pytest.mark.parametrize("unit", [b"a\r", b"\x1b[", b"x\b", b"\x1b$B", b"\xe9a", b"\0", b"\xff\xfe"])
def test_decoding_is_linear(unit: bytes) -> None:
    def spent(size: int) -> float:
        data = b"x" + unit * size
        start = time.process_time()
        decode(data)
        return time.process_time() - start

    assert min(spent(400_000) for _ in range(3)) < MOST * max(min(spent(100_000) for _ in range(3)), 0.01)


@pytest.mark.parametrize("part", ["-", "_", "a", "!a", "日", "ส"])
def test_counting_is_linear(part: str) -> None:
    def spent(size: int) -> float:
        content = part * size
        start = time.process_time()
        count_words(content)
        return time.process_time() - start

    assert min(spent(800_000) for _ in range(3)) < MOST * max(min(spent(200_000) for _ in range(3)), 0.005)
