"""Types that all packages share: JSON values, extraction modes, and the states of a job.

The transitions between states are defined here, in SQL and in a diagram in the documentation. A test checks that they
agree.
"""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


class Extraction(StrEnum):
    """How a document's text is produced.

    `PLAIN`: the text is extracted from the file. `CLEAN`: a model cleans up the extracted text. `PAGES`: a model reads
    images of the pages; for formats without pages, it cleans up the text instead.
    """

    PLAIN = "plain"
    CLEAN = "clean"
    PAGES = "pages"


class Lane(StrEnum):
    """The two lanes of the queue. Bulk jobs run after interactive jobs, but are never blocked by them completely."""

    INTERACTIVE = "interactive"
    BULK = "bulk"


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
# A job in one of these states changes only on request.
RESTING = frozenset(
    {JobStatus.COMPLETE, JobStatus.FAILED, JobStatus.DEAD_LETTER, JobStatus.PAUSED, JobStatus.CANCELLED}
)


def first_day(text: str | None) -> date | None:
    """Return the first day of a date, month or year in ISO 8601, such as 2017-05-01 for 2017-05.

    Returns None for other texts.
    """
    if not text or not re.fullmatch(r"\d{4}(-\d\d){0,2}", text):
        return None
    try:
        return date.fromisoformat(f"{text}-01-01"[:10])
    except ValueError:
        return None
