"""Waiting for a database that is away, for those who must not lose what they have to write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg
import structlog

from octavo.database.errors import explain
from octavo.model.errors import DatabaseUnavailable

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
