"""Documents of Word and of whatever else writes DOCX."""

from __future__ import annotations

from pathlib import Path

from octavo.extract.contract import Extracted, SourceType
from octavo.extract.docx import convert
from octavo.extract.office.package import Package
from octavo.extract.office.result import pages_at, take_marks, to_extracted
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import Archive, deep_is_damaged


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive, deep_is_damaged():
        package = Package(archive)
        markdown, breaks = take_marks(convert(package))
        metadata = package.metadata()
    pages = pages_at(breaks, len(markdown)) if breaks else ()
    return to_extracted(SourceType.DOCX, markdown, metadata, pages=pages)


PROCESSOR = Processor((SourceType.DOCX,), extract)
