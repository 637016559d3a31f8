"""What a worker has in its hands: jobs that run, that ended and are not brought back yet, and that it gave up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from octavo.core.types import JSON
from octavo.jobs.run import ClaimedJob

# What was cancelled and goes on is cancelled again after this.
CANCEL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """`slots`: jobs at once, `batch`: jobs taken at once, so that a worker with many slots leaves some to others.

    A lease is renewed four times before it runs out, and given up at two thirds of it.
    """

    slots: int = 10
    batch: int = 10
    lease_seconds: float = 60.0
    poll_seconds: float = 2.0
    grace_seconds: float = 5.0

    @property
    def heartbeat_seconds(self) -> float:
        return self.lease_seconds / 4

    @property
    def give_up_seconds(self) -> float:
        return self.lease_seconds * 2 / 3

    @property
    def patience_seconds(self) -> float:
        """How long others get to renew their leases after an outage."""
        return max(3.0, self.heartbeat_seconds * 2)


@dataclass(slots=True)
class Running:
    """One job in a slot."""

    job: ClaimedJob
    task: asyncio.Task[None] | None = None
    deadline: float = 0.0
    timed_out: bool = False
    ended: bool = False

    @property
    def lease(self) -> tuple[UUID, int]:
        """What this attempt is known by: the same job may come again before it has ended."""
        return self.job.id, self.job.lease_token

    def renew_limit(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds


class Slots:
    """What is in here takes a slot until the database knows that it is over."""

    def __init__(self, limits: WorkerLimits) -> None:
        self.running: dict[tuple[UUID, int], Running] = {}
        self.finished: list[tuple[ClaimedJob, JSON]] = []
        self.abandoned: list[ClaimedJob] = []
        self._limits = limits

    @property
    def free(self) -> int:
        taken = len(self.running) + len(self.abandoned)
        return max(0, min(self._limits.batch, self._limits.slots - taken))

    @property
    def unsaid(self) -> bool:
        """Whether there is something that the database should know."""
        return bool(self.finished or self.abandoned)

    @property
    def known(self) -> list[UUID]:
        jobs = [*(one.job for one in self.running.values()), *(job for job, _ in self.finished), *self.abandoned]
        return [job.id for job in jobs]

    def stop_overdue(self) -> None:
        for one in self.running.values():
            if one.task and not one.ended and time.monotonic() > one.deadline:
                one.timed_out = True
                one.task.cancel()

    def stop_lost(self, one: Running) -> bool:
        """False when it ended meanwhile, or when an earlier attempt at its job has not: that one is lost then."""
        earliest = next((other for other in self.running.values() if other.job.id == one.job.id), None)
        if not one.task or earliest is not one:
            return False
        one.task.cancel()
        return True

    def abandon_all(self) -> None:
        """Nobody knows any more whether these are ours; they go back in line as soon as the database answers."""
        for one in list(self.running.values()):
            if one.task and one.job not in self.abandoned:
                self.abandoned.append(one.job)
                one.task.cancel()

    async def empty(self) -> list[ClaimedJob]:
        """Give what runs a moment to finish, and stop the rest, which is answered."""
        if tasks := [one.task for one in self.running.values() if one.task]:
            await asyncio.wait(tasks, timeout=self._limits.grace_seconds)
        left = list(self.running.values())
        await end([one.task for one in left if one.task])
        return [one.job for one in left]


async def end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel until they are over: before Python 3.12 a cancellation that meets an answer that has just come is lost."""
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=CANCEL_SECONDS)


def leases_of(jobs: Sequence[ClaimedJob]) -> dict[str, Any]:
    return {"held": as_array(job.id for job in jobs), "tokens": as_array(job.lease_token for job in jobs)}


def as_array(values: Iterable[object]) -> str:
    """Ids or numbers as PostgreSQL writes an array; looking for their type would cost a visit more than its rows do."""
    return f"{{{','.join(map(str, values))}}}"
