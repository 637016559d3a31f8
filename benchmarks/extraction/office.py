"""How much of office documents and books comes through, and how fast.

`python -m benchmarks.extraction.office FOLDER`. For `*.docx`, what another program made of the same file is compared
if it lies beside it as `*.docx.md`: tokens without the marks of Markdown, cells without their white space. For
`*.epub`, the words of the chapters are counted again in the Markdown; of Chinese and Japanese, the characters.
"""

from __future__ import annotations

import html
import re
import statistics
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from octavo.core.errors import OctavoError
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.formats import docx, epub
from octavo.extract.registry import Hints

etree: Any = import_module("lxml.etree")  # they have no types
lxml_html: Any = import_module("lxml.html")

GOAL_EDIT, GOAL_CELLS, GOAL_WORDS = 0.95, 0.85, 0.96

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[((?:[^\[\]\\]|\\.)*)\]\([^()]*\)")
LINE_MARKS = re.compile(r"^[ \t]*(?:#{1,6} |[-*+] |> |\|?(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$|```\w*$)", re.MULTILINE)
MARKS = re.compile(r"\\(?=[!-/:-@\[-`{-~])|\*+|~~|`|\||\$|\[Image:[^\]]*\]")
TOKEN = re.compile(r"\w+|[^\w\s]")
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
ROW = re.compile(r"^\|(.*)\|[ \t]*$", re.MULTILINE)


def main(folder: Path) -> None:
    documents = sorted(folder.rglob("*.docx"))
    books = sorted(folder.rglob("*.epub"))
    if documents:
        measure_documents(documents)
    if books:
        measure_books(books)


def measure_documents(files: Sequence[Path]) -> None:
    similarities: list[float] = []
    hits = cells = 0
    for file in files:
        extracted, seconds = read(file, docx.extract, SourceType.DOCX)
        reference = file.with_name(file.name + ".md")
        if extracted is None or not reference.exists():
            continue
        expected = reference.read_text()
        similarity = edit_similarity(tokens(expected), tokens(extracted.markdown))
        similarities.append(similarity)
        found, wanted = shared_cells(expected, extracted.markdown)
        hits, cells = hits + found, cells + wanted
        print(f"{file.name:45} edit {similarity:.3f}  cells {found}/{wanted}  {seconds * 1000:.0f} ms")
    if similarities:
        mean, recall = statistics.mean(similarities), hits / cells if cells else 1.0
        print(f"edit similarity {mean:.3f} (goal {GOAL_EDIT}), cells {recall:.3f} (goal {GOAL_CELLS})")


def measure_books(files: Sequence[Path]) -> None:
    recalls: list[float] = []
    for file in files:
        extracted, seconds = read(file, epub.extract, SourceType.EPUB)
        if extracted is None:
            continue
        expected = Counter(WORD.findall(" ".join(chapters(file)).lower()))
        found = Counter(WORD.findall(plain(extracted.markdown).lower()))
        if not expected:
            print(f"{file.name:45} has no words in its XHTML and is not counted")
            continue
        recall = sum((expected & found).values()) / expected.total()
        recalls.append(recall)
        levels = Counter(entry.level for entry in extracted.outline)
        print(
            f"{file.name:45} words {recall:.3f} of {expected.total():6}  outline {dict(sorted(levels.items()))}  "
            f"pages {len(extracted.pages)}  {seconds * 1000:.0f} ms"
        )
    if recalls:
        mean, least = statistics.mean(recalls), min(recalls)
        print(f"{len(recalls)} books: word recall {mean:.3f}, least {least:.3f} (goal {GOAL_WORDS})")


def read(file: Path, extract: Callable[[Path, Hints], Extracted], kind: SourceType) -> tuple[Extracted | None, float]:
    began = time.perf_counter()
    try:
        return extract(file, Hints(kind, file.name)), time.perf_counter() - began
    except OctavoError as error:
        print(f"{file.name:45} {error.code}: {error.line}")
        return None, 0.0


def chapters(file: Path) -> Iterator[str]:
    """The text of every document of the spine, by a way of its own."""
    with zipfile.ZipFile(file) as archive:
        container = etree.fromstring(archive.read("META-INF/container.xml"))
        opf = container.find(".//{*}rootfile").get("full-path")
        package = etree.fromstring(archive.read(opf))
        folder = opf.rpartition("/")[0]
        items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
        for reference in package.iterfind(".//{*}spine/{*}itemref"):
            item = items[reference.get("idref")]
            if item.get("media-type") != "application/xhtml+xml":
                continue
            path = f"{folder}/{item.get('href')}" if folder else item.get("href")
            root = lxml_html.fromstring(archive.read(path))
            for gone in root.xpath("//script|//style|//head"):
                gone.drop_tree()
            yield " ".join(root.itertext())


def plain(markdown: str) -> str:
    text = LINK.sub(r"\1", COMMENT.sub("", html.unescape(markdown)))
    return MARKS.sub("", LINE_MARKS.sub("", text))


def tokens(markdown: str) -> list[str]:
    return TOKEN.findall(plain(markdown))


def shared_cells(expected: str, found: str) -> tuple[int, int]:
    """How many cells of the expected tables are there, each as often as it should be."""
    wanted, got = Counter(cells_of(expected)), Counter(cells_of(found))
    return sum((wanted & got).values()), wanted.total()


def cells_of(markdown: str) -> Iterator[str]:
    for row in ROW.findall(markdown):
        for cell in re.split(r"(?<!\\)\|", row):
            text = "".join(TOKEN.findall(plain(cell)))
            if text and set(text) - set("-:"):
                yield text


def edit_similarity(expected: Sequence[str], found: Sequence[str]) -> float:
    """One minus the share of tokens that have to be inserted, deleted or replaced."""
    if not expected or not found:
        return float(not expected and not found)
    row = list(range(len(found) + 1))
    for place, token in enumerate(expected, 1):
        diagonal, row[0] = row[0], place
        for column, other in enumerate(found, 1):
            cost = diagonal if token == other else 1 + min(diagonal, row[column], row[column - 1])
            diagonal, row[column] = row[column], cost
    return 1 - row[-1] / max(len(expected), len(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
