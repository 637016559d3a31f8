"""Text written by a model, which reads PDF pages that parsers cannot read and rewrites extracted text.

Pure except for `page_reading.py`, which calls a model through the `PageReader` protocol.
"""

from octavo.extract.by_model.page_calls import (
    Answer,
    CallLimits,
    PageRange,
    PageReader,
    PagesText,
    estimate_tokens,
    plan_calls,
    read_pages,
)
from octavo.extract.by_model.seams import PageAnswer, Seam, StitchedText, find_seam, stitch

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
