"""Four times the text takes about four times as long, however odd the text is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.core.texts import count_words
from octavo.extract.decode import decode
from octavo.extract.detect import Hints
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.formats import latex, markup, org, text
from tests.support.growth import grows_at_most

# They compare processor times, which a busy machine distorts, so they are long forms.
pytestmark = pytest.mark.long

SIZE = 10_000
# Linear is 4, quadratic 16; the machine may be busy, so the best of several runs counts.
MOST = 9

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


@pytest.mark.parametrize("part", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("work", [text.from_markdown, text.from_text], ids=["markdown", "text"])
def test_reading_is_linear(work: Callable[[str], Extracted], part: str) -> None:
    small, large = ("x" + part * (size // len(part)) for size in (SIZE, 4 * SIZE))
    assert grows_at_most(MOST, lambda: work(small), lambda: work(large), least=0.002)


MARKUP = {
    SourceType.RST: (markup.PROCESSOR, ["**a ", "``a ", ":a:`", ".. a::\n", "= =\n", "+-", " a\n", ":"]),
    SourceType.ORG: (org.ORG, ["* a   ", "*a ", "[[a", "|a", "- a\n", ":a:\n"]),
    SourceType.ASCIIDOC: (org.ASCIIDOC, ["= a   ", "a:: b\n", "+\n", "|===\n", ". a\n", "*a "]),
    SourceType.LATEX: (
        latex.PROCESSOR,
        [
            "\\begin{verbatim}a",
            "{",
            "$a",
            "\\\\",
            "\\item a ",
            "%a\n",
            "a & b \\\\ ",
            "\\def\\a{\\b}\\a ",
            "\\newcommand{\\a}[1]{{",
        ],
    ),
}


@pytest.mark.parametrize(("kind", "part"), [(kind, part) for kind, (_, parts) in MARKUP.items() for part in parts])
def test_reading_markup_is_linear(tmp_path: Path, kind: SourceType, part: str) -> None:
    path = tmp_path / "text"

    def work(content: str) -> Extracted:
        path.write_text(content)
        return MARKUP[kind][0].extract(path, Hints(kind))

    small, large = ("x\n\n" + part * (size // len(part)) for size in (SIZE, 4 * SIZE))
    assert grows_at_most(MOST, lambda: work(small), lambda: work(large), least=0.002)


@pytest.mark.parametrize("unit", [b"a\r", b"\x1b[", b"x\b", b"\x1b$B", b"\xe9a", b"\0", b"\xff\xfe"])
def test_decoding_is_linear(unit: bytes) -> None:
    small, large = (b"x" + unit * size for size in (100_000, 400_000))
    assert grows_at_most(MOST, lambda: decode(small), lambda: decode(large), least=0.01)


@pytest.mark.parametrize("part", ["-", "_", "a", "!a", "日", "ส"])
def test_counting_is_linear(part: str) -> None:
    small, large = (part * size for size in (200_000, 800_000))
    assert grows_at_most(MOST, lambda: count_words(small), lambda: count_words(large), least=0.005)
