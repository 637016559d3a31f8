"""Many at once: uploads, deletes, sign-ins and workers meet on the same few contents, and nobody is harmed."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest

from octavo.core.errors import OctavoError
from octavo.core.settings import Settings
from octavo.database import connect
from octavo.extract.detect import detect
from octavo.intake import Intake, NewUpload, Outcome
from octavo.intake.upload_rows import sweep_abandoned
from octavo.jobs.job_run import FaultPlan
from octavo.jobs.worker import Worker
from octavo.jobs.worker_state import WorkerLimits
from octavo.library import changes
from octavo.library.files import find_file
from octavo.ops.doctor import CHECKS, Installation
from octavo.owners import open_anonymous_session
from octavo.owners.sessions import open_session
from octavo.pipeline import Tools, known_kinds
from octavo.storage import Bucket, open_bucket
from tests.support.library import LIMITS, Desk, open_desk, sweep_objects
from tests.support.processes import PATIENCE_SECONDS
from tests.support.processing import OpenSandbox

TEXT = b"What was acknowledged. " * 50
CONTENTS = [f"# Text {number}\n\n".encode() + b"Some words of it. " * 50 for number in range(3)]
# What somebody may be told who comes a moment too late; anything else is our defect.
FAIR = {"done", "NOT_FOUND", "UPLOAD_CLOSED", "DUPLICATE", "ILLEGAL_TRANSITION", "broken up"}


@pytest.fixture
def settings(folder: Path) -> Settings:
    return Settings(data_dir=folder, storage_url=(folder / "objects").as_uri())


@pytest.fixture
async def desk(database_info: str, settings: Settings) -> AsyncIterator[Desk]:
    async with (
        aclosing(open_bucket(settings.storage_url or "")) as bucket,
        open_desk(database_info, bucket) as desk,
    ):
        yield Desk(desk.database, bucket, Intake(desk.database, bucket, detect))


@asynccontextmanager
async def working(desk: Desk, settings: Settings) -> AsyncGenerator[None]:
    tools = Tools(settings, desk.database, desk.bucket, OpenSandbox())
    stopping = asyncio.Event()
    worker = Worker(desk.database, known_kinds(), tools, WorkerLimits(slots=4, poll_seconds=0.05), FaultPlan(""))
    task = asyncio.create_task(worker.run(stopping))
    try:
        yield
    finally:
        stopping.set()
        await task


class Crowd:
    """Browsers of two people and of visitors, each doing one thing after another without looking."""

    def __init__(self, desk: Desk, people: list[UUID], chance: random.Random) -> None:
        self.desk = desk
        self.people = people
        self.chance = chance
        self.told: Counter[str] = Counter()

    async def browse(self, steps: int) -> None:
        secret, owner = await self.come()
        for _ in range(steps):
            act = self.chance.choice([self.add, self.add, self.add, self.trash, self.restore, self.purge, self.retry])
            if self.chance.random() < 0.1:
                await self.tell(lambda: self.sign_in(secret))  # noqa: B023 - awaited at once
                secret, owner = await self.come()
            whose = self.chance.choice([owner, *self.people])
            await self.tell(lambda: act(whose))  # noqa: B023 - awaited at once

    async def tell(self, act: Callable[[], Awaitable[object]]) -> None:
        """The database may break up two that wait for each other; nothing of it is half done then."""
        try:
            await act()
        except OctavoError as error:
            self.told[error.code] += 1
        except psycopg.errors.DeadlockDetected:
            self.told["broken up"] += 1
        else:
            self.told["done"] += 1

    async def come(self) -> tuple[str, UUID]:
        async with self.desk.database.transaction() as connection:
            secret, caller = await open_anonymous_session(connection)
        return secret, caller.owner_id

    async def sign_in(self, secret: str) -> None:
        async with self.desk.database.transaction() as connection:
            await open_session(connection, self.chance.choice(self.people), None, replacing=secret)

    async def add(self, owner: UUID) -> None:
        policy = self.chance.choice(["reuse", "reuse", "new", "reject"])
        new = NewUpload("note.md", "text/markdown", duplicates=policy)  # pyright: ignore[reportArgumentType]
        await self.desk.intake.take(owner, new, self.chance.choice(CONTENTS), LIMITS)

    async def some(self, owner: UUID, trashed: str) -> list[UUID]:
        found = f"SELECT id FROM documents WHERE owner_id = %s AND deleted_at IS {trashed} ORDER BY random() LIMIT 2"
        return [row["id"] for row in await self.desk.rows(found, owner)]

    async def trash(self, owner: UUID) -> None:
        some = await self.some(owner, "NULL")
        async with self.desk.database.transaction() as connection:
            await changes.trash_documents(connection, owner, some)

    async def restore(self, owner: UUID) -> None:
        some = await self.some(owner, "NOT NULL")
        async with self.desk.database.transaction() as connection:
            await changes.restore_documents(connection, owner, some)

    async def purge(self, owner: UUID) -> None:
        some = await self.some(owner, self.chance.choice(["NULL", "NOT NULL"]))
        async with self.desk.database.transaction() as connection:
            keys = await changes.purge_documents(connection, owner, some)
        await self.desk.bucket.delete(keys)

    async def retry(self, owner: UUID) -> None:
        for one in (await self.some(owner, "NULL"))[:1]:
            async with self.desk.database.transaction() as connection:
                await changes.retry_document(connection, owner, one, None)


async def examine(desk: Desk, settings: Settings, info: str) -> None:
    """After the sweeps, everything that is there belongs to somebody."""
    await sweep_abandoned(desk.database, desk.bucket, 0)
    await sweep_objects(desk.database, desk.bucket, 0)
    await desk.check_books()
    async with await connect(info) as connection:
        for name in ("jobs", "caps", "documents", "files"):
            await CHECKS[name](Installation(settings, connection))


async def all_processed(desk: Desk) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        unfinished = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')"
        while await desk.one(unfinished):  # noqa: ASYNC110 - only the database knows
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("browsers", "steps"), [(6, 20), *(pytest.param(*size, marks=pytest.mark.long) for size in ((6, 40), (10, 400)))]
)
async def test_whoever_meets_on_a_content_is_answered_fairly(
    desk: Desk, settings: Settings, database_info: str, browsers: int, steps: int
) -> None:
    crowd = Crowd(desk, [await desk.new_owner() for _ in range(2)], random.Random(steps))
    async with working(desk, settings):
        await asyncio.gather(*(crowd.browse(steps) for _ in range(browsers)))
        await all_processed(desk)
    assert set(crowd.told) <= FAIR
    await examine(desk, settings, database_info)


class LateBucket:
    """A bucket in which something happens while finalize looks at the first bytes: before or after it has seen them."""

    def __init__(self, bucket: Bucket, when: str, meanwhile: Callable[[], Awaitable[object]]) -> None:
        self._bucket = bucket
        self._when = when
        self._meanwhile: Callable[[], Awaitable[object]] | None = meanwhile

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the bucket has
        return getattr(self._bucket, name)

    async def stream(self, key: str, *, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        stream = await self._bucket.stream(key, start=start, end=end)
        meanwhile, self._meanwhile = self._meanwhile, None

        async def chunks() -> AsyncGenerator[bytes]:
            if meanwhile and self._when == "before":
                await meanwhile()
            async for chunk in stream:
                yield chunk
            if meanwhile and self._when == "after":
                await meanwhile()

        return chunks()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_bytes_that_come_again_while_it_is_finalized_are_the_ones_that_are_kept(
    desk: Desk, settings: Settings, database_info: str, when: str
) -> None:
    """A client that gave up on a slow transfer, sent it again and finalized; then the slow one ends."""
    owner = await desk.new_owner()
    ticket = await desk.intake.begin(owner, NewUpload("note.txt"), LIMITS)
    await desk.intake.receive(owner, ticket.upload_id, b"the first ones", LIMITS)

    async def slow_one_ends() -> None:
        await desk.intake.receive(owner, ticket.upload_id, TEXT, LIMITS)

    bucket = cast("Bucket", LateBucket(desk.bucket, when, slow_one_ends))
    outcome = await Intake(desk.database, bucket, detect).finalize(owner, ticket.upload_id, LIMITS)
    assert (outcome.state, outcome.duplicate) == ("uploaded", False)
    async with desk.database.connection() as connection:
        file = await find_file(connection, owner, outcome.document_id, "source")
    assert await desk.bucket.read(file.key) == TEXT
    assert file.sha256 == sha256(TEXT).hexdigest()
    await examine(desk, settings, database_info)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_finalize_that_was_repeated_too_early_is_answered_the_same(
    desk: Desk, settings: Settings, database_info: str, when: str
) -> None:
    """The bytes of a duplicate go when it is finalized, also under the eyes of somebody who finalizes it again."""
    owner = await desk.new_owner()
    await desk.add(owner, TEXT)
    ticket = await desk.intake.begin(owner, NewUpload("note.txt"), LIMITS)
    await desk.intake.receive(owner, ticket.upload_id, TEXT, LIMITS)
    first: list[Outcome] = []

    async def other_one() -> None:
        first.append(await desk.intake.finalize(owner, ticket.upload_id, LIMITS))

    bucket = cast("Bucket", LateBucket(desk.bucket, when, other_one))
    again = await Intake(desk.database, bucket, detect).finalize(owner, ticket.upload_id, LIMITS)
    assert first == [replace(again, duplicate=False)]
    assert again.duplicate
    await examine(desk, settings, database_info)
