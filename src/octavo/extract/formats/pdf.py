"""PDF to Markdown, all pages in one process. Large files are better read in batches, each in a process of its own."""

from __future__ import annotations

from pathlib import Path

from octavo.extract.contract import Extracted, SourceType
from octavo.extract.registry import Hints, Processor


def extract(path: Path, hints: Hints) -> Extracted:
    # Imported late: only the sandbox needs the libraries, and its warm parent has them already.
    from octavo.extract.pdf import reader as pdf

    password = hints.password or None
    facts = pdf.open_pdf(path, password)
    ranges = pdf.batch_ranges(facts.page_count)
    return pdf.assemble(facts, (pdf.read_batch(path, *pages, password) for pages in ranges))


PROCESSOR = Processor((SourceType.PDF,), extract)
