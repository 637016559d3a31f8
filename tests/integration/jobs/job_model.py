"""What the engine should know of a job, said once more in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from octavo.core.types import JOB_TRANSITIONS

# What is made by plain SQL only, because no function of the engine does it yet.
PLAIN_SQL = {("queued", "failed"), ("paused", "failed")}
LEGAL = {(before.value, after.value) for before, reached in JOB_TRANSITIONS.items() for after in reached}


@dataclass
class Job:
    """What the model knows of a job; compared field by field with its row."""

    id: UUID
    parent: UUID | None
    priority: int
    cap_key: str | None
    max_attempts: int
    status: str = "queued"
    attempt: int = 0
    failures: int = 0
    waits: int = 0
    lease_token: int = 0
    admitted: bool = False
    alone: bool = False
    run_after: datetime | None = None
    stages: list[str] = field(default_factory=list[str])
    waiting_since: datetime | None = None
    leased_by: UUID | None = None
    expires: datetime | None = None
    crashed: bool = False
    taken_from: list[UUID] = field(default_factory=list[UUID])

    def rest(self, status: str) -> None:
        self.status, self.admitted, self.run_after = status, False, None
        self.leased_by = self.expires = None

    @property
    def waits_for_slot(self) -> bool:
        return self.status == "queued" and not self.admitted and self.run_after is None


COMPARED = [
    "status",
    "attempt",
    "failures",
    "waits",
    "lease_token",
    "admitted",
    "alone",
    "leased_by",
    "run_after",
    "taken_from",
]
