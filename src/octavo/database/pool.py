"""Database connections that reconnect automatically after an outage, and safe error messages for the log."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from octavo.core.errors import DatabaseUnavailable, NotAllowed

Connection = psycopg.AsyncConnection[TupleRow]
ThreadConnection = psycopg.Connection[TupleRow]
T = TypeVar("T")

CONNECT_SECONDS = 10
# With a short timeout the pool reconnects for the next caller, instead of waiting longer and longer.
RECONNECT_SECONDS = 2
WAIT_SECONDS = 30
# The pool closes a connection that was not needed for this long. Many processes share a server's few connections.
SHRINK_SECONDS = 20.0
RETRY_SECONDS = 0.05
# A connection used more recently is not checked. A stopping server notifies its connections; a lost network does not.
FRESH_SECONDS = 8.0
# A connection without a response for ten seconds is lost. A Unix socket ignores these options.
LOST_NETWORK = {"tcp_user_timeout": 10_000, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 2}
# If a process hangs in the middle of a transaction, its locks are released and events are no longer delayed after this
# time.
IDLE_IN_TRANSACTION = b"SET idle_in_transaction_session_timeout = '15s'"
# A transaction that only holds advisory locks may be idle for as long as the work that it protects takes.
ANY_IDLE_TIME = b"SET LOCAL idle_in_transaction_session_timeout = 0"
SERVER_PROCESS = b"SELECT pg_backend_pid()"
# Messages of a server that is starting, recovering or shutting down. libpq has no error code for them.
NOT_READY = ("the database system is", "server closed the connection unexpectedly")
log = structlog.get_logger()
RETRY_PAUSE = 0.2
# SQLSTATE class 22: the message contains the rejected value.
DATA_EXCEPTION = "22"


@dataclass(frozen=True, slots=True)
class Viewer:
    """A member of an account who sees only the collections that were granted to them."""

    owner_id: UUID
    user_id: UUID


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller of the request that an asyncio task handles. `via` is `session` or `key` (an API key).

    If `viewer` is set, the caller is a limited member, and the task's database connections show only the rows that this
    member may see. If `writes` is also true, the task's transactions see all rows, because a change can affect rows
    that the member does not see, such as other documents with the same content. Before such a change, check that the
    member may change the documents. A trigger rejects changes to documents in other collections.
    """

    id: UUID | None
    via: str = ""
    browser: str = ""
    viewer: Viewer | None = None
    writes: bool = False


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)
ACT_AS = (
    b"SELECT set_config('octavo.actor', %s, true), set_config('octavo.via', %s, true), "
    b"set_config('octavo.browser', %s, true)"
)
LIMIT_TO = b"SELECT limit_to(%s, %s)"
WRITE_AS = b"SELECT set_config('octavo.writer', %s, true)"


def act_as(actor: Actor | None) -> None:
    """Set the caller of this task.

    Later transactions record the caller in the events and sessions that they write. For a limited member, later
    connections show only the rows that the member may see (see `Actor`).
    """
    _actor.set(actor)


def current_viewer() -> UUID | None:
    """Return the user id of the limited member for whom this task reads. Returns None for all other callers.

    Caches of query results must include this id in their keys.
    """
    actor = _actor.get()
    return actor.viewer.user_id if actor and actor.viewer else None


def see_everything() -> None:
    """Let later database connections of this task read all rows, not only the rows that its viewer may see.

    Used for pages that are the same for every visitor, such as shared pages.
    """
    if actor := _actor.get():
        _actor.set(replace(actor, viewer=None))


def allow_changes() -> None:
    """Let later transactions of this task change documents on behalf of its viewer (see `Actor`)."""
    if actor := _actor.get():
        _actor.set(replace(actor, writes=True))


