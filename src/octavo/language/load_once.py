"""Loads large models and tables once per process, even if several threads need them at the same time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import TypeVar

Thing = TypeVar("Thing")


def load_once(make: Callable[[], Thing]) -> Callable[[], Thing]:
    """Cache the result of a function without arguments, like `functools.cache`.

    Even if several threads make the first call at the same time, the function runs only once.
    """
    lock, kept = Lock(), cache(make)

    @wraps(make)
    def get() -> Thing:
        with lock:
            return kept()

    return get
