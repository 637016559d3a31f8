"""Files that are read and loaded in bulk become the same documents as files that are uploaded."""

from __future__ import annotations

import errno
import io
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import pytest

from octavo.ai.gateway_setup import open_local_gateway
from octavo.bulk.file_results import BulkTools, FileRow, read_files
from octavo.bulk.loading import Loaded, Loader, find_owner
from octavo.bulk.manifest import FolderFiles, PlannedFile, list_plan, source_key
from octavo.core.errors import BadInput, DatabaseUnavailable, NotFound
from octavo.core.settings import Settings
from octavo.core.types import new_id
from octavo.database import Connection
from octavo.extract.file_reader import FileReader
from octavo.intake.errors import QuotaExceeded
from octavo.sandbox import Sandbox
from octavo.search import find
from octavo.storage import Bucket, open_bucket
from octavo.storage.writing import StorageUnavailable
from tests.support.library import LIMITS, Desk
from tests.support.working import add, finished, working

NOTE = "# Log of the whimbrel\n\nThe boat left berth nine at dawn.\n\n## Cargo\n\n" + "Crates of nails and tar. " * 200
LETTER = "<html><head><title>On tar</title></head><body><h1>On tar</h1><p>Ada Lovelace wrote of tar.</p></body></html>"
TABLE = "name,berth\nwhimbrel,9\nplover,4\n"
FILES = {"log.md": NOTE.encode(), "letters/tar.html": LETTER.encode(), "berths.csv": TABLE.encode()}

# All results of a document, without ids and times.
DOCUMENTS = """
    SELECT d.filename, d.status, d.title, d.source_type, d.content_type, encode(d.sha256, 'hex') AS sha256, d.bytes,
           d.quality, d.revision, d.last_revision, d.text_ready, d.embeddings_ready, d.needs_classification,
           d.page_count, d.word_count, d.author, d.language, d.document_date, d.summary, d.metadata, d.described_by,
           d.kind, d.version, d.embedding_model_id IS NOT NULL AS has_model,
           ARRAY(SELECT t.name FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
                 WHERE dt.document_id = d.id ORDER BY 1) AS tags
    FROM documents d WHERE d.owner_id = %s ORDER BY d.filename"""
CHUNKS = """
    SELECT d.filename, c.index, c.content, c.char_start, c.char_end, c.page_from, c.heading_path, c.word_count,
           c.themes, c.tone, c.importance, c.summary, c.made_by, c.boxes, e.vector::text AS vector,
           ts_delete(w.words, owner_mark(d.owner_id))::text AS words,
           ARRAY(SELECT (k.concept, k.importance)::text FROM chunk_concepts k
                 WHERE k.chunk_id = c.id ORDER BY 1) AS concepts
    FROM chunks c JOIN documents d ON d.id = c.document_id JOIN chunk_embeddings e ON e.chunk_id = c.id
    JOIN chunk_words w ON w.chunk_id = c.id
    WHERE d.owner_id = %s ORDER BY d.filename, c.index"""
FACTS = """
    SELECT d.filename, f.name, f.number, f.value, f.normalized, f.page, f.quote, f.confidence, f.source, f.status,
           f.made_by
    FROM facts f JOIN documents d ON d.id = f.document_id WHERE d.owner_id = %s ORDER BY 1, 2, 3"""
ARTIFACTS = """
    SELECT d.filename, a.kind, a.revision, a.content_type, encode(o.sha256, 'hex') AS sha256
    FROM artifacts a JOIN documents d ON d.id = a.document_id JOIN objects o ON o.key = a.key
    WHERE d.owner_id = %s ORDER BY 1, 2"""


@pytest.fixture
async def out(folder: Path) -> AsyncIterator[Bucket]:
    async with aclosing(open_bucket((folder / "out").as_uri())) as bucket:
        yield bucket


def write(folder: Path, files: dict[str, bytes]) -> FolderFiles:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return FolderFiles(folder)


async def read(folder: Path, out: Bucket, sandbox: Sandbox, files: dict[str, bytes]) -> list[FileRow]:
    source = write(folder / "in", files)
    settings = Settings(data_dir=folder, upload_bytes=1 << 20)
    return await read_files(BulkTools(settings, source, out, FileReader(sandbox)), list(source.list()))


def loader(desk: Desk, out: Bucket, owner: UUID, **limits: Any) -> Loader:  # noqa: ANN401
    return Loader(desk.database, desk.bucket, out, owner, replace(LIMITS, **limits), new_id())


