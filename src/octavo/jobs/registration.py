"""What the database knows of workers, and of the kinds of job that they run."""

from __future__ import annotations

import os
import socket
from typing import Any
from uuid import UUID

from octavo.database import Connection, load_queries
from octavo.jobs.kinds import Kinds
from octavo.jobs.slots import WorkerLimits

QUERIES = load_queries("jobs")


async def register_worker(connection: Connection, worker: UUID, kinds: Kinds[Any], limits: WorkerLimits) -> None:
    await sync_kinds(connection, kinds)
    await connection.execute(QUERIES.forget_dead_workers)
    values = {
        "id": worker,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "kinds": kinds.names,
        "slots": limits.slots,
        "seconds": limits.lease_seconds,
    }
    await connection.execute(QUERIES.register_worker, values)


async def sync_kinds(connection: Connection, kinds: Kinds[Any]) -> None:
    """Tell the database what kinds there are, so that jobs of others are refused and limits hold."""
    known = list(kinds)
    values = {
        "names": [kind.name for kind in known],
        "max_attempts": [kind.max_attempts for kind in known],
        "time_limits": [kind.time_limit_seconds for kind in known],
        "renewed": [kind.limit_renewed_by_stage for kind in known],
        "caps": [kind.cap for kind in known],
        "rates": [kind.starts_per_second for kind in known],
    }
    await connection.execute(QUERIES.sync_kinds, values)
    await connection.execute(QUERIES.sync_rates)
    await connection.execute(QUERIES.sync_caps)
