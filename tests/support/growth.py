"""How processor time grows with the size of the input."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time


def grows_at_most(
    times: float, small: Callable[[], object], large: Callable[[], object], *, least: float, tries: int = 3
) -> bool:
    """Whether the large input takes less than `times` the time of the small one, which counts as `least` s or more.

    Other programs only make it slower, so the best of all tries counts, and a try that shows it is the last one.
    """
    best_small, best_large = spent(small), float("inf")  # the first run also loads what is loaded once
    for _ in range(tries):
        best_small, best_large = min(best_small, spent(small)), min(best_large, spent(large))
        if best_large < times * max(best_small, least):
            return True
    return False


def spent(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start
