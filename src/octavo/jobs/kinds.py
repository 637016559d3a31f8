"""What kinds of job there are. A kind is one small file that registers itself here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from octavo.core.errors import BadInput
from octavo.core.types import JSON

if TYPE_CHECKING:
    from octavo.jobs.run import Run


Tools = TypeVar("Tools")


class UnknownKind(BadInput):
    """There is no such kind of job."""

    code = "UNKNOWN_KIND"


@dataclass(frozen=True, slots=True)
class JobKind(Generic[Tools]):
    """How jobs of a kind are run. `cap`: most at once over all workers; `starts_per_second`: over all workers too.

    `check_input` raises `BadInput` for what a handler would refuse, so that it is not put in line first.
    """

    name: str
    handler: Callable[[Run[Tools]], Awaitable[JSON]]
    time_limit_seconds: float
    limit_renewed_by_stage: bool = False
    max_attempts: int = 3
    cap: int | None = None
    starts_per_second: float | None = None
    check_input: Callable[[dict[str, JSON]], object] | None = None


class Kinds(Generic[Tools]):
    """The kinds that a worker knows; it refuses two of one name and lists the known ones when one is missing."""

    def __init__(self) -> None:
        self._kinds: dict[str, JobKind[Tools]] = {}

    def __iter__(self) -> Iterator[JobKind[Tools]]:
        return iter(self._kinds.values())

    def __getitem__(self, name: str) -> JobKind[Tools]:
        try:
            return self._kinds[name]
        except KeyError:
            raise UnknownKind(f"{name} is none of {', '.join(sorted(self._kinds))}.") from None

    def add(self, kind: JobKind[Tools]) -> None:
        if kind.name in self._kinds:
            raise ValueError(f"there is a job kind {kind.name} already")
        self._kinds[kind.name] = kind

    @property
    def names(self) -> list[str]:
        return sorted(self._kinds)
