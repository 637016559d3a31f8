"""PDFs to text, in three steps that can be taken apart.

`open_pdf` reads what the file says of itself, `read_batch` reads some of its pages (as often as there are batches, and
a killed job goes on with the next one), and `assemble` makes one document of them. Records are in `pages`, as JSON too.
"""

from octavo.extract.pdf.assemble import assemble
from octavo.extract.pdf.facts import open_pdf
from octavo.extract.pdf.pages import Batch, Bookmark, PageBlock, PageText, PdfFacts
from octavo.extract.pdf.ranges import BATCH_PAGES, batch_ranges, unreadable
from octavo.extract.pdf.read import read_batch

__all__ = [
    "BATCH_PAGES",
    "Batch",
    "Bookmark",
    "PageBlock",
    "PageText",
    "PdfFacts",
    "assemble",
    "batch_ranges",
    "open_pdf",
    "read_batch",
    "unreadable",
]
