"""Reads files with one library, run by the Python of that library's own environment: only that one is imported.

Writes the texts to a folder, and prints a line of JSON for each file: seconds of processor time in all threads and
processes, without the time for imports, bytes of memory at the peak, and the reason if the file could not be read.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

Convert = Callable[[Path], str]


@contextmanager
def pypdf() -> Iterator[Convert]:
    from pypdf import PdfReader

    yield lambda path: "\n\n".join(page.extract_text() for page in PdfReader(path).pages)


@contextmanager
def pdfplumber() -> Iterator[Convert]:
    import pdfplumber as library

    def convert(path: Path) -> str:
        with library.open(path) as document:
            return "\n\n".join(page.extract_text() for page in document.pages)

    yield convert


@contextmanager
def markitdown() -> Iterator[Convert]:
    from markitdown import MarkItDown

    converter = MarkItDown()
    yield lambda path: converter.convert(path).text_content


@contextmanager
def kreuzberg() -> Iterator[Convert]:
    from kreuzberg import ExtractionConfig, extract_file_sync

    config = ExtractionConfig(output_format="markdown", use_cache=False)
    yield lambda path: extract_file_sync(path, config=config).content


@contextmanager
def pymupdf4llm() -> Iterator[Convert]:
    import pymupdf4llm as library

    yield lambda path: library.to_markdown(str(path), show_progress=False)


@contextmanager
def trafilatura() -> Iterator[Convert]:
    import trafilatura as library

    def convert(path: Path) -> str:
        page = path.read_text(errors="replace")
        return library.extract(page, output_format="markdown", include_tables=True, include_links=True) or ""

    yield convert


@contextmanager
def docling() -> Iterator[Convert]:
    from docling.document_converter import DocumentConverter

    converter = DocumentConverter()
    yield lambda path: converter.convert(path).document.export_to_markdown()


@contextmanager
def octavo() -> Iterator[Convert]:
    """As a worker does it: in the sandbox, whose processes are counted."""
    from benchmarks.extraction.counting import Counting
    from octavo.extract.file_reader import PRELOAD, PRELOAD_BY_TYPE, FileReader

    modules = (module for each in PRELOAD_BY_TYPE.values() for module in each)
    with asyncio.Runner() as runner:
        sandbox = runner.run(Counting((*PRELOAD, *modules)).__aenter__())

        def convert(path: Path) -> str:
            text = runner.run(FileReader(sandbox).read(path)).markdown
            costs.extend((one.cpu_seconds, one.peak_memory_bytes) for one in sandbox.outcomes)
            sandbox.outcomes.clear()
            return text

        yield convert
        runner.run(sandbox.aclose())


costs: list[tuple[float, int]] = []  # of processes that a contestant starts


def main(name: str, folder: Path, files: list[Path]) -> None:
    contestant = globals()[name]
    with contestant() as convert:
        print(json.dumps({"version": version(DISTRIBUTIONS.get(name, name))}), flush=True)
        for number, file in enumerate(files):
            costs.clear()
            start = time.process_time()
            text, failure = attempt(convert, file)
            seconds = time.process_time() - start + sum(seconds for seconds, _ in costs)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            memory += max((peak for _, peak in costs), default=0)
            (folder / f"{number}.md").write_text(text, errors="replace")
            print(json.dumps({"seconds": seconds, "memory": memory, "failure": failure}), flush=True)


def attempt(convert: Convert, file: Path) -> tuple[str, str]:
    try:
        return convert(file), ""
    except Exception as error:  # noqa: BLE001 - libraries raise anything
        return "", f"{type(error).__name__}: {error}"[:200]


DISTRIBUTIONS = {"docling": "docling-slim"}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [Path(one) for one in sys.argv[3:]])
