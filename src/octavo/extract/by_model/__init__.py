"""Uses a model to read PDF pages that parsers cannot read, and to rewrite extracted text.

Only `read_pages` calls a model, through the `PageReader` protocol.
"""

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
from octavo.extract.by_model.sections import CallLimits, PageRange, estimate_tokens, plan_calls

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
