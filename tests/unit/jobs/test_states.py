"""The diagram that people read says the same as the table that Python uses."""

from __future__ import annotations

import re

from octavo.core.types import JOB_TRANSITIONS, RESTING, JobStatus
from tests.support.tree import ROOT

PAGE = (ROOT / "docs" / "state-machine.md").read_text()
TRANSITIONS = {(before.value, after.value) for before, reached in JOB_TRANSITIONS.items() for after in reached}


def test_the_diagram_agrees_with_the_python_table() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+): ", PAGE, re.MULTILINE)
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == TRANSITIONS


def test_every_transition_has_one_sentence() -> None:
    explained = re.findall(r"^- `(\w+) → (\w+)`: .+\.$", PAGE, re.MULTILINE)
    assert len(explained) == len(set(explained))
    assert set(explained) == TRANSITIONS


def test_every_state_is_explained() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [status.value for status in JobStatus]


def test_every_state_has_its_transitions() -> None:
    assert set(JOB_TRANSITIONS) == set(JobStatus)


def test_what_rests_is_not_moved_by_workers() -> None:
    assert {JobStatus.PROCESSING} == {after for before in JobStatus for after in JOB_TRANSITIONS[before]} - {
        after for before in JobStatus if before is not JobStatus.QUEUED for after in JOB_TRANSITIONS[before]
    }
    assert all(JobStatus.PROCESSING not in JOB_TRANSITIONS[status] for status in RESTING)
