"""Models and tables are large: the first who needs one reads it, and whoever comes meanwhile waits for that."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import TypeVar

Thing = TypeVar("Thing")


def load_once(make: Callable[[], Thing]) -> Callable[[], Thing]:
    """As `functools.cache`, which lets every thread that comes early make a thing of its own."""
    lock, kept = Lock(), cache(make)

    @wraps(make)
    def get() -> Thing:
        with lock:
            return kept()

    return get
