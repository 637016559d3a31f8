"""Which candidate is the value: the most certain one, and of amounts those that add up with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from octavo.convert.candidates import Candidate
from octavo.convert.checks import Check

_MOST_CANDIDATES = 5
_MOST_FIELDS = 4
_HOLDS = 0.6  # what a check that holds is worth beside the confidences themselves

Candidates = Mapping[str, Sequence[Candidate]]


def choose(candidates: Candidates, checks: Sequence[Check], sums: Mapping[str, str]) -> dict[str, Candidate]:
    """The best of each field. `sums` are those of the tables, by table and column."""
    ranked = {name: _distinct(found) for name, found in candidates.items() if found}
    chosen = {name: found[0] for name, found in ranked.items()}
    asked = [check for check in checks if not check.at_most]
    names = list(dict.fromkeys(name for check in asked for name in check.names if name in ranked))[:_MOST_FIELDS]
    if not names:
        return chosen

    def worth(picked: tuple[Candidate, ...]) -> float:
        values = {**{name: one.value for name, one in chosen.items()}, **sums}
        values |= {name: one.value for name, one in zip(names, picked, strict=True)}
        return sum(one.confidence for one in picked) + _HOLDS * sum(bool(check.holds(values.get)) for check in asked)

    best = max(product(*(ranked[name] for name in names)), key=worth)
    return chosen | dict(zip(names, best, strict=True))


def _distinct(found: Sequence[Candidate]) -> list[Candidate]:
    """The most certain ones, each value once; what is said several times is a little more certain."""
    best: dict[str, Candidate] = {}
    times: dict[str, int] = {}
    for one in sorted(found, key=lambda candidate: -candidate.confidence):
        best.setdefault(one.value, one)
        times[one.value] = times.get(one.value, 0) + 1
    ranked = sorted(best.values(), key=lambda one: -(one.confidence + 0.01 * min(times[one.value], 5)))
    return ranked[:_MOST_CANDIDATES]