class Database:
    """A pool of database connections.

    Idle connections are checked before use, so that callers do not notice a server restart. `prepared` is true if the
    server keeps prepared statements for each connection. If there is a connection pooler, `direct` is the connection
    string that bypasses it.
    """

    def __init__(
        self, connection_info: str, *, connections: int = 10, prepared: bool = True, direct: str | None = None
    ) -> None:
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            connection_info,
            min_size=1,
            max_size=connections,
            open=False,
            timeout=WAIT_SECONDS,
            max_idle=SHRINK_SECONDS,
            reconnect_timeout=RECONNECT_SECONDS,
            check=self._check,
            configure=_limit_idle_time,
            kwargs=connection_options(prepared=prepared),
        )
        self._place = describe(connection_info)
        self._connection_info = connection_info
        self._direct = direct
        self._prepared = prepared
        self._used: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()
        self._taken = 0
        self._full_since: float | None = None
        self._waiting: dict[object, float] = {}  # when each caller began to wait, oldest first
        self._exchanges: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        await self._pool.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close()
        await asyncio.gather(*self._exchanges, return_exceptions=True)

    async def _check(self, connection: Connection) -> None:
        """Check whether a connection still works, but only if it has been idle for some time or has received data."""
        idle = time.monotonic() - self._used.get(connection, 0.0)
        if idle > FRESH_SECONDS or _has_input(connection):
            await AsyncConnectionPool.check_connection(connection)

    async def connect_unpooled(self) -> Connection:
        """Open a connection outside the pool, for a worker's main loop. It detects network failures within seconds."""
        return await connect(self._connection_info, prepared=self._prepared, **LOST_NETWORK)

    async def connect_directly(self) -> tuple[Connection, bool]:
        """Open a connection for LISTEN or a long index build. Also returns whether the connection has its own session.

        A connection behind a connection pooler in transaction mode does not have one: the pooler may run each statement
        in a different session of the server, so settings and LISTEN would affect other callers. The connection detects
        network failures within seconds, even while it waits for notifications.
        """
        connection = await connect(self._direct or self._connection_info, prepared=False, **LOST_NETWORK)
        try:
            return connection, self._direct is not None or await _is_direct(connection)
        except BaseException:  # also a cancellation: nobody else knows this connection yet
            await connection.close()
            raise

    def connect_in_thread(self) -> ThreadConnection:
        """Open a connection for the heartbeat thread. The connection detects network failures within seconds."""
        try:
            guarded = make_conninfo(self._connection_info, **LOST_NETWORK)
            options = connection_options(prepared=self._prepared)
            return psycopg.connect(guarded, **options)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(str(error).strip().splitlines()[-1]) from None

    @property
    def most_connections(self) -> int:
        return self._pool.max_size

    async def resize(self, connections: int) -> None:
        """Change the maximum number of connections."""
        await self._pool.resize(1, connections)

    @asynccontextmanager
    async def connection(self, *, wait_seconds: float = WAIT_SECONDS) -> AsyncGenerator[Connection]:
        """Take a connection from the pool in autocommit mode, in which every statement is a transaction.

        For a viewer, the whole block is one transaction, because the limits on visible rows apply only until a
        transaction ends.
        """
        actor = _actor.get()
        async with self._lend(wait_seconds) as connection:
            if actor and actor.viewer:
                async with connection.transaction():
                    await connection.execute(LIMIT_TO, [actor.viewer.owner_id, actor.viewer.user_id])
                    yield connection
            else:
                yield connection

    @asynccontextmanager
    async def _lend(self, wait_seconds: float) -> AsyncGenerator[Connection]:
        connection = await self._take(wait_seconds)
        try:
            yield connection
        except psycopg.OperationalError as error:
            if connection.broken:
                raise DatabaseUnavailable(f"The connection to {self._place} was lost.") from error
            raise
        finally:
            self._used[connection] = time.monotonic()
            self._taken, self._full_since = self._taken - 1, None
            await self._complete(asyncio.create_task(self._pool.putconn(connection)))

    async def _take(self, wait_seconds: float) -> Connection:
        caller = object()
        self._waiting[caller] = time.monotonic()
        taking = asyncio.create_task(self._pool.getconn(timeout=wait_seconds))
        try:
            connection = await self._complete(taking)
        except PoolTimeout:
            raise DatabaseUnavailable(f"No response from {self._place} for {wait_seconds:.0f} seconds.") from None
        except asyncio.CancelledError:
            taking.add_done_callback(self._return_unused)
            taking.cancel()
            raise
        finally:
            del self._waiting[caller]
        self._taken += 1
        if self._taken >= self._pool.max_size:
            self._full_since = time.monotonic()
        return connection

    async def _complete(self, exchange: asyncio.Task[T]) -> T:
        """Wait for a call to the connection pool.

        The call runs to its end even if the waiting caller is cancelled. Otherwise, a cancellation while the pool hands
        over a connection would lose that connection for good.
        """
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)
        return await asyncio.shield(exchange)

    def _return_unused(self, taking: asyncio.Task[Connection]) -> None:
        """Give a connection back to the pool if its caller was cancelled while waiting for it."""
        if not taking.cancelled() and taking.exception() is None:
            returning = asyncio.create_task(self._pool.putconn(taking.result()))
            self._exchanges.add(returning)
            returning.add_done_callback(self._exchanges.discard)

    def seconds_exhausted(self) -> float:
        """Return how long, in seconds, all connections of the pool have been in use. Returns 0 if one is free.

        The time counts from the earlier of two moments: when the last free connection was taken, and when the caller
        that has waited longest began to wait.
        """
        if self._taken < self._pool.max_size:
            return 0.0
        since = [*list(self._waiting.values())[:1], *([] if self._full_since is None else [self._full_since])]
        return time.monotonic() - min(since, default=time.monotonic())

    @asynccontextmanager
    async def transaction(self, *, wait_seconds: float = WAIT_SECONDS) -> AsyncGenerator[Connection]:
        """Take a connection from the pool and open a transaction, which commits at the end and rolls back on
        any error.
        """
        actor = _actor.get()
        writer = actor.viewer if actor and actor.writes else None
        lent = self._lend(wait_seconds) if writer else self.connection(wait_seconds=wait_seconds)
        try:
            async with lent as connection, connection.transaction():
                if actor:
                    await connection.execute(ACT_AS, [str(actor.id or ""), actor.via, actor.browser])
                if writer:
                    await connection.execute(WRITE_AS, [str(writer.user_id)])
                yield connection
        except psycopg.errors.InsufficientPrivilege:
            if writer is None:
                raise
            raise NotAllowed("You cannot change documents in this collection.") from None


