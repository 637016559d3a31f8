"""A document that came in becomes text that can be read and cited, with a real worker and the real sandbox."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from octavo.library import changes
from octavo.library.documents import list_chunks
from octavo.sandbox import Sandbox
from tests.support.library import Desk
from tests.support.working import add, finished, text_of, working

STAGES = """
    SELECT stage FROM job_stages
    WHERE job_id IN (SELECT id FROM jobs WHERE kind = 'process_document') ORDER BY finished_at"""
MARKDOWN = "# Alpha\n\nThe quick brown fox — naïve, 東京.\n\n## Beta\n\n" + "Größere Wörter for the body, ça va. " * 80


async def test_markdown_is_kept_as_it_is_and_cut_into_chunks(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    document = await add(desk, owner, "alpha.md", MARKDOWN.encode())
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    assert (shown.status, shown.quality, shown.text_ready, shown.revision) == ("completed", "full", True, 1)
    assert shown.source_type == "markdown"
    assert shown.word_count
    text = await text_of(desk, owner, document)
    assert text == MARKDOWN
    async with desk.database.connection() as connection:
        chunks = (await list_chunks(connection, owner, document)).items
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert len(chunks) > 1
    assert all(text[chunk.start : chunk.end] == chunk.content for chunk in chunks)
    assert "".join("".join(chunk.content.split()) for chunk in chunks) == "".join(text.split())
    stages = [row["stage"] for row in await desk.rows(STAGES)]
    assert stages == ["extracted", "markdown_saved", "chunked", "facts_found", "classified", "enriched", "embedded"]
    await desk.check_books()


async def test_a_type_that_is_not_read_is_kept(desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path) -> None:
    document = await add(desk, owner, "data.bin", bytes(range(256)) * 10)
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
        async with desk.database.transaction() as connection:
            again = await changes.retry_document(connection, owner, document, None)
    assert (shown.status, shown.quality, shown.text_ready, shown.error) == ("completed", "stored_only", False, None)
    assert again.state == "skipped"
    await desk.check_books()


async def test_processing_again_replaces_the_earlier_revision(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    """From each stage in turn, also from an earlier stage than the revision before began with."""
    document = await add(desk, owner, "alpha.md", MARKDOWN.encode())
    async with working(desk, sandbox, folder):
        await finished(desk, owner, document)
        for revision, from_stage in enumerate((None, "chunked", "markdown_saved", "extracted"), start=2):
            before = await desk.rows("SELECT id FROM chunks")
            async with desk.database.transaction() as connection:
                await changes.retry_document(connection, owner, document, from_stage)
            shown = await finished(desk, owner, document)
            assert (shown.status, shown.revision) == ("completed", revision), from_stage
            assert await text_of(desk, owner, document) == MARKDOWN
            after = await desk.rows("SELECT id FROM chunks WHERE revision = %s", revision)
            assert len(after) == len(before)
            assert await desk.one("SELECT count(*) FROM chunks") == len(after)
            kept = await desk.rows("SELECT kind FROM artifacts WHERE revision = %s", revision - 1)
            assert [row["kind"] for row in kept] == ["markdown"], from_stage  # to see what changed
            await desk.check_books()


async def test_a_duplicate_is_complete_immediately_with_all_results(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    first = await add(desk, owner, "alpha.md", MARKDOWN.encode())
    async with working(desk, sandbox, folder):
        await finished(desk, owner, first)
    twin = await add(desk, owner, "beta.md", MARKDOWN.encode(), duplicates="new")
    shown = await finished(desk, owner, twin)
    assert (shown.status, shown.duplicate_of, shown.quality, shown.text_ready) == ("completed", first, "full", True)
    assert await text_of(desk, owner, twin) == MARKDOWN
    async with desk.database.transaction() as connection:
        mine = (await list_chunks(connection, owner, twin)).items
        theirs = (await list_chunks(connection, owner, first)).items
        assert [(one.content, one.start) for one in mine] == [(one.content, one.start) for one in theirs]
        unused = await changes.purge_documents(connection, owner, [first])
    await desk.bucket.delete(unused)
    assert await text_of(desk, owner, twin) == MARKDOWN
    assert await text_of(desk, owner, twin, "source") == MARKDOWN
    await desk.check_books()


async def test_text_of_nothing_is_said_to_be_empty(desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path) -> None:
    document = await add(desk, owner, "blank.txt", b" \n\n \t ")
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    assert (shown.status, shown.text_ready) == ("failed", False)
    assert shown.error
    assert shown.error.code == "EMPTY"
    await desk.check_books()


async def test_a_source_that_was_changed_is_not_read_and_can_be_replaced(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    document = await add(desk, owner, "alpha.md", MARKDOWN.encode())
    (info,) = [info async for info in desk.bucket.list()]
    await desk.bucket.delete([info.key])
    await desk.bucket.put(info.key, MARKDOWN.replace("quick", "quack").encode())
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
        assert shown.error
        assert (shown.status, shown.error.code, shown.text_ready) == ("failed", "FILE_DAMAGED", False)
        assert await add(desk, owner, "alpha.md", MARKDOWN.encode()) == document
        async with desk.database.transaction() as connection:
            await changes.retry_document(connection, owner, document, None)
        shown = await finished(desk, owner, document)
    assert shown.status == "completed"
    assert await text_of(desk, owner, document) == MARKDOWN
    await desk.check_books()