async def test_a_loaded_document_has_all_results_of_an_uploaded_one(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, out: Bucket
) -> None:
    uploader = await desk.new_owner()
    async with working(desk, sandbox, folder):
        for name, content in FILES.items():
            kind = "text/html" if name.endswith("html") else "text/csv" if name.endswith("csv") else "text/markdown"
            await finished(desk, uploader, await add(desk, uploader, Path(name).name, content, content_type=kind))
    loaded = await loader(desk, out, owner).load(await read(folder, out, sandbox, FILES))
    assert loaded == Loaded(added=3)
    for query in (DOCUMENTS, CHUNKS, FACTS, ARTIFACTS):
        assert await desk.rows(query, owner) == await desk.rows(query, uploader)
    await desk.check_books()


async def test_a_loaded_document_is_found_and_compared_with_others(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, out: Bucket
) -> None:
    await loader(desk, out, owner).load(await read(folder, out, sandbox, FILES))
    found = await find(desk.database, open_local_gateway(), owner, "whimbrel berth", mode="text")
    documents = "SELECT id FROM documents WHERE filename IN ('log.md', 'berths.csv')"
    assert {hit.document_id for hit in found.items} == {row["id"] for row in await desk.rows(documents)}
    jobs = await desk.rows("SELECT kind, status, priority FROM jobs WHERE status = 'queued'")
    assert jobs == [{"kind": "detect_connections", "status": "queued", "priority": 16}] * 3


async def test_loading_again_changes_nothing(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, out: Bucket
) -> None:
    rows = await read(folder, out, sandbox, FILES)
    load = loader(desk, out, owner)
    await load.load(rows)
    state = "SELECT id, updated_at, revision FROM documents ORDER BY id"
    before, objects = await desk.rows(state), [info.key async for info in desk.bucket.list()]
    assert await load.load(rows) == Loaded(known=3)
    assert await desk.rows(state) == before
    assert [info.key async for info in desk.bucket.list()] == objects
    assert await desk.one("SELECT count(*) FROM uploads") == 3


async def test_a_file_that_was_loaded_or_uploaded_is_never_added_twice(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, out: Bucket
) -> None:
    rows = await read(folder, out, sandbox, {**FILES, "again.md": NOTE.encode()})
    uploaded = await add(desk, owner, "tar.html", LETTER.encode())
    assert await loader(desk, out, owner).load(rows) == Loaded(added=2, known=2)
    (log,) = await desk.rows("SELECT id FROM documents WHERE filename IN ('log.md', 'again.md')")
    outcome = await desk.add(owner, NOTE.encode())
    assert (outcome.state, outcome.document_id) == ("deduplicated", log["id"])
    assert uploaded in {row["id"] for row in await desk.rows("SELECT id FROM documents")}
    await desk.check_books()


async def test_archives_and_unreadable_files_are_processed_by_workers(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, out: Bucket
) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("inside.md", "# Inside\n\nA note in an archive.")
    files = {
        "notes.zip": archive.getvalue(),
        "blank.txt": b" \n\n \t ",
        "empty.md": b"",
        "huge.md": b"x " * (1 << 19) + b"x",
    }
    rows = {row["key"]: row for row in await read(folder, out, sandbox, files)}
    outcomes = {name: (row["outcome"], row.get("error_code")) for name, row in rows.items()}
    assert outcomes == {
        "notes.zip": ("queued", None),
        "blank.txt": ("failed", "EMPTY"),
        "empty.md": ("failed", "EMPTY"),
        "huge.md": ("failed", "TOO_LARGE"),
    }
    assert await loader(desk, out, owner).load(list(rows.values())) == Loaded(queued=2, failed=2)
    async with working(desk, sandbox, folder):
        documents = {row["filename"]: row["id"] for row in await desk.rows("SELECT id, filename FROM documents")}
        shown = {name: await finished(desk, owner, one) for name, one in documents.items()}
    assert {name: one.status for name, one in shown.items()} == {"notes.zip": "completed", "blank.txt": "failed"}
    assert await desk.one("SELECT count(*) FROM documents WHERE filename = 'inside.md'") == 1
    await desk.check_books()


