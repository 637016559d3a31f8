"""Connections to the database, which reconnect automatically after an outage."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Self
from weakref import WeakKeyDictionary

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from octavo.core.errors import DatabaseUnavailable

Connection = psycopg.AsyncConnection[TupleRow]

CONNECT_SECONDS = 10
# With a short timeout the pool reconnects for the next caller, instead of waiting longer and longer.
RECONNECT_SECONDS = 2
WAIT_SECONDS = 30
RETRY_SECONDS = 0.05
# A connection used more recently is not checked. A stopping server notifies its connections; a lost network does not.
FRESH_SECONDS = 5.0
# Messages of a server that is starting, recovering or shutting down. libpq has no error code for them.
NOT_READY = ("the database system is", "server closed the connection unexpectedly")


class Database:
    """A pool of connections.

    Idle connections are checked before use, so that callers do not notice a server restart.
    """

    def __init__(self, connection_info: str, *, connections: int = 10) -> None:
        self._pool = AsyncConnectionPool(
            connection_info,
            min_size=1,
            max_size=connections,
            open=False,
            timeout=WAIT_SECONDS,
            reconnect_timeout=RECONNECT_SECONDS,
            check=self._check,
            kwargs={"autocommit": True, "connect_timeout": CONNECT_SECONDS},
        )
        self._place = describe(connection_info)
        self._connection_info = connection_info
        self._used: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        await self._pool.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close()

    async def _check(self, connection: Connection) -> None:
        """Check a connection only if it has been idle for some time or has received data."""
        idle = time.monotonic() - self._used.get(connection, 0.0)
        if idle > FRESH_SECONDS or _has_input(connection):
            await AsyncConnectionPool.check_connection(connection)

    async def connect_unpooled(self) -> Connection:
        """Open a connection outside the pool, for LISTEN, a worker's main loop and long index builds."""
        return await connect(self._connection_info)

    @property
    def most_connections(self) -> int:
        return self._pool.max_size

    async def resize(self, connections: int) -> None:
        """Change the maximum number of connections."""
        await self._pool.resize(1, connections)

    @asynccontextmanager
    async def connection(self, *, wait_seconds: float = WAIT_SECONDS) -> AsyncGenerator[Connection]:
        """Take a connection in autocommit mode, in which every statement is a transaction."""
        try:
            connection = await self._pool.getconn(timeout=wait_seconds)
        except PoolTimeout:
            raise DatabaseUnavailable(f"No response from {self._place} for {wait_seconds:.0f} seconds.") from None
        try:
            yield connection
        except psycopg.OperationalError as error:
            if connection.broken:
                raise DatabaseUnavailable(f"The connection to {self._place} was lost.") from error
            raise
        finally:
            self._used[connection] = time.monotonic()
            await self._pool.putconn(connection)

    @asynccontextmanager
    async def transaction(self, *, wait_seconds: float = WAIT_SECONDS) -> AsyncGenerator[Connection]:
        """Take a connection and open a transaction, which commits at the end and rolls back on any error."""
        async with self.connection(wait_seconds=wait_seconds) as connection, connection.transaction():
            yield connection


def _has_input(connection: Connection) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def connect(connection_info: str) -> Connection:
    """Open a connection without a pool, for migrations and checks. Waits if the server is still starting."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return await psycopg.AsyncConnection.connect(
                connection_info, autocommit=True, connect_timeout=CONNECT_SECONDS
            )
        except psycopg.OperationalError as error:
            if any(message in str(error) for message in NOT_READY) and time.monotonic() < deadline:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            reason = str(error).strip().splitlines()[-1].removeprefix("connection failed: ")
            raise DatabaseUnavailable(f"Cannot connect to {describe(connection_info)}: {reason}") from None
        except psycopg.ProgrammingError as error:
            raise DatabaseUnavailable(f"The address of the database is invalid: {error}") from None


def describe(connection_info: str) -> str:
    """The name and host of the database, without the password."""
    try:
        parts: dict[str, Any] = conninfo_to_dict(connection_info)
    except psycopg.ProgrammingError:
        return "the database"
    host = parts.get("host") or "localhost"
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{parts.get('dbname') or 'the database'} on {host}{port}"
