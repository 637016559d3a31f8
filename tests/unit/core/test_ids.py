"""Ids are UUIDs of version 7 that never go back within a process."""

from __future__ import annotations

import time

import pytest

from octavo.core.types import new_id


def test_ids_are_version_7_and_ascending() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert {one.version for one in ids} == {7}
    assert {one.variant for one in ids} == {"specified in RFC 4122"}
    assert ids == sorted(set(ids))


def test_an_id_carries_the_time_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    made = new_id().int >> 80
    assert before <= made <= time.time_ns() // 1_000_000 + 1


def test_a_clock_that_steps_back_does_not_disturb_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert new_id() > first
