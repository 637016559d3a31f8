"""Compares the facts of a document with what a person says of it (`labels.yaml`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from benchmarks.conversions.labelled import letters, same_name
from octavo.facts.finding import Fact

LABELS = Path(__file__).with_name("labels.yaml")
FIELDS = ("kind", "title", "author", "sender", "date")
TUNING, HELD_OUT = "tuning", "held out"
_MOST_OF, _LONGER = 0.7, 1.15


@dataclass(frozen=True, slots=True)
class Labels:
    """The right values of one document by field. No values: the document has none; None: none is right as well."""

    name: str
    values: Mapping[str, tuple[str | None, ...]]
    number: str | None = None

    @property
    def half(self) -> str:
        return HELD_OUT if int(sha256(self.name.encode()).hexdigest(), 16) % 2 == 0 else TUNING

    @property
    def kind(self) -> str:
        return self.values["kind"][0] or ""


@dataclass(frozen=True, slots=True)
class Judged:
    labels: Labels
    field: str
    verdict: str  # right, missing, useless or wrong
    found: str | None
    confidence: float
    has_value: bool
    source: str
    evidence: str = ""


def load_labels() -> list[Labels]:
    return [_labels(name, one) for name, one in yaml.safe_load(LABELS.read_text(encoding="utf-8")).items()]


def _labels(name: str, one: Mapping[str, Any]) -> Labels:
    values = {field: tuple(_listed(one[field])) if field in one else () for field in FIELDS}
    return Labels(name, values, str(one["number"]) if "number" in one else None)


def _listed(value: object) -> Iterator[str | None]:
    for one in value if isinstance(value, list) else [value]:  # pyright: ignore[reportUnknownVariableType]
        yield None if one is None else str(one)  # pyright: ignore[reportUnknownArgumentType]


def judge(labels: Labels, facts: Sequence[Fact]) -> Iterator[Judged]:
    first = {one.name: one for one in reversed(facts)}
    for field in FIELDS:
        fact = first.get(field)
        wanted = labels.values[field]
        has_value = bool(wanted) and None not in wanted
        if field == "title" and labels.number is not None:
            has_value = True
        verdict = _verdict(labels, field, fact)
        if fact is None:
            yield Judged(labels, field, verdict, None, 0.0, has_value, "")
        else:
            found = (fact.value, fact.confidence, has_value, fact.source, fact.evidence)
            yield Judged(labels, field, verdict, *found)


def _verdict(labels: Labels, field: str, fact: Fact | None) -> str:
    wanted = labels.values[field]
    is_optional = None in wanted or not wanted
    if field == "title" and labels.number is not None:
        return _title_of_invoice(labels, fact)
    if fact and any(_is_right(field, fact.value, one) for one in wanted if one):
        return "right"
    if fact is None or (field == "kind" and fact.value == "other"):
        return "right" if is_optional or (field == "kind" and "other" in wanted) else "missing"
    is_name = field == "title" and letters(fact.value) in letters(labels.name)
    is_weak = fact.source == "metadata" and (is_name or field == "date")
    if is_weak and is_optional:
        return "right"
    return "useless" if is_weak and field == "title" else "wrong"


def _title_of_invoice(labels: Labels, fact: Fact | None) -> str:
    if fact is None:
        return "missing"
    parts = [labels.number or "", *(one.split()[0] for one in labels.values["sender"][:1] if one)]
    return "right" if all(letters(part) in letters(fact.value) for part in parts) else "wrong"


def _is_right(field: str, found: str, wanted: str) -> bool:
    if field == "title":
        one, two = sorted((letters(found), letters(wanted)), key=len)
        return one == two or (bool(one) and one in two and len(one) >= _MOST_OF * len(two))
    if field == "author":
        return _are_authors(found, wanted)
    if field == "sender":
        return same_name(found, wanted)
    return found == wanted


def _are_authors(found: str, wanted: str) -> bool:
    """The first author and most of the others are named, and nothing else is."""
    if letters(found) == letters(wanted):
        return True
    names = [letters(name) for name in wanted.split(",")]
    named = [name for name in names if name in letters(found)]
    is_short = len(letters(found)) <= _LONGER * sum(map(len, names)) or len(names) == 1
    return names[0] in named and len(named) >= _MOST_OF * len(names) and is_short
