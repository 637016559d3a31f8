"""Files of a watched folder become documents once each, whoever is killed, and no document leaves with its file."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.core.settings import Settings
from octavo.intake.sources import folders
from octavo.intake.sources.definitions import pause_source
from octavo.intake.sources.places import SourcePlan
from octavo.intake.sources.reading import SeenFile
from octavo.intake.sources.watching import FolderAlarm, source_watches
from octavo.library.rules import add_rule
from octavo.pipeline import add_files
from octavo.records.automation import RuleThen, RuleWhen
from octavo.sandbox import Sandbox
from tests.support.library import Desk
from tests.support.processes import PATIENCE_SECONDS
from tests.support.processing import OpenSandbox
from tests.support.sources import WatchedSource, add_watched
from tests.support.working import working


@dataclass(frozen=True, slots=True)
class Watched(WatchedSource):
    """A folder that is watched, and its owner."""

    inbox: Path

    def put(self, name: str, text: str) -> Path:
        file = self.inbox / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


async def watch(desk: Desk, owner: UUID, folder: Path, **options: Any) -> Watched:  # noqa: ANN401
    inbox = folder / "inbox"
    inbox.mkdir()
    settings = Settings(data_dir=folder / "data")
    plan = SourcePlan("folder", str(inbox), options=options, every_seconds=3600)
    added = await add_watched(desk, owner, settings, plan)
    return Watched(desk, owner, added.connections, added.source, inbox)


@pytest.fixture
def sandbox() -> OpenSandbox:
    """The files are the test's own."""
    return OpenSandbox()


@pytest.fixture
async def worker(desk: Desk, sandbox: Sandbox, folder: Path) -> AsyncGenerator[None]:
    async with working(desk, sandbox, folder):
        yield


@pytest.mark.usefixtures("worker")
async def test_each_file_is_added_once_and_outlives_the_file(desk: Desk, owner: UUID, folder: Path) -> None:
    watched = await watch(desk, owner, folder)
    for number in range(5):
        watched.put(f"note-{number}.txt", f"Note {number} about the harbour.")
    watched.put("twin.txt", "Note 3 about the harbour.")
    await watched.until(lambda found, view: len(found) == 5 and view.counts.known == 1)
    (watched.inbox / "note-0.txt").unlink()
    for _ in range(3):
        await watched.look()
    found = await watched.documents()
    assert sorted(one.filename for one in found if one.filename != "twin.txt") == sorted(
        {one.filename for one in found}
    )
    assert len(found) == 5
    lanes = await desk.rows("SELECT DISTINCT priority >= 10 AS bulk FROM jobs WHERE kind = 'process_document'")
    assert lanes == [{"bulk": True}]
    assert (await watched.view()).state in {"watching", "adding"}
    await watched.until(lambda found, _: all(one.status == "completed" for one in found))
    await desk.check_books()


async def test_a_file_that_still_grows_waits(desk: Desk, owner: UUID, folder: Path) -> None:
    watched = await watch(desk, owner, folder)
    file = watched.put("scan.txt", "first half")
    await watched.look()
    file.write_text("first half and second half")
    await watched.look()
    assert ((await watched.view()).counts.waiting, (await watched.view()).job_id) == (1, None)
    await watched.look()
    assert (await watched.view()).job_id is not None


