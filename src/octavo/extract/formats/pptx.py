"""Presentations: each slide is a page."""

from __future__ import annotations

from pathlib import Path

from octavo.extract.contract import Extracted, SourceType
from octavo.extract.office.package import Package
from octavo.extract.office.result import joined, take_marks, to_extracted
from octavo.extract.office.slides import convert_slides
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import Archive, deep_is_damaged


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive, deep_is_damaged():
        package = Package(archive)
        slides = [take_marks(slide)[0] for slide in convert_slides(package)]
        metadata = package.metadata()
    markdown, pages = joined(slides)
    return to_extracted(SourceType.PPTX, markdown, metadata, pages=pages)


PROCESSOR = Processor((SourceType.PPTX,), extract)
