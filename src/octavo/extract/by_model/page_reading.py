"""Asks a model for all pages of a document, call by call, and makes one text of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from octavo.extract.by_model.page_calls import CallLimits, PageRange, find_marks, halve_call, plan_calls
from octavo.extract.by_model.seams import Part, Seam, stitch


@dataclass(frozen=True, slots=True)
class Answer:
    """`whole` is false where the model stopped because it may not write more."""

    markdown: str
    whole: bool = True


class PageReader(Protocol):
    """A model that is shown pages. It is asked to write the page's `mark` on a line before each."""

    async def read(self, pages: PageRange) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """`missing` are the pages that the model did not mark: it left them out, or they are blank."""

    markdown: str
    seams: tuple[Seam | None, ...]
    missing: tuple[int, ...]


async def read_pages(reader: PageReader, tokens: Sequence[int], limits: CallLimits | None = None) -> Reading:
    """All pages; `tokens` has an estimate for each. Raises `TokenLimit` for a page that no answer can hold."""
    limits = limits or CallLimits()
    parts: list[Part] = []
    waiting = plan_calls(tokens, limits)[::-1]
    while waiting:
        pages = waiting.pop()
        answer = await reader.read(pages)
        if not answer.whole:
            waiting += halve_call(pages, limits)[::-1]
            continue
        parts.append(Part(pages, answer.markdown))
    joined = stitch(parts)
    marked = find_marks(joined.markdown)
    missing = tuple(number for number in range(1, len(tokens) + 1) if number not in marked)
    return Reading(joined.markdown, joined.seams, missing)
