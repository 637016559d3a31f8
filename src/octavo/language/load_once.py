"""Loads large models and tables once per process, even if several threads need them at the same time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import TypeVar

Thing = TypeVar("Thing")


def load_once(make: Callable[[], Thing]) -> Callable[[], Thing]:
    """Like `functools.cache` for a function without arguments, but parallel first calls run the function only once."""
    lock, kept = Lock(), cache(make)

    @wraps(make)
    def get() -> Thing:
        with lock:
            return kept()

    return get
