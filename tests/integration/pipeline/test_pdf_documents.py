"""A PDF becomes text with its pages; a long one is read in batches that are done once."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from octavo.extract.pdf.page_batches import batch_ranges
from octavo.library import changes
from octavo.library.documents import list_chunks
from octavo.sandbox import Sandbox
from tests.support.library import Desk
from tests.support.pdf import Pdf, Picture, Words, paragraph
from tests.support.processes import PATIENCE_SECONDS
from tests.support.working import add, finished, text_of, working

PAGES, BATCH = 23, 5
BATCHES = {"1-5", "6-10", "11-15", "16-20", "21-23"}
PROGRESS = """
    SELECT detail FROM events
    WHERE kind = 'progress' AND process_id IN (SELECT id FROM jobs WHERE kind = 'process_document') ORDER BY id"""


def book(pages: int) -> bytes:
    made = [
        [Words(f"Chapter {n}", top=90, size=18, font="bold"), *paragraph([f"Page {n} has words of its own."], 120)]
        for n in range(1, pages + 1)
    ]
    return Pdf(made).write()


@pytest.fixture
def short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five pages each instead of a hundred, so that a short book is a long one."""
    monkeypatch.setattr("octavo.pipeline.revision_files.batch_ranges", partial(batch_ranges, size=BATCH))


async def parts_of(desk: Desk) -> list[tuple[str, int]]:
    rows = await desk.rows("SELECT part, attempt FROM job_stages WHERE stage = 'reading' ORDER BY finished_at, part")
    return [(row["part"], row["attempt"]) for row in rows]


async def test_a_short_pdf_is_read_in_one_batch_and_every_chunk_has_its_pages(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    document = await add(desk, owner, "book.pdf", book(3))
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    assert (shown.status, shown.quality, shown.source_type, shown.page_count) == ("completed", "full", "pdf", 3)
    assert await parts_of(desk) == []
    async with desk.database.connection() as connection:
        chunks = (await list_chunks(connection, owner, document)).items
    assert (chunks[0].page_from, chunks[-1].page_to) == (1, 3)
    await desk.check_books()


@pytest.mark.usefixtures("short_batches")
async def test_a_long_pdf_is_read_in_batches_and_nothing_of_them_is_left(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    await read_in_batches(desk, owner, sandbox, folder, PAGES, BATCHES)


@pytest.mark.long
async def test_a_pdf_of_230_pages_is_read_in_batches_of_100(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    await read_in_batches(desk, owner, sandbox, folder, 230, {"1-100", "101-200", "201-230"})


async def read_in_batches(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, pages: int, batches: set[str]
) -> None:
    document = await add(desk, owner, "book.pdf", book(pages))
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    assert (shown.status, shown.page_count) == ("completed", pages)
    assert {part for part, _ in await parts_of(desk)} == batches
    told = await desk.rows(PROGRESS)
    assert told[-1]["detail"]["done"] == pages
    kinds = await desk.rows("SELECT kind FROM artifacts ORDER BY kind")
    assert [row["kind"] for row in kinds] == ["extracted", "markdown", "source"]
    text = await text_of(desk, owner, document)
    assert all(f"Page {n} has words" in text for n in range(1, pages + 1))
    await desk.check_books()


@pytest.mark.usefixtures("short_batches")
async def test_a_worker_that_stops_between_batches_costs_no_batch(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    document = await add(desk, owner, "book.pdf", book(PAGES))
    async with working(desk, sandbox, folder):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await parts_of(desk):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    before = await parts_of(desk)
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    assert shown.status == "completed"
    after = await parts_of(desk)
    assert after[: len(before)] == before
    assert {part for part, _ in after} == BATCHES
    text = await text_of(desk, owner, document)
    places = [text.index(f"Page {n} has words") for n in range(1, PAGES + 1)]
    assert places == sorted(places)
    await desk.check_books()


@pytest.mark.usefixtures("short_batches")
async def test_a_long_pdf_is_put_together_again_although_its_batches_are_gone(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    document = await add(desk, owner, "book.pdf", book(PAGES))
    async with working(desk, sandbox, folder):
        await finished(desk, owner, document)
        first = await text_of(desk, owner, document)
        async with desk.database.transaction() as connection:
            await changes.retry_document(connection, owner, document, "extracted")
        shown = await finished(desk, owner, document)
    assert (shown.status, shown.revision) == ("completed", 2)
    assert await text_of(desk, owner, document) == first
    await desk.check_books()


async def test_pages_without_text_are_counted(desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path) -> None:
    body = Pdf([[*paragraph(["Words on the first page."], 120)], [Picture()]]).write()
    document = await add(desk, owner, "scan.pdf", body)
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    assert (shown.quality, shown.metadata["pages_with_text"], shown.page_count) == ("partial", 1, 2)


async def test_a_locked_pdf_fails_with_its_own_code(desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path) -> None:
    document = await add(desk, owner, "locked.pdf", Pdf([[*paragraph(["Secret."], 120)]]).write("password"))
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    assert shown.error is not None
    assert (shown.status, shown.error.code) == ("failed", "ENCRYPTED")
    await desk.check_books()
