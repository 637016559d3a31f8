"""The database allows what the diagram and the Python table say, in the same words, and refuses everything else."""

from __future__ import annotations

import re
from uuid import UUID

import psycopg
import pytest

from octavo.core.types import JOB_TRANSITIONS, JobStatus
from tests.support.engine import Engine
from tests.support.tree import ROOT

ALL = [(before, after) for before in JobStatus for after in JobStatus if before is not after]
PAGE = ROOT / "docs" / "state-machine.md"


def make(engine: Engine, owner: UUID, status: JobStatus) -> UUID:
    """A job in any state."""
    (job,) = engine.put(owner)
    if status is not JobStatus.QUEUED:
        engine.run("ALTER TABLE jobs DISABLE TRIGGER jobs_changed")
        engine.force(job, status)
        engine.run("ALTER TABLE jobs ENABLE TRIGGER jobs_changed")
        engine.run(
            "INSERT INTO events (process_id, kind, state_after, owner_id) VALUES (%s, 'made', %s, %s)",
            *(job, status, owner),
        )
    return job


def test_the_database_agrees_with_the_python_table(engine: Engine) -> None:
    allowed = {(row["before"], row["after"]) for row in engine.rows("SELECT before, after FROM job_transitions")}
    assert allowed == {(before, after) for before, reached in JOB_TRANSITIONS.items() for after in reached}


def test_the_database_agrees_with_the_diagram_in_its_words(engine: Engine) -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+): (.+)$", PAGE.read_text(), re.MULTILINE)
    said = [(row["before"], row["after"], row["why"]) for row in engine.rows("SELECT * FROM job_transitions")]
    assert sorted(drawn) == sorted(said)


def test_every_allowed_transition_is_made_and_every_other_one_refused(engine: Engine, owner: UUID) -> None:
    for before, after in ALL:
        job = make(engine, owner, before)
        if after in JOB_TRANSITIONS[before]:
            engine.force(job, after)
            assert engine.events(job)[-1]["state_after"] == after
        else:
            told = len(engine.events(job))
            with pytest.raises(psycopg.errors.CheckViolation, match=f"cannot go from {before} to {after}"):
                engine.force(job, after)
            assert (engine.status(job), len(engine.events(job))) == (before, told)


def test_one_illegal_job_undoes_the_whole_statement(engine: Engine, owner: UUID) -> None:
    good, bad = engine.put(owner), engine.put(owner)
    engine.complete(engine.claim_one())
    complete, queued = (good, bad) if engine.status(good[0]) == "complete" else (bad, good)
    with pytest.raises(psycopg.errors.CheckViolation):
        engine.run(
            "UPDATE jobs SET status = 'paused', completed_at = NULL, output = NULL, admitted = false "
            "WHERE id = ANY (%s)",
            [complete[0], queued[0]],
        )
    assert engine.statuses() == {"complete": 1, "queued": 1}
