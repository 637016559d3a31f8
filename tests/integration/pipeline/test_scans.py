"""Scans and pictures become text that can be read and cited, page by page, and what cannot be decoded is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest
from PIL import Image

from octavo.extract.ocr.recognition import Recognition
from octavo.jobs.worker_state import WorkerLimits
from octavo.library import changes
from octavo.library.documents import list_chunks
from octavo.library.files import find_file
from octavo.sandbox import Sandbox
from tests.support.library import Desk, sweep_objects
from tests.support.pdf import Words
from tests.support.processes import PATIENCE_SECONDS
from tests.support.scans import lines, saved, scanned_pdf, sheet
from tests.support.working import add, finished, text_of, working


async def parts_of(desk: Desk) -> list[tuple[str, int]]:
    rows = await desk.rows("SELECT part, attempt FROM job_stages WHERE stage = 'recognising' ORDER BY part")
    return [(row["part"], row["attempt"]) for row in rows]


async def test_a_scan_is_recognised_page_by_page_and_goes_on_where_it_was_stopped(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    blank = Image.new("RGB", (918, 240), "white")
    title = Words("Wetlands", top=60, size=24)
    first = sheet([title, *lines(["Water stays in the moss."], top=110)], folder, height=160)
    second = sheet(lines(["The second sheet has words too."], top=80), folder, height=160)
    document = await add(desk, owner, "scan.pdf", scanned_pdf([first, blank, second]))
    async with working(desk, sandbox, folder):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await parts_of(desk):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    before = await parts_of(desk)
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    after = await parts_of(desk)
    assert [part for part, _ in after] == ["1", "2", "3"]
    assert after[: len(before)] == before
    assert (shown.status, shown.quality, shown.page_count) == ("completed", "ocr", 3)
    assert await text_of(desk, owner, document) == (
        "# Wetlands\n\nWater stays in the moss.\n\nThe second sheet has words too."
    )
    async with desk.database.connection() as connection:
        chunks = (await list_chunks(connection, owner, document)).items
    assert (chunks[0].page_from, chunks[-1].page_to) == (1, 3)
    recognised = "SELECT detail FROM events WHERE kind = 'progress' AND detail ->> 'stage' = 'recognising' ORDER BY id"
    told = await desk.rows(recognised)
    assert (told[-1]["detail"]["done"], told[-1]["detail"]["total"]) == (3, 3)
    # A stop between storing a file and committing its row leaves the file to the daily clean-up.
    await sweep_objects(desk.database, desk.bucket, 0)
    await desk.check_books()


async def test_a_picture_becomes_text_and_keeps_a_copy_for_screens(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    note = sheet(lines(["Milk, bread and apples"], top=60), folder, height=120)
    document = await add(desk, owner, "note.png", saved(note, "PNG"))
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    assert (shown.status, shown.quality, shown.source_type, shown.page_count) == ("completed", "ocr", "image", 1)
    assert await text_of(desk, owner, document) == "Milk, bread and apples"
    async with desk.database.connection() as connection:
        copy = await find_file(connection, owner, document, "image_jpeg")
    assert (copy.content_type, (await desk.bucket.read(copy.key))[:3]) == ("image/jpeg", b"\xff\xd8\xff")
    await desk.check_books()


async def test_a_picture_without_text_is_complete_and_says_so(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    document = await add(desk, owner, "sky.png", saved(Image.new("RGB", (200, 100), "skyblue"), "PNG"))
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    assert (shown.status, shown.quality, shown.text_ready) == ("completed", "empty", True)
    assert await text_of(desk, owner, document) == ""
    await desk.check_books()


async def test_a_picture_that_cannot_be_decoded_is_kept_and_can_be_tried_again(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    whole = saved(Image.effect_noise((200, 200), 50), "PNG")
    document = await add(desk, owner, "torn.png", whole[: len(whole) // 2])
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
        async with desk.database.transaction() as connection:
            again = await changes.retry_document(connection, owner, document, None)
        assert again.state == "pending"
        shown_again = await finished(desk, owner, document)
    for one in (shown, shown_again):
        assert (one.status, one.quality, one.title, one.error) == ("completed", "empty", "torn.png", None)
        assert one.metadata["unreadable"] == "The picture is damaged: it cannot be decoded."
    kinds = await desk.rows("SELECT DISTINCT kind FROM artifacts ORDER BY kind")
    assert [row["kind"] for row in kinds] == ["extracted", "markdown", "source"]
    await desk.check_books()


async def test_beside_ten_long_scans_another_document_still_finishes(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enough = asyncio.Event()

    async def take_long(*_: object) -> bytes:
        await enough.wait()
        return b""

    monkeypatch.setattr(Recognition, "page", take_long)
    for number in range(WorkerLimits().slots):
        scan = sheet(lines([f"Sheet {number}."], top=40), folder, height=80)
        await add(desk, owner, f"scan-{number}.png", saved(scan, "PNG"))
    recognising = "SELECT DISTINCT document_id FROM events WHERE detail ->> 'stage' = 'recognising'"
    async with working(desk, sandbox, folder):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(await desk.rows(recognising)) < WorkerLimits().slots:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        note = await add(desk, owner, "note.md", b"# Ferry\n\nIt leaves at noon.\n")
        shown = await finished(desk, owner, note)
        enough.set()
    assert (shown.status, shown.quality) == ("completed", "full")
