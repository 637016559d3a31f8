"""A backup holds all of an instance as of one moment, and goes on in another one: another cluster, another bucket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from pydantic import SecretStr

from octavo.core.errors import AlreadyRunning, BadInput
from octavo.core.settings import Settings
from octavo.database import Database, connect
from octavo.database.embedded import DataFolder
from octavo.jobs.views import is_known, latest_cursor, read_events
from octavo.library.changes import purge_documents
from octavo.ops.backup import (
    QUERIES,
    BackupRunning,
    DamagedBackup,
    NotABackup,
    NotEmpty,
    Outcome,
    back_up,
    restore_backup,
)
from octavo.ops.doctor import examine
from octavo.ops.instance import bucket_of
from octavo.ops.processes import RecordFile
from octavo.storage import Bucket
from tests.support.deliveries import PostOffice
from tests.support.engine import engine_on
from tests.support.library import Desk, open_desk
from tests.support.postgres import Server, as_url
from tests.support.processes import octavo_environment, run_octavo
from tests.support.s3 import S3Server

TABLES = b"""
    SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
    AND NOT relispartition ORDER BY relname"""
# What a restore changes itself: it begins an epoch, forgets workers, and returns running jobs to the queue.
CHANGED = {"event_epochs", "schema_migrations", "workers"}


def silent(_what: str, _done: int, _total: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """An instance: its database and its bucket."""

    info: str
    settings: Settings

    async def back_up(self, path: Path, **options: bool) -> Outcome:
        return await back_up(self.settings, path, silent, **options)

    async def restore(self, path: Path) -> Outcome:
        return await restore_backup(self.settings, path, silent)

    @asynccontextmanager
    async def desk(self) -> AsyncGenerator[Desk]:
        async with aclosing(bucket_of(self.settings)) as bucket, open_desk(self.info, bucket) as desk:
            yield desk

    async def problems(self) -> list[str]:
        return [one.detail for one in await examine(self.settings) if not one.ok and one.name != "sandbox"]


def place_in(folder: Path, info: str, name: str, **settings: object) -> Place:
    chosen = {"storage_url": (folder / name / "objects").as_uri(), **settings}
    url = SecretStr(as_url(info))
    return Place(info, Settings.model_validate({"data_dir": folder / name, "database_url": url, **chosen}))


@pytest.fixture
def place(database_info: str, folder: Path) -> Place:
    return place_in(folder, database_info, "first")


def rows_of(info: str) -> dict[str, list[str]]:
    with psycopg.connect(info) as connection:
        names = {row[0] for row in connection.execute(TABLES)} - CHANGED
        query = "SELECT to_jsonb(t)::text FROM {} t ORDER BY 1"
        return {name: [row[0] for row in connection.execute(query.format(name).encode())] for name in sorted(names)}


async def contents(bucket: Bucket) -> dict[str, str]:
    return {info.key: sha256(await bucket.read(info.key)).hexdigest() async for info in bucket.list()}


async def purge(desk: Desk, owner: UUID, document: UUID) -> None:
    async with desk.database.transaction() as connection:
        keys = await purge_documents(connection, owner, [document])
    await desk.bucket.delete(keys)


# Another cluster ----------------------------------------------------------------------------------------------------


async def test_a_backup_is_restored_into_another_cluster_with_every_row_and_file(
    place: Place, any_server: Server, folder: Path
) -> None:
    async with place.desk() as desk:
        owner = await desk.new_owner()
        for number in range(20):
            await desk.add(owner, f"text {number}\twith a tab, \\ and\na line break".encode())
        before = rows_of(place.info), await contents(desk.bucket)
    made = await place.back_up(folder / "backup")
    assert (made.files, made.copied, made.damaged) == (20, 20, [])
    with any_server.database(migrated=False) as info:
        other = place_in(folder, info, "second")
        await other.restore(folder / "backup")
        async with other.desk() as desk:
            assert (rows_of(info), await contents(desk.bucket)) == before
            await desk.check_books()
        assert await other.problems() == []


async def test_after_a_restore_the_next_event_is_delivered_once(place: Place, any_server: Server, folder: Path) -> None:
    """The old cluster is far ahead, and went on after the backup."""
    async with Database(place.info) as database:
        with engine_on(place.info) as engine:
            office = PostOffice(engine, database)
            owner = engine.add_owner()
            subscriber = office.subscribe(owner, events=["job.created"])
            engine.put(owner, count=30)
            await office.relay()
            delivered = [row["event_id"] for row in office.line(subscriber)]
            async with database.connection() as connection:
                known = await latest_cursor(connection)
            await place.back_up(folder / "backup")
            engine.put(owner)
            async with database.connection() as connection:
                lost = await latest_cursor(connection)
    with any_server.database(migrated=False) as info:
        await place_in(folder, info, "second").restore(folder / "backup")
        async with Database(info) as database, database.connection() as connection:
            assert await read_events(connection, known) == []
            assert await is_known(connection, known)
            assert not await is_known(connection, lost)
            with engine_on(info) as engine:
                office = PostOffice(engine, database)
                await office.relay()
                assert [row["event_id"] for row in office.line(subscriber)] == delivered
                (job,) = engine.put(owner)
                (told,) = await read_events(connection, known)
                assert told.process_id == job
                await office.relay()
                await office.relay()
                assert [row["event_id"] for row in office.line(subscriber)] == [*delivered, told.id]


async def test_what_ran_at_the_moment_of_the_backup_runs_again_without_blame(place: Place, folder: Path) -> None:
    with engine_on(place.info) as engine:
        engine.put(engine.add_owner())
        job = engine.claim_one()
    await place.back_up(folder / "backup")
    with psycopg.connect(place.info, autocommit=True) as connection:
        connection.execute("TRUNCATE jobs CASCADE")
    await place.restore(folder / "backup")
    with engine_on(place.info) as engine:
        (found,) = engine.rows("SELECT id, status, failures, alone FROM jobs")
        assert found == {"id": job.id, "status": "queued", "failures": 0, "alone": False}
        assert engine.one("SELECT count(*) FROM workers") == 0
    assert await place.problems() == []


# Under load ---------------------------------------------------------------------------------------------------------


async def test_a_backup_beside_uploads_and_deletions_is_of_one_moment(
    place: Place, newest_server: Server, folder: Path
) -> None:
    async with place.desk() as desk:
        owner = await desk.new_owner()
        kept = [(await desk.add(owner, f"kept {number}".encode())).document_id for number in range(10)]
        over = asyncio.Event()

        async def work(worker: int) -> None:
            number = 0
            while not over.is_set():
                added = await desk.add(owner, f"{worker} {number}".encode())
                assert added.document_id
                await purge(desk, owner, added.document_id)
                number += 1

        working = [asyncio.create_task(work(worker)) for worker in range(2)]
        for number in range(2):
            path = folder / f"backup {number}"
            await place.back_up(path)
            with newest_server.database(migrated=False) as info:
                other = place_in(folder, info, f"other {number}")
                await other.restore(path)
                async with other.desk() as there:
                    await there.check_books()
                    found = {row["id"] for row in await there.rows("SELECT id FROM documents")}
                    assert found >= set(kept)
                assert await other.problems() == []
        over.set()
        await asyncio.gather(*working)
        await place.back_up(folder / "backup 0")
        await desk.check_books()  # what was kept for the backups is gone


async def test_files_are_kept_until_the_backup_has_them_and_deleted_afterwards(place: Place, folder: Path) -> None:
    async with place.desk() as desk, await connect(place.info) as backup:
        owner = await desk.new_owner()
        added = await desk.add(owner, b"text")
        assert added.document_id
        await backup.execute(b"BEGIN")
        await backup.execute(QUERIES.begin_backup)
        await backup.execute(QUERIES.hold_deletions)
        await purge(desk, owner, added.document_id)
        assert len(await contents(desk.bucket)) == 1
        assert await place.problems() == []
        with pytest.raises(BackupRunning):
            await place.back_up(folder / "backup")
        await backup.close()  # as when it is killed
        await place.back_up(folder / "backup")
        assert await contents(desk.bucket) == {}


# The second backup --------------------------------------------------------------------------------------------------


async def test_the_next_backup_to_the_same_folder_copies_only_new_files(place: Place, folder: Path) -> None:
    async with place.desk() as desk:
        owner = await desk.new_owner()
        first = await desk.add(owner, b"first")
        await desk.add(owner, b"second")
        path = folder / "backup"
        assert (await place.back_up(path)).copied == 2
        await desk.add(owner, b"third")
        assert first.document_id
        await purge(desk, owner, first.document_id)
        again = await place.back_up(path)
        assert (again.files, again.copied) == (2, 1)
        assert len([file for file in (path / "objects").rglob("*") if file.is_file()]) == 2
        assert len(list(path.glob("database-*"))) == 1
        (file, *_) = [file for file in (path / "objects").rglob("*") if file.is_file()]
        file.write_bytes(bytes(len(file.read_bytes())))
        assert (await place.back_up(path)).copied == 0
        assert (await place.back_up(path, verify=True)).copied == 1


async def test_a_backup_that_is_interrupted_leaves_the_one_before(place: Place, folder: Path) -> None:
    def interrupt(what: str, _done: int, _total: int) -> None:
        if what == "Copying files":
            raise KeyboardInterrupt

    async with place.desk() as desk:
        owner = await desk.new_owner()
        await desk.add(owner, b"first")
        path = folder / "backup"
        await place.back_up(path)
        before = json.loads((path / "backup.json").read_text())
        await desk.add(owner, b"second")
        with pytest.raises(KeyboardInterrupt):
            await back_up(place.settings, path, interrupt)
        assert json.loads((path / "backup.json").read_text()) == before
        assert (path / before["folder"]).is_dir()
        assert (await place.back_up(path)).files == 2
        assert len(list(path.glob("database-*"))) == 1


# Refused ------------------------------------------------------------------------------------------------------------


async def test_a_folder_with_other_files_is_not_made_a_backup(place: Place, folder: Path) -> None:
    (folder / "mine" / "objects").mkdir(parents=True)
    (folder / "mine" / "objects" / "letter").write_text("mine")
    data = place.settings.data_dir
    for path in (folder / "mine", folder / "mine" / "objects" / "letter", data, data / "backup"):
        with pytest.raises(BadInput, match=r"Choose a"):
            await place.back_up(path)
    assert (folder / "mine" / "objects" / "letter").read_text() == "mine"


async def test_a_backup_is_not_restored_over_anything(place: Place, folder: Path) -> None:
    async with place.desk() as desk:
        await desk.add(await desk.new_owner(), b"text")
        await place.back_up(folder / "backup")
        before = rows_of(place.info)
        with pytest.raises(NotEmpty):
            await place.restore(folder / "backup")
        assert rows_of(place.info) == before


async def test_a_backup_is_not_restored_into_a_running_instance(place: Place, folder: Path) -> None:
    await place.back_up(folder / "backup")
    data = DataFolder(place.settings.data_dir)
    data.prepare()
    record = RecordFile(data)
    record.claim()
    try:
        with pytest.raises(AlreadyRunning):
            await place.restore(folder / "backup")
    finally:
        record.release()


@pytest.mark.parametrize(
    ("what", "how"),
    [
        pytest.param(what, how, marks=[] if rank == other else [pytest.mark.long])
        for rank, what in enumerate(("objects/**/*", "database-*/documents.gz", "backup.json"))
        for other, how in enumerate(("altered", "cut", "missing"))
    ],
)
async def test_a_damaged_backup_changes_nothing(
    place: Place, newest_server: Server, folder: Path, what: str, how: str
) -> None:
    async with place.desk() as desk:
        await desk.add(await desk.new_owner(), b"text")
    await place.back_up(folder / "backup")
    (file,) = [file for file in (folder / "backup").glob(what) if file.is_file()]
    content = file.read_bytes()
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(content[:-1] if how == "cut" else b"!" + content[1:])
    with newest_server.database() as info:
        before = rows_of(info)
        with pytest.raises((DamagedBackup, NotABackup)):
            await place_in(folder, info, "second").restore(folder / "backup")
        assert rows_of(info) == before


async def test_files_that_were_lost_before_are_named_and_the_rest_is_restored(
    place: Place, newest_server: Server, folder: Path
) -> None:
    async with place.desk() as desk:
        owner = await desk.new_owner()
        lost = await desk.add(owner, b"lost")
        await desk.add(owner, b"kept")
        key = await desk.one("SELECT key FROM artifacts WHERE document_id = %s", lost.document_id)
        await desk.bucket.delete([key])
    made = await place.back_up(folder / "backup")
    assert (made.files, made.damaged) == (1, [key])
    with newest_server.database(migrated=False) as info:
        other = place_in(folder, info, "second")
        assert (await other.restore(folder / "backup")).damaged == [key]
        (problem,) = await other.problems()
        assert key in problem


# S3 and the command line --------------------------------------------------------------------------------------------


async def test_a_backup_from_s3_is_restored_into_another_bucket(
    database_info: str, newest_server: Server, s3_server: S3Server, folder: Path
) -> None:
    def on_s3(info: str, prefix: str) -> Place:
        return place_in(
            folder,
            info,
            prefix,
            storage_url=f"s3://{s3_server.bucket}/{prefix}",
            s3_endpoint=s3_server.endpoint,
            s3_region=s3_server.region,
            s3_access_key=s3_server.access_key,
            s3_secret_key=s3_server.secret_key,
        )

    place = on_s3(database_info, "backup-from")
    async with place.desk() as desk:
        await desk.add(await desk.new_owner(), b"text")
        before = await contents(desk.bucket)
    await place.back_up(folder / "backup")
    with newest_server.database(migrated=False) as info:
        other = on_s3(info, "backup-to")
        await other.restore(folder / "backup")
        async with other.desk() as desk:
            assert await contents(desk.bucket) == before
        assert await other.problems() == []


async def test_the_commands_restore_into_a_data_folder_that_is_not_there_yet(place: Place, folder: Path) -> None:
    async with place.desk() as desk:
        await desk.add(await desk.new_owner(), b"text")
    there = octavo_environment(
        place.settings.data_dir, database_url=as_url(place.info), storage_url=place.settings.storage_url
    )
    made = run_octavo(["backup", str(folder / "backup"), "--json"], there)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["files"] == 1
    fresh = octavo_environment(folder / "fresh")
    restored = run_octavo(["restore", str(folder / "backup"), "--json"], fresh)
    assert restored.returncode == 0, restored.stderr
    assert json.loads(restored.stdout)["files"] == 1
    again = run_octavo(["restore", str(folder / "backup")], fresh)
    assert (again.returncode, "only into an empty instance" in again.stderr) == (1, True)
    missing = run_octavo(["restore", "./nothing"], fresh)
    assert (missing.returncode, "does not contain a backup" in missing.stderr) == (1, True)
