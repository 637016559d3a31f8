"""`octavo doctor --repair` corrects what follows from other rows, and only reports the rest."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from pydantic import SecretStr

from octavo.core.settings import Settings
from octavo.ops import doctor
from octavo.ops.doctor import examine, repair
from tests.support.engine import engine_on
from tests.support.library import Desk
from tests.support.postgres import as_url

# The name of the repair, what breaks the installation, and the check that finds it.
DAMAGES = {
    "slot counts": ("INSERT INTO caps (key, most, taken) VALUES ('k', 5, 3)", "caps"),
    "document statuses": ("UPDATE documents SET status = 'failed'", "documents"),
    "canonical documents": ("UPDATE uploads SET is_canonical = false", "documents"),
    "versions": ("UPDATE documents SET superseded = true", "documents"),
    "reference counts": ("UPDATE objects SET refs = 7", "documents"),
    "unused file rows": (
        "INSERT INTO objects (key, bytes, sha256) VALUES ('lost', 1, decode(repeat('00', 32), 'hex'))",
        "files",
    ),
    "storage usage": ("UPDATE owner_usage SET bytes = bytes + 1", "documents"),
    "model costs": ("INSERT INTO ai_spending (key, spent_usd) VALUES ('month:2026-01', 3)", "ledger"),
}


@pytest.fixture
def settings(database_info: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Without the check of the sandbox, which starts processes and repairs nothing."""
    monkeypatch.delitem(doctor.CHECKS, "sandbox")
    return Settings(
        data_dir=folder / "data",
        database_url=SecretStr(as_url(database_info)),
        storage_url=(folder / "objects").as_uri(),
    )


async def wrong(settings: Settings) -> set[str]:
    return {one.name for one in await examine(settings) if not one.ok}


async def test_what_can_be_computed_again_is_repaired(
    desk: Desk, owner: UUID, settings: Settings, database_info: str
) -> None:
    """One damage after the other, each in an installation that has nothing else wrong."""
    await desk.add(owner, b"text")
    for name, (damage, found_by) in DAMAGES.items():
        with engine_on(database_info) as engine:
            engine.connection.execute(b"SET session_replication_role = replica")
            engine.run(damage)
        assert found_by in await wrong(settings), name
        assert [(one.name, one.changed) for one in await repair(settings)] == [(name, 1)]
        assert await wrong(settings) == set(), name
        assert await repair(settings) == []
        await desk.check_books()


async def test_a_missing_file_is_reported_and_left_alone(desk: Desk, owner: UUID, settings: Settings) -> None:
    await desk.add(owner, b"text")
    await desk.bucket.delete([info.key async for info in desk.bucket.list()])
    assert await repair(settings) == []
    assert await wrong(settings) == {"files"}
    assert await desk.one("SELECT count(*) FROM documents") == 1


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


DAMAGE = {"is missing": Path.unlink, "has 997 of 1,000 bytes": truncate, "does not match its checksum": flip}


async def test_a_damaged_file_is_named_and_healed_by_uploading_it_again(
    desk: Desk, owner: UUID, settings: Settings, folder: Path
) -> None:
    outcome = await desk.add(owner, b"0123456789" * 100)
    await desk.add(owner, b"another file")
    for damage, do in DAMAGE.items():
        key = await desk.one("SELECT key FROM artifacts WHERE document_id = %s", outcome.document_id)
        do(folder / "objects" / key)
        (found,) = [one for one in await examine(settings) if one.name == "files"]
        assert not found.ok, damage
        assert (
            f"1 of 2 files are missing or damaged: source of document {outcome.document_id}: {key} {damage}."
            in found.detail
        )
        assert "To replace an original file, upload it again" in found.detail
        again = await desk.add(owner, b"0123456789" * 100)
        assert (again.document_id, again.state) == (outcome.document_id, "deduplicated")
        assert await wrong(settings) == set(), damage
        await desk.check_books()


async def test_without_the_option_the_doctor_reads_the_first_gigabyte(
    desk: Desk, owner: UUID, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octavo.ops.doctor.READ_BYTES", 100)
    outcome = await desk.add(owner, b"0123456789" * 100)
    flip(folder / "objects" / await desk.one("SELECT key FROM artifacts WHERE document_id = %s", outcome.document_id))
    (found,) = [one for one in await examine(settings) if one.name == "files"]
    assert found.detail.startswith("1 files, all complete, 0 checksums correct; 1 were not read")
    (found,) = [one for one in await examine(settings, checksums=True) if one.name == "files"]
    assert "does not match its checksum" in found.detail


async def test_two_canonical_documents_of_one_content_are_found(desk: Desk, owner: UUID, settings: Settings) -> None:
    """As only a damaged index lets them be."""
    await desk.add(owner, b"text")
    await desk.add(owner, b"text", duplicates="new")
    async with desk.database.transaction() as connection:
        await connection.execute("DROP INDEX uploads_canonical")
        await connection.execute("UPDATE uploads SET is_canonical = true")
    (found,) = [one for one in await examine(settings) if one.name == "documents"]
    assert not found.ok
    assert "Some documents have no canonical upload, or more than one" in found.detail


async def test_chunks_and_connections_are_counted(desk: Desk, owner: UUID, settings: Settings) -> None:
    await desk.add(owner, b"text")
    details = {one.name: one.detail for one in await examine(settings)}
    assert details["documents"] == "1 documents, 0 of them in the trash, 0 to 0 chunks per document, 0.0 on average"
    assert details["connections"] == "0 connections"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE event_epochs SET cluster = 'another one'",
        "UPDATE relay SET epoch = 1000000000000, id = 1000000",
        "SELECT setval('events_id_seq', 1, false)",
        "ALTER TABLE events ALTER COLUMN epoch SET DEFAULT 5",
    ],
)
async def test_events_that_would_not_be_delivered_are_found(
    desk: Desk, owner: UUID, settings: Settings, database_info: str, damage: str
) -> None:
    """As after a restore by other means than `octavo restore`."""
    await desk.add(owner, b"text")
    assert await wrong(settings) == set()
    with engine_on(database_info) as engine:
        engine.connection.execute(damage.encode())
    assert await wrong(settings) == {"events"}
