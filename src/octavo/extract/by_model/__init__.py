"""Text written by a model, which reads PDF pages that parsers cannot read and rewrites extracted text.

Pure except for `read_pages`, which calls a model through the `PageReader` protocol.
"""

from octavo.extract.by_model.page_calls import CallLimits, PageRange, estimate_tokens, plan_calls
from octavo.extract.by_model.seams import (
    Answer,
    PageAnswer,
    PageReader,
    PagesText,
    Seam,
    StitchedText,
    find_seam,
    read_pages,
    stitch,
)

__all__ = [
    "Answer",
    "CallLimits",
    "PageAnswer",
    "PageRange",
    "PageReader",
    "PagesText",
    "Seam",
    "StitchedText",
    "estimate_tokens",
    "find_seam",
    "plan_calls",
    "read_pages",
    "stitch",
]