async def test_a_job_that_runs_twice_adds_each_file_once(
    desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a worker had lost its lease, and went on while the next one began."""
    watched = await watch(desk, owner, folder)
    for number in range(4):
        watched.put(f"note-{number}.txt", f"Note {number}.")
    handler = add_files.KIND.handler

    async def twice(run: Any) -> Any:  # noqa: ANN401
        results = await asyncio.gather(handler(run), handler(run))
        return results[0]

    object.__setattr__(add_files.KIND, "handler", twice)
    monkeypatch.setattr(folders, "SETTLE_SECONDS", 0.0)
    try:
        async with working(desk, sandbox, folder):
            found = await watched.until(lambda found, _: len(found) >= 4)
            await asyncio.sleep(0.5)
            found = await watched.documents()
    finally:
        object.__setattr__(add_files.KIND, "handler", handler)
    assert sorted(one.filename for one in found) == [f"note-{number}.txt" for number in range(4)]
    assert (await watched.view()).counts.added == 4


@pytest.mark.usefixtures("worker")
async def test_a_changed_file_is_a_new_version(desk: Desk, owner: UUID, folder: Path) -> None:
    watched = await watch(desk, owner, folder)
    file = watched.put("plan.txt", "The first plan.")
    await watched.until(lambda found, _: len(found) == 1)
    os.utime(file, ns=(1, 1))  # the same content with another time
    await watched.until(lambda _, view: view.counts.known == 1)
    watched.put("plan.txt", "The second plan, which is longer.")
    found = await watched.until(lambda found, _: len(found) == 2)
    assert [(one.filename, one.version, one.superseded) for one in found] == [
        ("plan.txt", 1, True),
        ("plan.txt", 2, False),
    ]


@pytest.mark.usefixtures("worker")
async def test_a_file_is_no_version_of_a_document_that_another_file_created(
    desk: Desk, owner: UUID, folder: Path
) -> None:
    watched = await watch(desk, owner, folder)
    watched.put("a.txt", "The same words.")
    await watched.until(lambda found, _: len(found) == 1)
    watched.put("b.txt", "The same words.")
    await watched.until(lambda _, view: view.counts.known == 1)
    watched.put("b.txt", "Other words.")
    found = await watched.until(lambda found, _: len(found) == 2)
    watched.put("b.txt", "Other words, again.")
    found = await watched.until(lambda found, _: len(found) == 3)
    assert [(one.filename, one.version, one.superseded) for one in found] == [
        ("a.txt", 1, False),
        ("b.txt", 1, True),
        ("b.txt", 2, False),
    ]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("after", ["keep", "move"])
async def test_a_name_that_is_used_again_is_another_document(desk: Desk, owner: UUID, folder: Path, after: str) -> None:
    watched = await watch(desk, owner, folder, after=after)
    first = watched.put("scan0001.txt", "An invoice.")
    await watched.until(lambda found, _: len(found) == 1)
    if after == "keep":
        first.unlink()
        await watched.look()
    watched.put("scan0001.txt", "A letter, which is longer.")
    found = await watched.until(lambda found, _: len(found) == 2)
    assert [(one.version, one.superseded) for one in found] == [(1, False), (1, False)]


async def test_a_pause_ends_a_running_job(
    desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = await watch(desk, owner, folder)
    for number in range(5):
        watched.put(f"note-{number}.txt", f"Note {number}.")
    read = folders.read_file

    async def pause_then_read(place: Path, file: SeenFile) -> AsyncGenerator[bytes]:
        async for block in read(place, file):
            yield block
        await desk.rows("UPDATE sources SET paused = true")

    monkeypatch.setattr(folders, "read_file", pause_then_read)
    await watched.look()
    await watched.look()
    async with working(desk, sandbox, folder):
        done = "SELECT status FROM jobs WHERE kind = 'add_files' AND status = 'complete'"
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await desk.rows(done):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    assert await watched.documents() == []
    assert (await watched.view()).counts.waiting == 5
    await desk.check_books()


@pytest.mark.parametrize(("number", "state"), [(errno.EACCES, "failed"), (errno.EIO, "waiting")])
async def test_only_a_lasting_error_fails_a_file_and_others_are_retried(
    desk: Desk,
    owner: UUID,
    folder: Path,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    *,
    number: int,
    state: str,
) -> None:
    watched = await watch(desk, owner, folder)
    watched.put("bad.txt", "Cannot be read.")
    watched.put("good.txt", "Can be read.")
    opened = folders.open_inside

    def open_one(folder: Path, path: str) -> int:
        if path == "bad.txt":
            raise OSError(number, os.strerror(number))
        return opened(folder, path)

    monkeypatch.setattr(folders, "open_inside", open_one)
    await watched.look()
    await watched.look()
    async with working(desk, sandbox, folder), asyncio.timeout(PATIENCE_SECONDS):
        ended = "SELECT status FROM jobs WHERE kind = 'add_files' AND (status <> 'processing' AND attempt > 0)"
        while not await desk.rows(ended):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        jobs = await desk.rows(ended)
    assert [one.filename for one in await watched.documents()] == ["good.txt"]
    assert await desk.rows("SELECT state FROM source_files WHERE path = 'bad.txt'") == [{"state": state}]
    assert jobs == [{"status": "complete" if state == "failed" else "queued"}]


async def test_a_look_at_a_still_folder_writes_no_row(desk: Desk, owner: UUID, folder: Path) -> None:
    watched = await watch(desk, owner, folder)
    watched.put("a.txt", "words")
    await watched.look()
    rows = "SELECT xmin::text, xmax::text FROM source_files"
    before = await desk.rows(rows)
    await desk.rows("UPDATE sources SET next_run_at = engine_now()")
    for chore in source_watches(watched.connections):
        await chore(desk.database)
    assert await desk.rows(rows) == before


async def test_an_attempt_without_its_lease_records_nothing(
    desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = await watch(desk, owner, folder)
    watched.put("a.txt", "words")
    read, lost = folders.read_file, asyncio.Event()

    async def lose_lease(place: Path, file: SeenFile) -> AsyncGenerator[bytes]:
        async for block in read(place, file):
            yield block
        await desk.rows("UPDATE jobs SET lease_token = lease_token + 1 WHERE kind = 'add_files'")
        lost.set()

    monkeypatch.setattr(folders, "read_file", lose_lease)
    await watched.look()
    await watched.look()
    async with working(desk, sandbox, folder):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await lost.wait()
        await asyncio.sleep(0.5)
    assert await watched.documents() == []


@pytest.mark.usefixtures("worker")
async def test_subfolders_become_collections_and_added_files_move(desk: Desk, owner: UUID, folder: Path) -> None:
    watched = await watch(desk, owner, folder, subfolders="collections", after="move")
    watched.put("Harbour/2026/a.txt", "About the harbour.")
    watched.put("b.txt", "About nothing.")
    found = await watched.until(
        lambda found, _: len(found) == 2 and (watched.inbox / "added/Harbour/2026/a.txt").exists()
    )
    assert {one.filename: one.collection for one in found} == {"a.txt": "Harbour", "b.txt": None}
    await watched.look()
    assert not (watched.inbox / "b.txt").exists()
    assert len(await watched.documents()) == 2


@pytest.mark.usefixtures("worker")
async def test_a_source_runs_rules_on_its_documents(desk: Desk, owner: UUID, folder: Path) -> None:
    watched = await watch(desk, owner, folder, subfolders="tags")
    async with desk.database.transaction() as connection:
        when, then = RuleWhen(source="inbox", text="lighthouse of bay 7"), RuleThen(["bay"], "Coast")
        await add_rule(connection, owner, "Bays", when, then, enabled=True)
    for bay in (7, 17):
        watched.put(f"Sea/bay-{bay}.txt", f"The lighthouse of bay {bay} was painted.")
    found = await watched.until(lambda found, _: len(found) == 2 and {one.status for one in found} == {"completed"})
    shown = {one.filename: (one.collection, {"Sea", "bay"} & set(one.tags)) for one in found}
    assert shown == {"bay-7.txt": ("Coast", {"Sea", "bay"}), "bay-17.txt": (None, {"Sea"})}


async def test_a_folder_that_is_gone_is_reported_and_recovers(desk: Desk, owner: UUID, folder: Path) -> None:
    watched = await watch(desk, owner, folder)
    watched.inbox.rename(folder / "away")
    await watched.look()
    view = await watched.view()
    assert (view.state, view.error) == ("failing", "The folder cannot be read: No such file or directory.")
    (folder / "away").rename(watched.inbox)
    await watched.look()
    assert (await watched.view()).state == "watching"


async def test_a_drive_that_does_not_answer_a_move_is_reported(
    desk: Desk, owner: UUID, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, answer = await watch(desk, owner, folder, after="move"), threading.Event()
    watched.put("a.txt", "words")
    await watched.look()
    await desk.rows("UPDATE source_files SET state = 'added'")

    def wait(folder: Path, files: Iterable[SeenFile]) -> None:
        del folder, files
        answer.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(folders, "LOOK_SECONDS", 0.5)
    monkeypatch.setattr(folders, "move_added", wait)
    try:
        for _ in range(2):  # no second thread waits
            await watched.look()
            assert (await watched.view()).error == "The folder did not respond in time."
    finally:
        answer.set()


async def test_a_new_file_is_noticed_long_before_the_next_check(
    desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox
) -> None:
    """The folder is checked every hour, so only a report of the system can be the reason."""
    watched = await watch(desk, owner, folder)
    watched.put("Old/a.txt", "words")

    async def count(files: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(await watched.documents()) < files:  # noqa: ASYNC110 - a worker adds them
                await asyncio.sleep(0.05)

    async with working(desk, sandbox, folder, has_chores=True):
        await count(1)
        for number, name in enumerate(("b.txt", "Old/c.txt", "New/Inner/d.txt"), 2):
            watched.put(name, f"words {number}")
            await count(number)
        (folder / "e.txt").write_text("more words")
        (folder / "e.txt").rename(watched.inbox / "e.txt")
        await count(5)
    await desk.check_books()


async def test_changes_of_a_paused_source_are_not_reported_any_more(desk: Desk, owner: UUID, folder: Path) -> None:
    watched = await watch(desk, owner, folder)
    events = folders.FolderEvents()
    (looking, _), alarm = source_watches(watched.connections, events), FolderAlarm(events)
    await looking(desk.database)
    next_run = "SELECT extract(epoch FROM next_run_at - engine_now())::float AS seconds FROM sources"
    async with asyncio.timeout(PATIENCE_SECONDS):
        await alarm(desk.database)  # the first folder is watched from now on
        watched.put("a.txt", "words")
        await alarm(desk.database)
        assert (await desk.rows(next_run))[0]["seconds"] < 3
        async with desk.database.transaction() as connection:
            await pause_source(connection, owner, watched.source, paused=True)
        watched.put("b.txt", "words")
        await alarm(desk.database)
        watched.put("c.txt", "words")
        assert await events.next_changes() == set()  # the system says that it stopped, and reports nothing else


async def test_a_paused_source_is_not_looked_at(desk: Desk, owner: UUID, folder: Path) -> None:
    watched = await watch(desk, owner, folder)
    async with desk.database.transaction() as connection:
        await pause_source(connection, owner, watched.source, paused=True)
    watched.put("a.txt", "words")
    await watched.look()
    view = await watched.view()
    assert (view.state, view.counts.waiting, view.next_run) == ("paused", 0, None)


async def test_a_file_that_changes_while_it_is_read_is_not_added(folder: Path) -> None:
    file = folder / "a.txt"
    file.write_text("words")
    about = file.stat()
    reading = folders.read_file(folder, SeenFile("a.txt", about.st_size, about.st_mtime_ns))
    assert await anext(reading) == b"words"
    os.utime(file, ns=(1, 1))
    with pytest.raises(add_files.FileChanged):
        await anext(reading)
