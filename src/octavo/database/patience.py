"""Waiting for a database that is away, and ending in spite of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg
import structlog

from octavo.core.errors import DatabaseUnavailable
from octavo.database.errors import explain

log = structlog.get_logger()
RETRY_SECONDS = 0.2

Answer = TypeVar("Answer")


async def patiently(work: Callable[[], Awaitable[Answer]]) -> Answer:
    """Wait for a database that is away; whoever holds a lease is cancelled when it is lost, so this ends."""
    while True:
        try:
            return await work()
        except (DatabaseUnavailable, psycopg.errors.DeadlockDetected) as error:
            log.warning("waiting for the database", reason=explain(error))
            await asyncio.sleep(RETRY_SECONDS)


def is_cancelled() -> bool:
    """Whether this task was told to end, for whoever goes on after every error or answer.

    Before Python 3.12 a cancellation is lost if what was waited for, such as a connection, comes in the same moment.
    """
    task = asyncio.current_task()
    return bool(task and task.cancelling())
