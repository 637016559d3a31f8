"""The proof that every page is owned exactly once, or the list of those that are not. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Proof:
    """Ranges of pages, both ends included: nobody's, and those of more than one."""

    missing: tuple[tuple[int, int], ...]
    doubled: tuple[tuple[int, int], ...]

    @property
    def holds(self) -> bool:
        return not (self.missing or self.doubled)

    def explain(self, unit: str) -> str:
        told = [f"{unit} {_name(self.missing)} are missing"] if self.missing else []
        told += [f"{unit} {_name(self.doubled)} are there twice"] if self.doubled else []
        return "; ".join(told) or f"all {unit} are there once"


def prove(ranges: Iterable[tuple[int, int]], count: int) -> Proof:
    """Whether these ranges own each of `count` units once."""
    missing: list[tuple[int, int]] = []
    doubled: list[tuple[int, int]] = []
    reached = 0
    for first, last in sorted(ranges):
        if first > reached + 1:
            missing.append((reached + 1, first - 1))
        if first <= reached:
            doubled.append((first, min(last, reached)))
        reached = max(reached, last)
    if reached < count:
        missing.append((reached + 1, count))
    if reached > count:
        doubled.append((count + 1, reached))  # what is not there belongs to nobody
    return Proof(tuple(missing), tuple(doubled))


def _name(ranges: tuple[tuple[int, int], ...]) -> str:
    named = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[:MOST_NAMED]]
    return ", ".join(named) + (" …" if len(ranges) > MOST_NAMED else "")
