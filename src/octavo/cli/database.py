"""How commands use the database: one thing in one transaction, beside a running installation or alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from octavo.core.settings import load_settings

if TYPE_CHECKING:
    from octavo.database import Connection

Answer = TypeVar("Answer")


def act(
    run: Callable[[Connection], Awaitable[Answer]], *, before: Callable[[Connection], Awaitable[None]] | None = None
) -> Answer:
    """Do `run` in a transaction; `before` has one of its own, so that its locks are not kept."""
    from octavo.database import require_current
    from octavo.ops.instance import open_connection

    async def main() -> Answer:
        async with open_connection(load_settings()) as connection:
            # A table that is not there yet would be reported in the words of the database.
            await require_current(connection)
            if before:
                async with connection.transaction():
                    await before(connection)
            async with connection.transaction():
                return await run(connection)

    return asyncio.run(main())
