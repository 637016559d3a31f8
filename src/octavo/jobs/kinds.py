"""Job kinds with their handlers and limits, and the registry that workers copy to the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from octavo.core.errors import BadInput
from octavo.core.types import JSON
from octavo.database import Connection, load_queries

if TYPE_CHECKING:
    from octavo.jobs.job_run import ClaimedJob, Run

QUERIES = load_queries("jobs")

Tools = TypeVar("Tools")


class UnknownKind(BadInput):
    """Unknown job kind."""

    code = "UNKNOWN_KIND"


@dataclass(frozen=True, slots=True)
class JobKind(Generic[Tools]):
    """A kind of job: its handler and its limits.

    `cap` limits how many jobs of this kind run at the same time, and `starts_per_second` how many start per second.
    Both count the jobs of all workers.

    `check_input` raises `BadInput` for input that the handler would reject, so that the job is never enqueued.

    `after_failure` runs after a failed attempt, but not after a crash of the worker. A scheduled job must therefore do
    the same work.
    """

    name: str
    handler: Callable[[Run[Tools]], Awaitable[JSON]]
    time_limit_seconds: float
    limit_renewed_by_stage: bool = False
    max_attempts: int = 3
    cap: int | None = None
    starts_per_second: float | None = None
    check_input: Callable[[dict[str, JSON]], object] | None = None
    after_failure: Callable[[Tools, ClaimedJob], Awaitable[None]] | None = None


class Kinds(Generic[Tools]):
    """The kinds of jobs that a worker runs. Names must be unique.

    The error for an unknown name lists the known names.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, JobKind[Tools]] = {}

    def __iter__(self) -> Iterator[JobKind[Tools]]:
        return iter(self._kinds.values())

    def __getitem__(self, name: str) -> JobKind[Tools]:
        try:
            return self._kinds[name]
        except KeyError:
            raise UnknownKind(f"{name} is not one of {', '.join(sorted(self._kinds))}.") from None

    def add(self, kind: JobKind[Tools]) -> None:
        if kind.name in self._kinds:
            raise ValueError(f"the job kind {kind.name} already exists")
        self._kinds[kind.name] = kind

    @property
    def names(self) -> list[str]:
        return sorted(self._kinds)


async def sync_kinds(connection: Connection, kinds: Kinds[Any]) -> None:
    """Store the kinds and their limits in the database, which then enforces the limits and rejects unknown kinds."""
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
