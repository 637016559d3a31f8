"""Workbooks: each sheet is a heading and its tables."""

from __future__ import annotations

from pathlib import Path

from octavo.extract.contract import Extracted, Quality, SourceType
from octavo.extract.office.package import Package
from octavo.extract.office.result import to_extracted
from octavo.extract.office.sheets import check, convert
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import Archive


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive:
        metadata = Package(archive).metadata()
        check(archive)
    converted = convert(path.read_bytes())
    quality = Quality.PARTIAL if converted.is_cut else Quality.FULL
    return to_extracted(SourceType.XLSX, converted.markdown, metadata, quality=quality, has_title=False)


PROCESSOR = Processor((SourceType.XLSX,), extract)
