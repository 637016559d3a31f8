"""A PDF step by step, each step in a sandbox of its own, so that memory is bounded and a killed job can go on.

Batches stay bytes here: one JSON list of pages on a line. They can be kept anywhere, and put together in any number.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from octavo.extract.contract import Extracted, from_json
from octavo.extract.pdf.pages import PdfFacts, batch_to_json, facts_from_json, facts_to_json
from octavo.extract.pdf.ranges import batch_ranges, unreadable
from octavo.model.json import JSON
from octavo.sandbox import ChildCrashed, Limits, OutOfTime, OutputTooLarge, Progress, Sandbox, TaskFailed

# What a page can do to the process that reads it. Other errors are about the file, and end everything.
_ENDED = (ChildCrashed, OutOfTime, OutputTooLarge, TaskFailed)
_MOST_COST = 16  # for which two pages among a hundred are found
_COST_OF_TIME = 4  # of a page that takes all the time it may
_SECONDS_A_PAGE = 1


@dataclass(frozen=True, slots=True)
class PdfInSandbox:
    """One file and what it takes to read it."""

    sandbox: Sandbox
    path: Path
    password: str | None = field(default=None, repr=False)
    limits: Limits = field(default_factory=Limits)

    async def open(self) -> PdfFacts:
        return facts_from_json(await self._run("run_open", {}, 1))

    async def read(self, first: int, last: int) -> bytes:
        """These pages, whatever they do: a page that ends its process is found and left out, the others are read."""
        return await _Isolation(self).read(first, last)

    async def read_once(self, first: int, last: int, *, layout: bool) -> bytes:
        """These pages, or the error of the process that read them."""
        arguments: dict[str, JSON] = {"first": first, "last": last, "layout": layout}
        return await self._run("run_read", arguments, last - first + 1)

    async def extract(self, on_progress: Callable[[Progress], None] | None = None) -> Extracted:
        """All steps, one after the other."""
        facts = await self.open()
        batches: list[bytes] = []
        for first, last in batch_ranges(facts.page_count):
            batches.append(await self.read(first, last))
            if on_progress:
                on_progress(Progress(last, facts.page_count, "pages"))
        return await self.assemble(facts, batches)

    async def assemble(self, facts: PdfFacts, batches: Iterable[bytes]) -> Extracted:
        with tempfile.TemporaryFile() as document:
            document.write(facts_to_json(facts) + b"\n")
            document.writelines(batches)
            document.flush()
            made = await self._run("run_assemble", {}, facts.page_count, document.fileno())
        return await asyncio.to_thread(from_json, made)

    async def _run(self, function: str, arguments: Mapping[str, JSON], pages: int, given: int | None = None) -> bytes:
        seconds = pages * _SECONDS_A_PAGE
        limits = replace(
            self.limits,
            cpu_seconds=self.limits.cpu_seconds + seconds,
            wall_seconds=self.limits.wall_seconds + 2 * seconds,
        )
        with tempfile.TemporaryFile() as output:
            await self.sandbox.run(
                f"octavo.extract.pdf.run:{function}",
                {"password": self.password, **arguments},
                input_file=self.path if given is None else given,
                output_file=output,
                limits=limits,
            )
            return output.read()


class _Isolation:
    """Finds the pages of a batch that cannot be read, by halves. When there are many, the rest goes without layout."""

    def __init__(self, pdf: PdfInSandbox) -> None:
        self._pdf = pdf
        self._cost = 0

    async def read(self, first: int, last: int, *, layout: bool = True) -> bytes:
        layout = layout and self._cost <= _MOST_COST
        try:
            return await self._pdf.read_once(first, last, layout=layout)
        except _ENDED as error:
            self._cost += _COST_OF_TIME if isinstance(error, OutOfTime) else 1
            reason = error.title
        if first == last and layout:
            return await self.read(first, last, layout=False)
        if first == last or self._cost > 2 * _MOST_COST:
            return batch_to_json(unreadable(first, last, reason)) + b"\n"
        middle = (first + last) // 2
        return await self.read(first, middle, layout=layout) + await self.read(middle + 1, last, layout=layout)
