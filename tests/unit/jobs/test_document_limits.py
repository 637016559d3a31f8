"""The limits of document jobs that the reference documents name."""

from __future__ import annotations

from octavo.pipeline import known_kinds


def test_documents_start_at_most_20_times_a_second_and_run_10_minutes_without_progress() -> None:
    kind = known_kinds()["process_document"]
    assert (kind.starts_per_second, kind.time_limit_seconds, kind.limit_renewed_by_stage) == (20, 600, True)
