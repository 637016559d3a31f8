"""Processors use noncharacters as placeholders while they work. None of them leaves the sandbox, in any format."""

from __future__ import annotations

import io
import re
import zipfile
from html import escape
from pathlib import Path
from random import Random

import pytest

from octavo.core.errors import Empty
from octavo.extract.detect import Hints
from octavo.extract.extracted import SourceType, from_json, to_json
from octavo.extract.formats import known_processors
from tests.support.office import archive, epub, page, samples

NONCHARACTERS = "".join(map(chr, range(0xFDD0, 0xFDF0)))
FOUND = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")
OTHERS = {
    SourceType.HTML: b"<html><body><h1>Lighthouse</h1><p>The text of it.</p></body></html>",
    SourceType.MARKDOWN: b"# Lighthouse\n\nThe text of it.\n",
    SourceType.TEXT: b"Lighthouse\n\nThe text of it.\n",
    SourceType.LATEX: b"\\section{Lighthouse}\nThe text.\n\\begin{verbatim}\nLighthouse\n\\end{verbatim}\n",
    SourceType.ORG: b"* Lighthouse\nThe text of it.\n",
    SourceType.SRT: b"1\n00:00:01,000 --> 00:00:02,000\nLighthouse\n",
}
BLOCKS = (
    "p",
    "div",
    "h1",
    "h2",
    "ul",
    "ol",
    "li",
    "table",
    "tr",
    "td",
    "th",
    "blockquote",
    "pre",
    "section",
    "aside",
    "dl",
)
INLINE = ("a", "b", "em", "code", "span", "sup", "sub", "ruby", "rt", "rp", "q", "button", "label", "del", "small")
DRAWN = ("svg", "text", "tspan", "image", "math", "mi", "mfrac", "img", "object", "input", "select", "option", "br")


def marked(data: bytes) -> bytes:
    """The file with all noncharacters inside the word that each sample contains."""
    mark = f"{NONCHARACTERS}\ufdd01\ufdd1\ufdd60\ufdd7"
    if data.startswith(b"{\\rtf"):
        return data.replace(b"LIGHT", b"Light" + b"".join(b"\\u%d?" % (ord(one) - 0x10000) for one in NONCHARACTERS))
    word = f"Light{mark}house".encode()
    if not data.startswith(b"PK"):
        return data.replace(b"Lighthouse", word)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return archive({name: file.read(name).replace(b"Lighthouse", word) for name in file.namelist()})


@pytest.mark.parametrize("kind", [*samples(), *OTHERS])
def test_no_noncharacter_of_a_file_leaves_the_sandbox(tmp_path: Path, kind: SourceType) -> None:
    path = tmp_path / "object"
    path.write_bytes(marked({**samples(), **OTHERS}[kind]))
    written = to_json(known_processors()[kind].extract(path, Hints(kind)))
    assert "Light" in from_json(written).markdown
    assert not FOUND.search(written.decode())


def tree(random: Random, depth: int) -> str:
    """Markup that nests any elements in any others, as damaged and generated pages do."""
    tag = random.choice([BLOCKS, INLINE, DRAWN][random.randrange(3)])
    inside = "".join(tree(random, depth - 1) for _ in range(random.randrange(4))) if depth else ""
    attributes = random.choice(
        ['id="x"', 'href="https://x.org/a"', 'src="a.png" alt="A [map]"', 'rowspan="2"', 'y="3"']
    )
    text = escape(random.choice(["word", " ", "[1]", "a\\b", "x](y)", "*", "日本", "--", "12"]))
    return f"<{tag} {attributes}>{text}{inside}</{tag}>{random.choice(['', ' ', 'tail'])}"


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", [SourceType.HTML, SourceType.EPUB])
def test_no_markup_makes_a_processor_leave_a_placeholder(tmp_path: Path, kind: SourceType, seed: int) -> None:
    content = "<p>Known words.</p>" + "".join(tree(Random(seed * 100 + part), 4) for part in range(5))
    book = epub({"a.xhtml": page(content), "b.svg": f"<svg>{content}</svg>"}, toc='<li><a href="b.svg#x">X</a></li>')
    path = tmp_path / "object"
    path.write_bytes(book if kind is SourceType.EPUB else f"<html><body>{content}</body></html>".encode())
    try:
        extracted = known_processors()[kind].extract(path, Hints(kind))
    except Empty:
        pytest.fail("the words are lost")
    assert "Known words." in extracted.markdown
    assert not FOUND.search(extracted.markdown)
    assert "data:" not in extracted.markdown
