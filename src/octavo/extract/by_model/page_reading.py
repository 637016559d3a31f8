"""Reads all pages of a document with a model, call by call, and joins the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from octavo.extract.by_model.page_calls import CallLimits, PageRange, find_page_markers, halve_call, plan_calls
from octavo.extract.by_model.seams import PageAnswer, Seam, stitch


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer to one call. `whole` is false if the model stopped at its output limit."""

    markdown: str
    whole: bool = True


class PageReader(Protocol):
    """A model that reads pages. It writes a marker line before each page."""

    async def read(self, pages: PageRange) -> Answer: ...


@dataclass(frozen=True, slots=True)
class PagesText:
    """The text of all pages. `missing` lists the pages without a marker: the model skipped them, or they are blank."""

    markdown: str
    seams: tuple[Seam | None, ...]
    missing: tuple[int, ...]


async def read_pages(reader: PageReader, tokens: Sequence[int], limits: CallLimits | None = None) -> PagesText:
    """Read all pages. `tokens` contains the estimated output tokens of each page.

    Raises `TokenLimit` if a single page is too long for a call.
    """
    limits = limits or CallLimits()
    answers: list[PageAnswer] = []
    pending = plan_calls(tokens, limits)[::-1]
    while pending:
        pages = pending.pop()
        answer = await reader.read(pages)
        if not answer.whole:
            pending += halve_call(pages, limits)[::-1]
            continue
        answers.append(PageAnswer(pages, answer.markdown))
    joined = stitch(answers)
    marked = find_page_markers(joined.markdown)
    missing = tuple(number for number in range(1, len(tokens) + 1) if number not in marked)
    return PagesText(joined.markdown, joined.seams, missing)
