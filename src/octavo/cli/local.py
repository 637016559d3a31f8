"""Access to the Octavo installation on this machine. A user who can open its database acts as the local owner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from octavo.core.errors import NotRunning
from octavo.core.settings import Settings, load_settings

if TYPE_CHECKING:
    from octavo.database import Connection


def local_address(settings: Settings) -> str:
    """The address of the installation that uses this data folder."""
    from octavo.database.embedded import DataFolder
    from octavo.ops.processes import RecordFile

    record = RecordFile(DataFolder(settings.data_dir)).read()
    if record is None:
        raise NotRunning("Or choose another server with --server and --key.")
    return record.address


async def open_local_session(settings: Settings) -> str:
    """Open a session and return its secret. The calling code ends the session when the command ends."""
    from octavo.database import require_current
    from octavo.ops.instance import open_connection
    from octavo.owners import local_owner
    from octavo.owners.sessions import insert_session

    async with open_connection(settings) as connection:
        await require_current(connection)
        async with connection.transaction():
            return await insert_session(connection, await local_owner(connection), None)


Answer = TypeVar("Answer")


def act(
    run: Callable[[Connection], Awaitable[Answer]], *, before: Callable[[Connection], Awaitable[None]] | None = None
) -> Answer:
    """Run `run` in a transaction.

    `before` runs first, in a separate transaction, so that its locks are released early.
    """
    from octavo.database import require_current
    from octavo.ops.instance import open_connection

    async def main() -> Answer:
        async with open_connection(load_settings()) as connection:
            # Reports an outdated schema; without this check, a missing table would be reported as a raw database error.
            await require_current(connection)
            if before:
                async with connection.transaction():
                    await before(connection)
            async with connection.transaction():
                return await run(connection)

    return asyncio.run(main())
