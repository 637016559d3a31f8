"""A picture to the text on it, all sheets in one process; what is not text is not described here."""

from __future__ import annotations

from pathlib import Path

from octavo.extract.contract import Extracted, SourceType
from octavo.extract.registry import Hints, Processor


def extract(path: Path, _hints: Hints) -> Extracted:
    # Imported late: only the sandbox needs the libraries.
    from octavo.extract.pdf import reader as pdf
    from octavo.extract.pictures.sheets import open_sheets, read_sheet

    facts = open_sheets(path)
    sheets = (pdf.Batch((read_sheet(path, number),)) for number in range(1, facts.page_count + 1))
    return pdf.assemble(facts, sheets, SourceType.IMAGE)


PROCESSOR = Processor((SourceType.IMAGE,), extract)