def _has_input(connection: Connection) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def connection_options(*, prepared: bool) -> dict[str, Any]:
    """Return psycopg's options for all connections.

    `prepared=False` disables prepared statements, because some connection poolers do not support them.
    """
    options = {"autocommit": True, "connect_timeout": CONNECT_SECONDS}
    return options if prepared else {**options, "prepare_threshold": None}


async def _is_direct(connection: Connection) -> bool:
    """Whether the connection goes directly to the server, without a connection pooler.

    A pooler cannot report the correct process id when a connection opens, because it chooses the server process later.
    """
    row = await (await connection.execute(SERVER_PROCESS)).fetchone()
    return row is not None and row[0] == connection.info.backend_pid


@asynccontextmanager
async def lasting_transaction(connection: Connection) -> AsyncGenerator[None]:
    """Open a transaction that holds advisory locks while other connections do long-running work.

    Behind a connection pooler in transaction mode, an advisory lock can be held only as long as a transaction lasts.
    """
    async with connection.transaction():
        await connection.execute(ANY_IDLE_TIME)
        yield


async def connect(connection_info: str, *, prepared: bool = False, **network: int) -> Connection:
    """Open a connection without a pool, for migrations and checks. Waits if the server is still starting."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            options: dict[str, Any] = {**connection_options(prepared=prepared), **network}
            connection = await psycopg.AsyncConnection.connect(connection_info, **options)
            try:
                await _limit_idle_time(connection)
            except BaseException:  # also a cancellation: nobody else knows this connection yet
                await connection.close()
                raise
        except psycopg.OperationalError as error:
            if any(message in str(error) for message in NOT_READY) and time.monotonic() < deadline:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            reason = str(error).strip().splitlines()[-1].removeprefix("connection failed: ")
            raise DatabaseUnavailable(f"Cannot connect to {describe(connection_info)}: {reason}") from None
        except psycopg.ProgrammingError as error:
            raise DatabaseUnavailable(f"The address of the database is invalid: {error}") from None
        else:
            return connection


async def _limit_idle_time(connection: Connection) -> None:
    """Limit the idle time of transactions.

    Uses a statement, because connection poolers refuse this option in the connection string.
    """
    await connection.execute(IDLE_IN_TRANSACTION)


def describe(connection_info: str) -> str:
    """Return the name, host and port of the database, without the password."""
    try:
        parts: dict[str, Any] = conninfo_to_dict(connection_info)
    except psycopg.ProgrammingError:
        return "the database"
    host = parts.get("host") or "localhost"
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{parts.get('dbname') or 'the database'} on {host}{port}"


def explain(error: BaseException) -> str:
    """Describe an error in one line: PostgreSQL's message and SQLSTATE, without any data.

    PostgreSQL's full error quotes rejected rows and invalid values. These can contain names and the text of documents,
    which must not appear in logs or in a job's error message.
    """
    if not isinstance(error, psycopg.Error) or error.sqlstate is None:
        return str(error)
    if error.sqlstate.startswith(DATA_EXCEPTION):
        return f"a value cannot be used ({error.sqlstate})"
    return f"{error.diag.message_primary} ({error.sqlstate})"


async def retry_until_available(work: Callable[[], Awaitable[T]]) -> T:
    """Repeat `work` while the database is unavailable or reports a deadlock.

    There is no time limit: a job that loses its lease is cancelled, which ends the loop.
    """
    while True:
        try:
            return await work()
        except (DatabaseUnavailable, psycopg.errors.DeadlockDetected) as error:
            log.warning("waiting for the database", reason=explain(error))
            await asyncio.sleep(RETRY_PAUSE)


def is_cancelled() -> bool:
    """Whether the current task was cancelled.

    Loops that continue after every error must check this, because before Python 3.12 a task misses its cancellation if
    the awaited result arrives at the same moment.
    """
    task = asyncio.current_task()
    return bool(task and task.cancelling())
