"""The sets of files that Octavo and its peers read, and how their texts are judged."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.extraction.formats import chapters, plain_links, with_truth
from benchmarks.extraction.judging import (
    bookmarks_of,
    cells_of,
    edit_similarity,
    headings_in,
    items_of,
    judge_headings,
    recall,
    share_found,
    tokens,
    without_bookmarks,
    word_recall,
    words_in,
    words_of,
)
from benchmarks.extraction.made_pages import KINDS, SEEDS, make_page, similarity
from benchmarks.extraction.table_rows import tables_in, with_table_truth
from octavo.extract.pdf.page_text import open_pdf
from tests.support.pdf import Pdf

Judge = Callable[[Sequence[str]], dict[str, float]]


class FileSet(NamedTuple):
    """`units`: pages or files, for the speed."""

    name: str
    about: str
    files: list[Path]
    judge: Judge
    units: int
    unit: str = "pages"

    @property
    def ending(self) -> str:
        return self.files[0].suffix.lower()


def make_sets(folder: Path, temporary: Path) -> Iterator[FileSet]:
    """The sets for which the folder has files, one after the other."""
    makers = (_long_pdfs, _made_pages, _tables, _html, _books)
    for make in makers:
        if one := make(folder, temporary):
            yield one
    for name, endings in (("DOCX", ("docx",)), ("PPTX", ("pptx",)), ("XLSX", ("xlsx", "xlsm"))):
        if pairs := with_truth(folder, *endings):
            yield _documents(name, pairs)


def _long_pdfs(folder: Path, temporary: Path) -> FileSet | None:
    files = [path for path in sorted((folder / "pdf-headings").glob("*.pdf")) if bookmarks_of(path)]
    copies = [without_bookmarks(path, temporary) for path in files]
    wanted = [(bookmarks_of(path), words_of(path)) for path in files]

    def judge(texts: Sequence[str]) -> dict[str, float]:
        pairs = list(zip(wanted, texts, strict=True))
        precision = [judge_headings(titles, headings_in(text)).precision for (titles, _), text in pairs]
        return {
            "Headings, recall": mean(recall(titles, headings_in(text)) for (titles, _), text in pairs),
            "Headings, precision": mean(precision),
            "Words": mean(word_recall(counts, text) for (_, counts), text in pairs),
        }

    about = "Long PDFs without their bookmarks; the bookmarks and PDFium's words are the truth."
    return FileSet("Long PDFs", about, copies, judge, _pages(copies)) if files else None


def _pages(files: Sequence[Path]) -> int:
    return sum(open_pdf(path).page_count for path in files)


def _made_pages(_folder: Path, temporary: Path) -> FileSet:
    made = [(kind, make_page(kind, number)) for kind in KINDS for number in range(SEEDS)]
    files: list[Path] = []
    for number, (_, page) in enumerate(made):
        files.append(temporary / f"made-{number}.pdf")
        files[-1].write_bytes(Pdf([page.parts]).write())

    def judge(texts: Sequence[str]) -> dict[str, float]:
        values: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for (kind, page), text in zip(made, texts, strict=True):
            values[kind].append(similarity(page, text))
        return {"All": mean(mean(each) for each in values.values())} | {
            kind: mean(each) for kind, each in values.items()
        }

    about = "Pages made from known text with columns and boxes: edit similarity of the words in reading order."
    return FileSet("Columns and boxes", about, files, judge, len(files))


def _tables(folder: Path, _temporary: Path) -> FileSet | None:
    try:
        tables: Any = importlib.import_module("benchmarks.extraction.tables")
    except ImportError:
        return None
    files = with_table_truth(tables, folder)
    wanted = [list(tables.expected_tables(tables.truth_path(path))) for path in files]

    def judge(texts: Sequence[str]) -> dict[str, float]:
        scores: list[float] = []
        found = 0
        for expected, text in zip(wanted, texts, strict=True):
            both = sum(expected, Counter())
            ours = sum((tables.pairs(places) for places in tables_in(tables, text)), Counter())
            scores.append(2 * (both & ours).total() / max(both.total() + ours.total(), 1))
            found += sum((one & ours).total() >= tables.FOUND_SHARE * one.total() for one in expected)
        return {"Adjacency F1": mean(scores), "Tables found": found / sum(map(len, wanted))}

    about = "ICDAR 2013 tables, as they are in the Markdown; it has no spanning cells, so nobody reaches 1."
    return FileSet("Tables", about, files, judge, _pages(files)) if files else None


def _html(folder: Path, _temporary: Path) -> FileSet | None:
    pairs = with_truth(folder, "html")
    truths = [truth for _, truth in pairs]

    def judge(texts: Sequence[str]) -> dict[str, float]:
        finders: dict[str, Callable[[str], Any]] = {
            "Headings": lambda text: (one.words for one in headings_in(plain_links(text))),
            "Cells": cells_of,
            "List items": items_of,
        }
        shares: dict[str, float] = {}
        for name, find in finders.items():
            counts = [share_found(find(truth), find(text)) for truth, text in zip(truths, texts, strict=True)]
            shares[name] = sum(hits for hits, _ in counts) / max(sum(wanted for _, wanted in counts), 1)
        return shares | {"Edit similarity": _similarity(truths, texts)}

    about = "HTML files; the truth is docling's Markdown."
    return FileSet("HTML", about, [path for path, _ in pairs], judge, len(pairs), "files") if pairs else None


def _documents(name: str, pairs: Sequence[tuple[Path, str]]) -> FileSet:
    truths = [truth for _, truth in pairs]

    def judge(texts: Sequence[str]) -> dict[str, float]:
        counts = [share_found(cells_of(truth), cells_of(text)) for truth, text in zip(truths, texts, strict=True)]
        cells = sum(hits for hits, _ in counts) / max(sum(wanted for _, wanted in counts), 1)
        return {"Edit similarity": _similarity(truths, texts), "Cells": cells}

    files = [path for path, _ in pairs]
    return FileSet(name, f"{name} files; the truth is docling's Markdown.", files, judge, len(files), "files")


def _similarity(truths: Sequence[str], texts: Sequence[str]) -> float:
    return mean(edit_similarity(tokens(one), tokens(other)) for one, other in zip(truths, texts, strict=True))


def _books(folder: Path, _temporary: Path) -> FileSet | None:
    files = [path for path in sorted((folder / "epub").glob("*.epub")) if _words_of_book(path)]
    wanted = [_words_of_book(path) for path in files]

    def judge(texts: Sequence[str]) -> dict[str, float]:
        return {"Words": mean(word_recall(counts, text) for counts, text in zip(wanted, texts, strict=True))}

    about = "EPUB books; the words of their chapters are the truth."
    return FileSet("EPUB", about, files, judge, len(files), "files") if files else None


def _words_of_book(path: Path) -> Counter[str]:
    return words_in(" ".join(text for text, _ in chapters(path)))
