"""One chip says how an installation is; whatever is wrong has a sentence with something to do or to know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from octavo.core.types import JobStatus
from octavo.jobs.views import WorkerView
from octavo.ops.health import Check
from octavo.pipeline import known_kinds
from octavo.records.jobs import ACTIVITIES, DOCUMENT_JOB, FINISHED, STAGES, finished_words
from octavo.web.rooms.operations.pages import CHIPS, describe_health, describe_load, waiting_time

NOW = datetime(2026, 3, 4, 12, 10, tzinfo=UTC)
FINE = [Check("database", ok=True, detail="PostgreSQL"), Check("storage", ok=True, detail="folder")]


def worker(*, alive: bool = True) -> WorkerView:
    return WorkerView(uuid4(), "host-1", 812, ["demo"], 10, 4, alive, NOW, NOW, NOW)


@pytest.mark.parametrize(
    ("checks", "alive", "waits", "chip", "part"),
    [
        (FINE, True, None, "Healthy", None),
        (FINE, True, timedelta(seconds=12), "Healthy", None),
        (FINE, True, timedelta(minutes=14), "Slow", "14 min"),
        (FINE, False, timedelta(minutes=14), "Not healthy", "octavo worker"),
        ([FINE[0], Check("storage", ok=False, detail="Disk full.")], True, None, "Not healthy", "storage"),
    ],
    ids=["idle", "busy", "slow", "no worker", "storage"],
)
def test_health(checks: list[Check], alive: bool, waits: timedelta | None, chip: str, part: str | None) -> None:
    health = describe_health(checks, [worker(alive=alive)], waits)
    assert health.chip == chip
    assert [part in line for line in health.wrong if part] == ([True] if part else [])


def test_load_is_counted_in_words() -> None:
    assert describe_load([worker(), worker(alive=False)], None, 0) == ["1 worker", "no jobs waiting"]
    assert describe_load([], timedelta(seconds=12), 2) == ["0 workers", "oldest waiting 12 s", "2 failed jobs"]


def test_nobody_waits_for_less_than_nothing() -> None:
    assert waiting_time(None, NOW) is None
    assert waiting_time(NOW + timedelta(seconds=1), NOW) == timedelta()


def test_every_state_has_a_chip() -> None:
    assert set(CHIPS) == set(JobStatus)


@pytest.mark.parametrize(
    ("kind", "stage", "said"),
    [("demo", "stage-1", "stage-1"), ("process_document", "extracted", "Reading pages"),
     ("process_document", "markdown_saved", "Saving text"), ("process_document", "classified", "Describing"),
     ("process_document", "reading", "Reading pages"), ("process_document", "fetched", "Fetching"),
     ("process_document", "of tomorrow", "of tomorrow")],
)  # fmt: skip
def test_finished_stages_are_described_by_their_results(kind: str, stage: str, said: str) -> None:
    assert finished_words(kind, stage) == said


def test_every_stage_with_words_has_words_when_it_is_finished() -> None:
    assert set(FINISHED) == set(STAGES) - {None}


def test_the_kinds_of_jobs_with_words_of_their_own_exist() -> None:
    assert {DOCUMENT_JOB, *ACTIVITIES} <= {kind.name for kind in known_kinds()}
