"""Texts of LibreOffice and others that write OpenDocument."""

from __future__ import annotations

from pathlib import Path

from octavo.extract.contract import Extracted, SourceType
from octavo.extract.office.open_document import convert, read_metadata
from octavo.extract.office.result import pages_at, take_marks, to_extracted
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import Archive, deep_is_damaged


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive, deep_is_damaged():
        markdown, breaks = take_marks(convert(archive))
        metadata = read_metadata(archive)
    pages = pages_at(breaks, len(markdown)) if breaks else ()
    return to_extracted(SourceType.ODT, markdown, metadata, pages=pages)


PROCESSOR = Processor((SourceType.ODT,), extract)
