"""How much of office documents, web pages and books comes through, and how fast.

`python -m benchmarks.extraction.office FOLDER [even|odd]`. For `*.docx`, `*.pptx`, `*.xlsx` and `*.html`, what another
program made of the same file is compared if it lies beside it as `*.docx.md`: tokens without the marks of Markdown,
headings, cells and list items without their white space. For `*.epub`, the words of the chapters are counted again in
the Markdown; of Chinese and Japanese, the characters.

`even` and `odd` are the halves of the files of a kind by sorted name: the reader was tuned on the even half, so that
the odd half says how well it does on other files.
"""

from __future__ import annotations

import html
import re
import statistics
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from octavo.core.errors import OctavoError
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.formats import known_processors
from octavo.extract.registry import Hints

etree: Any = import_module("lxml.etree")  # they have no types
lxml_html: Any = import_module("lxml.html")

GOAL_EDIT, GOAL_WORDS = 0.95, 0.995
KINDS = {
    "docx": SourceType.DOCX,
    "pptx": SourceType.PPTX,
    "xlsx": SourceType.XLSX,
    "xlsm": SourceType.XLSX,
    "html": SourceType.HTML,
}

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
PICTURE = re.compile(r"!\[(?:[^\[\]\\]|\\.)*\]\([^()]*\)")
LINK = re.compile(r"\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\((?:[^()]|\([^()]*\))*\)")
TAG = re.compile(r"</?(?:math|su[bp]|br|u)(?: [^<>]*)?/?>")
LINE_MARKS = re.compile(r"^[ \t]*(?:#{1,6} |[-*+] |> |\|?(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$|```\w*$)", re.MULTILINE)
MARKS = re.compile(r"\\(?=[!-/:-@\[-`{-~])|\*+|~~|`|\||\$|\[Image:[^\]]*\]")
TOKEN = re.compile(r"\w+|[^\w\s]")
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
ROW = re.compile(r"^\|(.*)\|[ \t]*$", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)]) +(.+)$", re.MULTILINE)


def main(folder: Path, half: str = "") -> None:
    for kinds in (("docx",), ("pptx",), ("xlsx", "xlsm"), ("html",)):
        files = sorted(file for kind in kinds for file in folder.rglob(f"*.{kind}") if _reference(file).exists())
        measure_documents(kinds[0], _half(files, half))
    books = _half(sorted(folder.rglob("*.epub")), half)
    if books:
        measure_books(books)


def _half(files: list[Path], half: str) -> list[Path]:
    return files[half == "odd" :: 2] if half else files


def _reference(file: Path) -> Path:
    return file.with_name(file.name + ".md")


@dataclass(slots=True)
class Found:
    """How many of the headings, cells or items of the reference are there, each as often as it should be."""

    hits: int = 0
    wanted: int = 0

    def add(self, expected: Counter[str], got: Counter[str]) -> str:
        hits, wanted = (expected & got).total(), expected.total()
        self.hits, self.wanted = self.hits + hits, self.wanted + wanted
        return f"{hits}/{wanted}"

    def __str__(self) -> str:
        return f"{self.hits / self.wanted:.3f} of {self.wanted}" if self.wanted else "none"


def measure_documents(name: str, files: Sequence[Path]) -> None:
    similarities: list[float] = []
    headings, cells, items = Found(), Found(), Found()
    for file in files:
        extracted, seconds = read(file, KINDS[file.suffix[1:]])
        if extracted is None:
            continue
        expected, markdown = _reference(file).read_text(), extracted.markdown
        similarities.append(edit_similarity(tokens(expected), tokens(markdown)))
        print(
            f"{file.name:45} edit {similarities[-1]:.3f}"
            f"  headings {headings.add(lines(HEADING, expected), lines(HEADING, markdown))}"
            f"  cells {cells.add(Counter(cells_of(expected)), Counter(cells_of(markdown)))}"
            f"  items {items.add(lines(ITEM, expected), lines(ITEM, markdown))}  {seconds * 1000:.0f} ms"
        )
    if similarities:
        mean = statistics.mean(similarities)
        print(
            f"{len(similarities)} {name}: edit similarity {mean:.3f} (goal {GOAL_EDIT}); found: "
            f"headings {headings}, cells {cells}, items {items}\n"
        )


def measure_books(files: Sequence[Path]) -> None:
    recalls: list[float] = []
    for file in files:
        extracted, seconds = read(file, SourceType.EPUB)
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
        print(f"{len(recalls)} books: word recall {mean:.4f}, least {least:.3f} (goal {GOAL_WORDS})")


def read(file: Path, kind: SourceType) -> tuple[Extracted | None, float]:
    extract = known_processors()[kind].extract
    began = time.process_time()
    try:
        return extract(file, Hints(kind, file.name)), time.process_time() - began
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
    text = PICTURE.sub("", TAG.sub("", COMMENT.sub("", markdown)))
    return MARKS.sub("", LINE_MARKS.sub("", LINK.sub(r"\1", html.unescape(text))))


def tokens(markdown: str) -> list[str]:
    return TOKEN.findall(plain(markdown))


def lines(pattern: re.Pattern[str], markdown: str) -> Counter[str]:
    """The headings or list items of a text, without white space and punctuation."""
    texts = ("".join(WORD.findall(plain(text))) for text in pattern.findall(COMMENT.sub("", markdown)))
    return Counter(filter(None, texts))


def cells_of(markdown: str) -> Iterator[str]:
    for row in ROW.findall(markdown):
        for cell in re.split(r"(?<!\\)\|", row):
            text = "".join(TOKEN.findall(plain(cell)))
            if text and set(text) - set("-:"):
                yield text


def edit_similarity(expected: Sequence[str], found: Sequence[str]) -> float:
    """One minus the share of tokens that have to be inserted, deleted or replaced.

    Columns of the distance matrix are the bits of two numbers (Myers 1999), which makes long texts quick.
    """
    if not expected or not found:
        return float(not expected and not found)
    places: dict[str, int] = {}
    for place, token in enumerate(expected):
        places[token] = places.get(token, 0) | 1 << place
    every = (1 << len(expected)) - 1
    last = 1 << (len(expected) - 1)
    up, down, distance = every, 0, len(expected)
    for token in found:
        same = places.get(token, 0)
        across = (((same & up) + up) ^ up) | same
        right, left = (down | ~(across | up)) & every, up & across
        distance += bool(right & last) - bool(left & last)
        right, left = right << 1 | 1, left << 1
        up = (left | ~((same | down) | right)) & every
        down = right & (same | down) & every
    return 1 - distance / max(len(expected), len(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
