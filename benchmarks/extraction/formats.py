"""How much of office documents, books and web pages comes through.

The truth is the Markdown that another program made of the same file, if it lies beside it (`report.docx.md`): tokens
without the marks of Markdown, cells without their white space. The words of an EPUB are those of its chapters; those of
Chinese and Japanese are counted as characters.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.extraction.counting import Counting
from benchmarks.extraction.judging import (
    cells_of,
    edit_similarity,
    headings_in,
    items_of,
    plain,
    share_found,
    tokens,
    words_in,
)
from benchmarks.extraction.rows import Row, files_in, mean_row, missing, read_file, report

etree: Any = import_module("lxml.etree")  # they have no types
lxml_html: Any = import_module("lxml.html")

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
OTHER_FORMATS = ("doc", "xls", "ppt", "vtt", "tex", "asciidoc", "nxml", "xml", "ods", "odp", "odt", "rtf", "msg")


def with_truth(folder: Path, *endings: str) -> list[tuple[Path, str]]:
    """Files that have the Markdown of another program beside them. A name counts once."""
    found = {path.name: path for ending in endings for path in sorted(folder.rglob(f"*.{ending}"), reverse=True)}
    pairs = ((path, path.with_name(path.name + ".md")) for _, path in sorted(found.items()))
    return [(path, truth.read_text()) for path, truth in pairs if truth.exists()]


async def read_texts(sandbox: Counting, files: Iterable[tuple[Path, str]]) -> list[tuple[Path, str, str]]:
    """Path, truth and text; a file that cannot be read counts with an empty text."""
    read = [(path, truth, await read_file(sandbox, path)) for path, truth in files]
    return [(path, truth, extracted.markdown if extracted else "") for path, truth, extracted in read]


async def measure_office(sandbox: Counting, folder: Path) -> list[Row]:
    goals = {"DOCX": ("docx",), "PPTX": ("pptx",), "XLSX": ("xlsx", "xlsm")}
    return [row for name, endings in goals.items() for row in await _similarity(sandbox, folder, name, endings)]


async def measure_others(sandbox: Counting, folder: Path) -> list[Row]:
    return [row for one in OTHER_FORMATS for row in await _similarity(sandbox, folder, one.upper(), (one,))]


async def _similarity(sandbox: Counting, folder: Path, name: str, endings: Sequence[str]) -> list[Row]:
    read = await read_texts(sandbox, with_truth(folder, *endings))
    if not read:
        return [missing(f"{name}: edit similarity", 0.95, "no file with Markdown beside it")]
    values: list[float] = []
    hits = wanted = 0
    for path, truth, text in read:
        values.append(edit_similarity(tokens(truth), tokens(text)))
        found, cells = share_found(cells_of(truth), cells_of(text))
        hits, wanted = hits + found, wanted + cells
        report(f"{path.name:45} edit {values[-1]:.3f}  cells {found}/{cells}")
    rows = [mean_row(f"{name}: edit similarity", values, 0.95)]
    return [*rows, Row(f"{name}: cells found", hits / wanted, 0.95, len(read))] if wanted else rows


async def measure_html(sandbox: Counting, folder: Path) -> list[Row]:
    read = await read_texts(sandbox, with_truth(folder, "html"))
    if not read:
        return [missing("HTML: headings, cells, lists", 0.95, "no HTML file with Markdown beside it")]
    parts: dict[str, tuple[float, Callable[[str], Iterable[str]]]] = {
        "headings": (1.0, lambda text: (one.words for one in headings_in(plain_links(text)))),
        "cells": (0.95, cells_of),
        "list items": (0.95, items_of),
    }
    rows: list[Row] = []
    for name, (goal, find) in parts.items():
        counts = [(path, *share_found(find(truth), find(text))) for path, truth, text in read]
        for path, hits, wanted in counts:
            if hits < wanted:
                report(f"{path.name:45} {name} {hits}/{wanted}")
        hits, wanted = sum(one[1] for one in counts), sum(one[2] for one in counts)
        files = sum(one[2] > 0 for one in counts)
        rows.append(Row(f"HTML: {name} found", hits / max(wanted, 1), goal, files, f"{hits} of {wanted}"))
    values = [edit_similarity(tokens(truth), tokens(text)) for _, truth, text in read]
    return [*rows, mean_row("HTML: edit similarity", values, 0.95)]


def plain_links(markdown: str) -> str:
    return re.sub(r"!?\[([^\[\]]*)\]\([^()]*\)", r"\1", markdown)


async def measure_web(sandbox: Counting, folder: Path) -> list[Row]:
    """Articles as a fetched page; the truth is `page.html.txt`, the words of the article."""
    from octavo.extract.extracted import SourceType
    from octavo.extract.file_reader import extract_in_sandbox

    values: list[float] = []
    for path in files_in(folder, "*.html"):
        truth = path.with_name(path.name + ".txt")
        if truth.exists():
            url = f"https://example.org/{path.stem}"
            found = await extract_in_sandbox(sandbox, path, path.name, source_type=SourceType.WEB, url=url)
            values.append(_f1(words_in(truth.read_text()), words_in(plain(found.markdown))))
    return [mean_row("web articles: F1 of words", values, 0.965, "" if values else "no page has its article beside it")]


def _f1(wanted: Counter[str], found: Counter[str]) -> float:
    return 2 * (wanted & found).total() / max(wanted.total() + found.total(), 1)


async def measure_books(sandbox: Counting, folder: Path) -> list[Row]:
    recalls: dict[bool, list[float]] = {False: [], True: []}
    for path in files_in(folder, "*.epub"):
        try:
            parts = list(chapters(path))
        except Exception as error:  # noqa: BLE001 - a damaged book has no truth
            report(f"{path.name:45} has no truth: {type(error).__name__}")
            continue
        expected = Counter(_WORD.findall(" ".join(text for text, _ in parts).lower()))
        extracted = await read_file(sandbox, path)
        if extracted is None or not expected:
            continue
        found = Counter(_WORD.findall(plain(extracted.markdown).lower()))
        value = (expected & found).total() / expected.total()
        recalls[any(maths for _, maths in parts)].append(value)
        report(f"{path.name:45} words {value:.3f} of {expected.total()}")
    return [
        mean_row("EPUB: words found", recalls[False], 0.995),
        mean_row("EPUB with MathML: words found", recalls[True], 0.95),
    ]


def chapters(file: Path) -> Iterator[tuple[str, bool]]:
    """The text of every document of the spine, and whether it has formulas; read without any code of Octavo."""
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
            yield " ".join(root.itertext()), bool(root.xpath("//*[local-name()='math']"))
