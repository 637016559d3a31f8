"""Pages that a model reads, where a PDF is too hard for a parser: which go into one call, and one text of the answers.

Pure but for `reading.py`, which asks; the model itself is somebody else's, behind `PageReader`.
"""

from octavo.extract.by_model.page_calls import CallLimits, PageRange, estimate_tokens, plan_calls
from octavo.extract.by_model.page_reading import Answer, PageReader, Reading, read_pages
from octavo.extract.by_model.seams import Part, Seam, Stitched, find_seam, stitch

__all__ = [
    "Answer",
    "CallLimits",
    "PageRange",
    "PageReader",
    "Part",
    "Reading",
    "Seam",
    "Stitched",
    "estimate_tokens",
    "find_seam",
    "plan_calls",
    "read_pages",
    "stitch",
]
