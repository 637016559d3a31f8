"""What is large is read once, however many threads need it at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from octavo.language.vocabulary import load_once

THREADS = 4
MOMENT_SECONDS = 0.1


def test_parallel_threads_share_the_first_result() -> None:
    together, doubled = Barrier(THREADS), Event()
    made: list[object] = []

    @load_once
    def model() -> object:
        if made:
            doubled.set()
        made.append(object())
        doubled.wait(MOMENT_SECONDS)  # long enough for the others to come as far
        return made[-1]

    def use(_: int) -> object:
        together.wait()
        return model()

    with ThreadPoolExecutor(THREADS) as pool:
        assert set(pool.map(use, range(THREADS))) == set(made)
    assert len(made) == 1
