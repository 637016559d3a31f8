"""A PDF step by step: what it says of itself, its pages in batches, the text that some only show, and the whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar

from octavo.core.json import JSON
from octavo.extract.contract import Extracted, SourceType
from octavo.extract.paged import OnProgress, PagesInSandbox
from octavo.extract.pdf.pages import PdfFacts, batch_to_json, facts_from_json
from octavo.extract.pdf.ranges import batch_ranges, unreadable
from octavo.sandbox import ENDED, Limits, OutOfTime, Progress

_MOST_COST = 16  # for which two pages among a hundred are found
_COST_OF_TIME = 4  # of a page that takes all the time it may
# PDFium alone is ten times as fast, so that a page on which everything hangs does not take all the time twice.
_PLAIN_SHARE = 3


@dataclass(frozen=True, slots=True)
class PdfInSandbox(PagesInSandbox):
    """One PDF and what it takes to read it."""

    source_type: ClassVar[SourceType] = SourceType.PDF

    async def open(self) -> PdfFacts:
        return facts_from_json((await self.run("octavo.extract.pdf.run:run_open", {}, 1)).output)

    async def read(self, first: int, last: int) -> bytes:
        """These pages, whatever they do: a page that ends its process is found and left out, the others are read."""
        return await _Isolation(self).read(first, last)

    async def read_once(self, first: int, last: int, *, layout: bool) -> bytes:
        """These pages, or the error of the process that read them."""
        arguments: dict[str, JSON] = {"first": first, "last": last, "layout": layout}
        reader = self if layout else replace(self, limits=_in_a_hurry(self.limits))
        return (await reader.run("octavo.extract.pdf.run:run_read", arguments, last - first + 1)).output

    async def copy(self, first: int, last: int) -> bytes:
        """A PDF of these pages alone."""
        arguments: dict[str, JSON] = {"first": first, "last": last}
        return (await self.run("octavo.extract.pdf.run:run_copy", arguments, last - first + 1)).output

    async def extract(self, on_progress: OnProgress | None = None) -> Extracted:
        """All steps, one after the other."""
        facts = await self.open()
        batches: list[bytes] = []
        for first, last in batch_ranges(facts.page_count):
            batches.append(await self.read(first, last))
            if on_progress:
                on_progress(Progress(last, facts.page_count, "pages"))
        return await self.recognise_all(facts, batches, on_progress)


def _in_a_hurry(limits: Limits) -> Limits:
    cpu_seconds, wall_seconds = ceil(limits.cpu_seconds / _PLAIN_SHARE), limits.wall_seconds / _PLAIN_SHARE
    return replace(limits, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)


class _Isolation:
    """Finds the pages of a batch that cannot be read, by halves. When there are many, the rest goes without layout."""

    def __init__(self, pdf: PdfInSandbox) -> None:
        self._pdf = pdf
        self._cost = 0

    async def read(self, first: int, last: int, *, layout: bool = True) -> bytes:
        layout = layout and self._cost <= _MOST_COST
        try:
            return await self._pdf.read_once(first, last, layout=layout)
        except ENDED as error:
            self._cost += _COST_OF_TIME if isinstance(error, OutOfTime) else 1
            reason = error.title
        if first == last and layout:
            return await self.read(first, last, layout=False)
        if first == last or self._cost > 2 * _MOST_COST:
            return batch_to_json(unreadable(first, last, reason)) + b"\n"
        middle = (first + last) // 2
        return await self.read(first, middle, layout=layout) + await self.read(middle + 1, last, layout=layout)
