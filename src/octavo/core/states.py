"""The states of a job and the ways between them: the Python third of a table that SQL and the diagram also have."""

from __future__ import annotations

from enum import StrEnum


class JobStatus(StrEnum):
    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETE = "complete"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    PAUSED = "paused"
    CANCELLED = "cancelled"


JOB_TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.QUEUED: frozenset({JobStatus.PROCESSING, JobStatus.FAILED, JobStatus.PAUSED, JobStatus.CANCELLED}),
    JobStatus.PROCESSING: frozenset(
        {
            JobStatus.COMPLETE,
            JobStatus.QUEUED,
            JobStatus.FAILED,
            JobStatus.DEAD_LETTER,
            JobStatus.PAUSED,
            JobStatus.CANCELLED,
        }
    ),
    JobStatus.COMPLETE: frozenset(),
    JobStatus.FAILED: frozenset({JobStatus.QUEUED}),
    JobStatus.DEAD_LETTER: frozenset({JobStatus.QUEUED, JobStatus.CANCELLED}),
    JobStatus.PAUSED: frozenset({JobStatus.QUEUED, JobStatus.FAILED, JobStatus.CANCELLED}),
    JobStatus.CANCELLED: frozenset({JobStatus.QUEUED}),
}
# Nothing happens to these by itself.
RESTING = frozenset(
    {JobStatus.COMPLETE, JobStatus.FAILED, JobStatus.DEAD_LETTER, JobStatus.PAUSED, JobStatus.CANCELLED}
)
