"""An installation that one test empties and uses again and again, for hundreds of short lives of a few documents."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Generator
from contextlib import AsyncExitStack, aclosing, contextmanager
from pathlib import Path
from typing import Any

from psycopg.conninfo import make_conninfo

from octavo.core.settings import Settings
from octavo.database import connect
from octavo.extract.detect import detect
from octavo.intake import Intake
from octavo.jobs.kinds import sync_kinds
from octavo.library import changes
from octavo.ops.doctor import Installation
from octavo.pipeline import Tools, known_kinds
from octavo.storage import open_bucket
from tests.support.engine import Engine
from tests.support.library import Desk, open_desk
from tests.support.processing import OpenSandbox

# Deleted and not truncated: there are few rows, and truncating thirty tables takes longer than an example.
EMPTY = """
    SET session_replication_role = replica; -- triggers rest
    DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public'
                    AND tablename NOT IN ('engine_clock', 'job_transitions', 'schema_migrations') LOOP
            EXECUTE format('DELETE FROM %I', name);
        END LOOP;
    END $$;
    SET session_replication_role = origin"""


class House:
    """One installation for all examples: emptied instead of made anew, because that takes a tenth of the time."""

    def __init__(
        self, engine: Engine, desk: Desk, installation: Installation, run: Callable[[Coroutine[Any, Any, Any]], Any]
    ) -> None:
        self.engine = engine
        self.desk = desk
        self.installation = installation
        self.run = run
        self.tools = Tools(installation.settings, desk.database, desk.bucket, OpenSandbox())

    async def empty(self) -> None:
        self.engine.connection.execute(EMPTY.encode())
        await self.desk.bucket.delete([info.key async for info in self.desk.bucket.list()])
        async with self.desk.database.transaction() as connection:
            await sync_kinds(connection, known_kinds())

    async def change(self, what: Callable[..., Coroutine[Any, Any, Any]], *arguments: object) -> Any:  # noqa: ANN401
        """As a route does it: one transaction, and what nobody needs any more is removed after it."""
        async with self.desk.database.transaction() as connection:
            answer = await what(connection, *arguments)
        if what is changes.purge_documents:
            await self.desk.bucket.delete(answer)
        return answer


@contextmanager
def open_house(connection_info: str) -> Generator[House]:
    """In memory where that can be, because no step here asks what a power cut leaves."""
    memory = Path("/dev/shm")
    hasty = make_conninfo(connection_info, options="-c synchronous_commit=off")
    with (
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder,
        asyncio.Runner() as runner,
    ):
        settings_ = Settings(data_dir=Path(folder), storage_url=(Path(folder) / "objects").as_uri())
        engine = Engine(hasty)
        stack = AsyncExitStack()

        async def open_all() -> House:
            bucket = await stack.enter_async_context(aclosing(open_bucket(settings_.storage_url or "")))
            desk = await stack.enter_async_context(open_desk(hasty, bucket))
            desk = Desk(desk.database, bucket, Intake(desk.database, bucket, detect))
            installation = Installation(settings_, await stack.enter_async_context(await connect(hasty)))
            return House(engine, desk, installation, runner.run)

        try:
            yield runner.run(open_all())
        finally:
            runner.run(stack.aclose())
            engine.connection.close()
