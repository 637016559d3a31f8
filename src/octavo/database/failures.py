"""What to do when the database fails: describe the error safely, wait for the server, notice a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg
import structlog

from octavo.core.errors import DatabaseUnavailable

log = structlog.get_logger()
RETRY_SECONDS = 0.2
# SQLSTATE class 22: the message itself quotes the value.
DATA_EXCEPTION = "22"

Result = TypeVar("Result")


def explain(error: BaseException) -> str:
    """One line with PostgreSQL's message and SQLSTATE, without any data.

    PostgreSQL quotes the row that it refuses and the values that it cannot parse. These are texts and names of
    documents, which must not reach logs or the error of a job.
    """
    if not isinstance(error, psycopg.Error) or error.sqlstate is None:
        return str(error)
    if error.sqlstate.startswith(DATA_EXCEPTION):
        return f"a value cannot be used ({error.sqlstate})"
    return f"{error.diag.message_primary} ({error.sqlstate})"


async def retry_until_available(work: Callable[[], Awaitable[Result]]) -> Result:
    """Repeat `work` while the database is unavailable or reports a deadlock.

    This has no limit: a job that loses its lease is cancelled, which ends the loop.
    """
    while True:
        try:
            return await work()
        except (DatabaseUnavailable, psycopg.errors.DeadlockDetected) as error:
            log.warning("waiting for the database", reason=explain(error))
            await asyncio.sleep(RETRY_SECONDS)


def is_cancelled() -> bool:
    """Whether the current task was cancelled, for loops that continue after every error.

    Before Python 3.12 a cancellation is lost if the awaited result, such as a connection, arrives at the same moment.
    """
    task = asyncio.current_task()
    return bool(task and task.cancelling())
