"""Handles database failures: describes errors without data, and retries until the server is available."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg
import structlog

from octavo.core.errors import DatabaseUnavailable

log = structlog.get_logger()
RETRY_SECONDS = 0.2
# SQLSTATE class 22: the message contains the rejected value.
DATA_EXCEPTION = "22"

Result = TypeVar("Result")


def explain(error: BaseException) -> str:
    """Describe an error in one line with PostgreSQL's message and SQLSTATE, without any data.

    PostgreSQL quotes rows that it rejects and values that it cannot parse. They can contain texts and names of
    documents, which must not appear in logs or in the error message of a job.
    """
    if not isinstance(error, psycopg.Error) or error.sqlstate is None:
        return str(error)
    if error.sqlstate.startswith(DATA_EXCEPTION):
        return f"a value cannot be used ({error.sqlstate})"
    return f"{error.diag.message_primary} ({error.sqlstate})"


async def retry_until_available(work: Callable[[], Awaitable[Result]]) -> Result:
    """Repeat `work` while the database is unavailable or reports a deadlock.

    There is no time limit: a job that loses its lease is cancelled, which ends the loop.
    """
    while True:
        try:
            return await work()
        except (DatabaseUnavailable, psycopg.errors.DeadlockDetected) as error:
            log.warning("waiting for the database", reason=explain(error))
            await asyncio.sleep(RETRY_SECONDS)


def is_cancelled() -> bool:
    """Whether the current task was cancelled, for loops that continue after every error.

    Before Python 3.12, a cancellation is lost if the awaited result, such as a connection, arrives at the same time.
    """
    task = asyncio.current_task()
    return bool(task and task.cancelling())