async def test_an_unexpected_error_is_a_row_and_does_not_stop_the_shard(
    folder: Path, sandbox: Sandbox, out: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by accident")

    source = write(folder / "in", {"one.md": NOTE.encode(), "two.csv": TABLE.encode()})
    tools = BulkTools(Settings(data_dir=folder), source, out, FileReader(sandbox))
    monkeypatch.setattr("octavo.bulk.file_results.page_rows", fail)
    (row, *_) = await read_files(tools, list(source.list()))
    assert (row["outcome"], row["error_code"]) == ("failed", "UNEXPECTED")
    assert row["sha256"]


async def test_a_shard_over_the_quota_adds_nothing_and_leaves_no_objects(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, out: Bucket
) -> None:
    rows = await read(folder, out, sandbox, FILES)
    with pytest.raises(QuotaExceeded):
        await loader(desk, out, owner, stored_bytes=100).load(rows)
    assert await desk.one("SELECT count(*) FROM documents") == 0
    await desk.check_books()


async def test_documents_that_were_saved_keep_their_files_if_the_answer_to_commit_is_lost(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, out: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = desk.database.transaction

    @asynccontextmanager
    async def lose_answer() -> AsyncGenerator[Connection]:
        async with transaction() as connection:
            yield connection
        raise DatabaseUnavailable("The connection was lost.")

    rows = await read(folder, out, sandbox, FILES)
    with monkeypatch.context() as patch, pytest.raises(DatabaseUnavailable):
        patch.setattr(desk.database, "transaction", lose_answer)
        await loader(desk, out, owner).load(rows)
    assert await desk.one("SELECT count(*) FROM documents") == 3
    await desk.check_books()
    assert await loader(desk, out, owner).load(rows) == Loaded(known=3)


async def test_an_outage_while_files_are_copied_stops_the_shard(
    folder: Path, sandbox: Sandbox, out: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(folder / "in", FILES)
    tools, files = BulkTools(Settings(data_dir=folder), source, out, FileReader(sandbox)), list(source.list())
    for outage in (StorageUnavailable("The storage does not respond."), OSError(errno.EIO, "Input/output error")):
        with monkeypatch.context() as patch, pytest.raises(type(outage)):
            patch.setattr(out, "put", AsyncMock(side_effect=outage))
            await read_files(tools, files)
    (folder / "in" / files[0].key).unlink()
    outcomes = [(row["outcome"], row.get("error_code")) for row in await read_files(tools, files)]
    assert outcomes == [("failed", "NOT_FOUND"), ("ready", None), ("ready", None)]


async def test_a_folder_that_is_not_mounted_is_an_outage(folder: Path, sandbox: Sandbox, out: Bucket) -> None:
    source = write(folder / "in", FILES)
    tools, files = BulkTools(Settings(data_dir=folder), source, out, FileReader(sandbox)), list(source.list())
    (folder / "in").rename(folder / "elsewhere")
    (folder / "in").mkdir()
    with pytest.raises(FileNotFoundError):
        await read_files(tools, files)


def test_shards_are_cut_by_files_and_by_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.bulk.manifest.SHARD_FILES", 3)
    monkeypatch.setattr("octavo.bulk.manifest.SHARD_BYTES", 10)
    sizes = {"a": 4, "b": 4, "c": 4, "d": 11, "e": 1, "f": 1, "g": 1, "h": 1}
    write(folder / "in", {name: b"x" * size for name, size in sizes.items()})
    plan = list_plan((folder / "in").as_uri(), Settings(data_dir=folder))
    assert ["".join(file.key for file in shard) for shard in plan.shards] == ["ab", "c", "d", "efg", "h"]


async def test_two_accounts_can_load_the_same_results(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, out: Bucket
) -> None:
    rows, other = await read(folder, out, sandbox, FILES), await desk.new_owner()
    assert await loader(desk, out, owner).load(rows) == await loader(desk, out, other).load(rows) == Loaded(added=3)
    assert await desk.rows(CHUNKS, owner) == await desk.rows(CHUNKS, other)
    await desk.check_books()


async def test_source_bytes_that_were_changed_are_not_loaded(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, out: Bucket
) -> None:
    rows = await read(folder, out, sandbox, {"log.md": NOTE.encode()})
    await out.delete([source_key(rows[0]["sha256"])])
    await out.put(source_key(rows[0]["sha256"]), b"something else")
    with pytest.raises(ExceptionGroup):
        await loader(desk, out, owner).load(rows)
    assert await desk.one("SELECT count(*) FROM documents") == 0
    await desk.check_books()


async def test_an_account_is_named_by_its_address_or_id(desk: Desk, owner: UUID) -> None:
    async with desk.database.transaction() as connection:
        assert await find_owner(connection, str(owner)) == owner
        assert await find_owner(connection, None) != owner
        with pytest.raises(NotFound):
            await find_owner(connection, "nobody@example.org")


def test_hidden_files_and_links_are_not_planned(folder: Path) -> None:
    source = write(folder, {"b/two.md": b"2", "a.md": b"1", ".hidden/three.md": b"3", ".four": b"4"})
    (folder / "link.md").symlink_to(folder / "a.md")
    planned = list(source.list())
    assert [(one.key, one.bytes) for one in planned] == [("a.md", 1), ("b/two.md", 1)]
    assert isinstance(planned[0], PlannedFile)
    with pytest.raises(BadInput):
        FolderFiles(folder / "none")
