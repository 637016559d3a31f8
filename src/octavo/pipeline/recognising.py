"""The text of pages that only show it, one by one: each is done once, and people see how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

from octavo.extract.extracted import Extracted
from octavo.extract.paged_file import PagesInSandbox
from octavo.extract.pdf.page_batches import PdfFacts
from octavo.jobs.job_run import Run
from octavo.jobs.worker_state import cancel_tasks
from octavo.pipeline.page_parts import PageParts
from octavo.pipeline.tools import Tools

STAGE = "recognising"


async def recognise_pages(
    run: Run[Tools], parts: PageParts, source: PagesInSandbox, facts: PdfFacts, batches: Sequence[bytes]
) -> Extracted:
    """The document of these batches and of what is recognised on their pages."""
    extracted, unread = await source.assemble(facts, batches)
    if not unread:
        return extracted
    recognised: list[bytes] = []
    await run.progress(0, len(unread), "pages", STAGE)

    async def go_along(numbers: Iterator[int]) -> None:
        for number in numbers:
            recognised.append(await parts.make(STAGE, str(number), partial(source.recognise, number)))
            await run.progress(len(recognised), len(unread), "pages", STAGE)

    numbers = iter(unread)
    await _side_by_side([go_along(numbers) for _ in range(run.tools.recognition.parallel)])
    return (await source.assemble(facts, [*batches, *recognised])).extracted


async def _side_by_side(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Until all are done, or one fails; none goes on alone."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        for task in tasks:
            await task
    finally:
        await cancel_tasks(tasks)
