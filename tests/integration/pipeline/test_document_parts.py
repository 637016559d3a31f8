"""Files in archives and attachments of emails become documents, once each, and know where they come from."""

from __future__ import annotations

import io
import tarfile
from email.message import EmailMessage
from pathlib import Path
from uuid import UUID

import pytest

from octavo.library import changes
from octavo.library.documents import list_parts, show_document
from octavo.records.documents import Document
from octavo.sandbox import Sandbox
from tests.support.library import Desk
from tests.support.office import archive
from tests.support.processing import OpenSandbox
from tests.support.working import add, finished, working

NOTE = b"# Note\n\nWords about the garden wall."
FILES = {"docs/note.md": NOTE, "data.csv": b"name,age\nAnn,5\nBob,7\n", "empty.txt": b""}
COUNT = "SELECT count(*) FROM documents"


@pytest.fixture
def sandbox() -> OpenSandbox:
    """The files are the test's own."""
    return OpenSandbox()


async def parts_of(desk: Desk, owner: UUID, document: UUID) -> list[Document]:
    async with desk.database.connection() as connection:
        return (await list_parts(connection, owner, document)).items


async def parts_done(desk: Desk, owner: UUID, document: UUID) -> list[Document]:
    """The parts of a document, when they are all finished."""
    parent = await finished(desk, owner, document)
    assert parent.status == "completed"
    return [await finished(desk, owner, part.id) for part in await parts_of(desk, owner, document)]


async def test_files_of_an_archive_are_documents(desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path) -> None:
    document = await add(desk, owner, "all.zip", archive(FILES))
    async with working(desk, sandbox, folder):
        parts = await parts_done(desk, owner, document)
    assert [(part.filename, part.part_name, part.parent_id, part.source_type) for part in parts] == [
        ("note.md", "docs/note.md", document, "markdown"),
        ("data.csv", "data.csv", document, "csv"),
    ]
    assert all(part.text_ready and part.quality == "full" for part in parts)
    shown = await finished(desk, owner, document)
    assert (shown.quality, shown.source_type, shown.parent_id) == ("full", "archive", None)
    priorities = await desk.rows("SELECT DISTINCT priority FROM jobs WHERE kind = 'process_document' ORDER BY 1")
    assert [row["priority"] for row in priorities] == [5, 18]  # in the lanes of persons and of imports
    await desk.check_books()


async def test_attachments_are_documents(desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path) -> None:
    message = EmailMessage()
    message["Subject"], message["From"], message["Message-ID"] = "Plans", "ann@example.org", "<a@b>"
    message.set_content("See the attached note.")
    message.add_attachment(NOTE, maintype="text", subtype="markdown", filename="note.md")
    document = await add(desk, owner, "mail.eml", message.as_bytes())
    async with working(desk, sandbox, folder):
        parts = await parts_done(desk, owner, document)
    assert [part.filename for part in parts] == ["note.md"]
    await desk.check_books()


async def test_processing_again_adds_nothing_twice(desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path) -> None:
    document = await add(desk, owner, "all.zip", archive(FILES))
    async with working(desk, sandbox, folder):
        first = await parts_done(desk, owner, document)
        async with desk.database.transaction() as connection:
            await changes.retry_document(connection, owner, document, None)
        again = await parts_done(desk, owner, document)
    assert [part.id for part in again] == [part.id for part in first]
    assert await desk.one(COUNT) == 3
    await desk.check_books()


async def test_a_file_that_exists_is_only_related(desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path) -> None:
    existing = await add(desk, owner, "mine.md", NOTE)
    document = await add(desk, owner, "all.zip", archive({"note.md": NOTE}))
    async with working(desk, sandbox, folder):
        parts = await parts_done(desk, owner, document)
    assert [(part.id, part.filename, part.also_named) for part in parts] == [(existing, "mine.md", ["note.md"])]
    await desk.check_books()


async def test_archives_in_archives_are_unpacked_two_levels_deep(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    third = archive({"deep.md": NOTE})
    document = await add(desk, owner, "1.zip", archive({"2.zip": archive({"3.zip": third})}))
    async with working(desk, sandbox, folder):
        (second,) = await parts_done(desk, owner, document)
        (inner,) = await parts_done(desk, owner, second.id)
        assert await parts_done(desk, owner, inner.id) == []
        async with desk.database.connection() as connection:
            shown = await show_document(connection, owner, inner.id)
    assert "two levels" in shown.metadata["parts_left_out"]
    assert await desk.one(COUNT) == 3
    await desk.check_books()


async def test_deleting_an_archive_keeps_its_files(desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path) -> None:
    document = await add(desk, owner, "all.zip", archive({"note.md": NOTE}))
    async with working(desk, sandbox, folder):
        (part,) = await parts_done(desk, owner, document)
    async with desk.database.transaction() as connection:
        await changes.trash_documents(connection, owner, [document])
        assert (await show_document(connection, owner, part.id)).parent_id is None
        await changes.restore_documents(connection, owner, [document])
        assert (await show_document(connection, owner, part.id)).parent_id == document
    async with desk.database.transaction() as connection:
        unused = await changes.purge_documents(connection, owner, [document])
        assert (await show_document(connection, owner, part.id)).parent_id is None
    await desk.bucket.delete(unused)
    await desk.check_books()


async def test_a_part_in_the_trash_is_not_listed(desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path) -> None:
    document = await add(desk, owner, "all.zip", archive(FILES))
    async with working(desk, sandbox, folder):
        first, second = await parts_done(desk, owner, document)
    async with desk.database.transaction() as connection:
        await changes.trash_documents(connection, owner, [first.id])
    assert [part.id for part in await parts_of(desk, owner, document)] == [second.id]


@pytest.mark.parametrize("most", [0, 1])
async def test_the_number_of_parts_is_limited(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, most: int
) -> None:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w:gz") as file:
        for number in range(3):
            info = tarfile.TarInfo(f"{number}.md")
            content = f"Words of number {number}.".encode()
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    document = await add(desk, owner, "all.tgz", memory.getvalue())
    async with working(desk, sandbox, folder, parts_most=most):
        parts = await parts_done(desk, owner, document)
    assert len(parts) == most
    async with desk.database.connection() as connection:
        shown = await show_document(connection, owner, document)
    assert shown.metadata["parts_left_out"].startswith(f"{3 - most} files left out")
