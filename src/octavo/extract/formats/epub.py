"""Books in EPUB 2 and 3."""

from __future__ import annotations

from pathlib import Path

from octavo.extract.contract import Extracted, SourceType
from octavo.extract.epub import convert
from octavo.extract.office.result import page_at, to_extracted
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import Archive, deep_is_damaged


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive, deep_is_damaged():
        book = convert(archive)
    return to_extracted(
        SourceType.EPUB, book.markdown, book.metadata, pages=book.pages, outline=page_at(book.outline, book.pages)
    )


PROCESSOR = Processor((SourceType.EPUB,), extract)
