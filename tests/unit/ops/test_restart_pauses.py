"""What dies quickly is started again ever more slowly; what ran long is forgiven."""

from octavo.ops.processes import Backoff


def test_the_pause_doubles_up_to_a_limit() -> None:
    backoff = Backoff(first_seconds=0.1, most_seconds=1.0)
    assert [round(backoff.after_run(0), 1) for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_a_run_that_lasted_is_forgiven() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.after_run(1)
    assert backoff.after_run(backoff.reset_after_seconds) == backoff.first_seconds
