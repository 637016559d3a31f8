"""What follows what is one table: complete, printed as it is, and nothing else starts work."""

from __future__ import annotations

import re

import pytest

from octavo.choreography import CHOREOGRAPHY, PERSON, RELAY, WATCHER, Cause
from octavo.cli.reference import choreography_page
from octavo.pipeline import known_kinds, known_schedules
from tests.support.schema import read_schema
from tests.support.tree import ROOT, SOURCE

KINDS = set(known_kinds().names)
# Builds jobs by the clock, by the command line, and by the table.
BUILDERS = {"octavo/choreography.py", "octavo/jobs/kinds.py", "octavo/cli/jobs.py"}
# These get their jobs from Python: enqueueing them in the same call saves a question to the database.
ENQUEUEING = {"place_upload", "begin_conversion", "begin_batch_part"}
FUNCTION = re.compile(r"^CREATE FUNCTION (\w+)(.*?)^(?=CREATE|COMMENT|INSERT|--|\Z)", re.MULTILINE | re.DOTALL)


def test_every_cause_has_its_consequence() -> None:
    assert set(CHOREOGRAPHY) == set(Cause)


def test_every_kind_is_known_and_is_started_by_something() -> None:
    started = {one.kind for one in CHOREOGRAPHY.values()} | {one.kind for one in known_schedules()} | {"demo"}
    assert started == KINDS


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_comes_from_a_kind_or_from_outside(cause: Cause) -> None:
    sources = CHOREOGRAPHY[cause].sources
    assert sources
    assert set(sources) <= KINDS | {PERSON, RELAY, WATCHER}


def test_the_page_says_the_same_as_the_table() -> None:
    assert (ROOT / "docs/reference/what-follows-what.md").read_text() == choreography_page(), "run `make docs`"


def test_no_other_code_builds_jobs() -> None:
    building = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if re.search(r"\bNewJob\(", file.read_text().replace("class NewJob(", ""))
    }
    assert building == BUILDERS


def test_triggers_and_functions_of_the_database_start_no_work() -> None:
    bodies = dict(FUNCTION.findall(read_schema()))
    assert {name for name, body in bodies.items() if "enqueue_jobs(" in body} - {"enqueue_jobs"} == ENQUEUEING
    for name in ENQUEUEING:
        assert not [kind for kind in KINDS if f"'{kind}'" in bodies[name]]
    inserting = {name for name, body in bodies.items() if "INSERT INTO jobs " in body}
    assert inserting == {"enqueue_jobs", "copy_results", "refuse_conversion"}  # the last two: jobs that are over
