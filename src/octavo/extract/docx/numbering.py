"""Word stores no numbers, only how to count. This counts, so that "see 2.3" still finds what it means."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from octavo.extract.office.xml import Element, attribute, child, children

_LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
          (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_MOST = 4000
_ALPHABET = 26


@dataclass(frozen=True, slots=True)
class Level:
    start: int = 1
    kind: str = "decimal"
    text: str = ""
    style: str = ""


@dataclass(slots=True)
class Counters:
    """What one kind of list has counted so far; lists of the same kind share it."""

    levels: dict[int, Level]
    values: dict[int, int] = field(default_factory=dict[int, int])


class Numbering:
    def __init__(self, root: Element | None) -> None:
        abstract = {attribute(one, "w:abstractNumId") or "": one for one in children(root, "w:abstractNum")}
        by_style = {attribute(child(one, "w:styleLink"), "w:val"): key for key, one in abstract.items()}
        self._counters: dict[str, Counters] = {}
        self._kinds: dict[str, str] = {}
        self._changes: dict[str, dict[int, int]] = {}
        for one in children(root, "w:num"):
            number = attribute(one, "w:numId") or ""
            kind = attribute(child(one, "w:abstractNumId"), "w:val") or ""
            link = attribute(child(abstract.get(kind), "w:numStyleLink"), "w:val")
            kind = by_style.get(link, kind) if link else kind
            self._take(number, kind, one, abstract.get(kind))

    def _take(self, number: str, kind: str, element: Element, abstract: Element | None) -> None:
        levels = _read_levels(abstract)
        own: dict[int, Level] = {}
        for change in children(element, "w:lvlOverride"):
            place = _number(attribute(change, "w:ilvl"))
            start = attribute(child(change, "w:startOverride"), "w:val")
            if start is not None:
                self._changes.setdefault(number, {})[place] = _number(start, 1)
            if (level := child(change, "w:lvl")) is not None:
                own[place] = _read_level(level)
        # A list that changes the levels of its kind counts by itself.
        self._kinds[number] = key = f"{kind}/{number}" if own else kind
        if key not in self._counters:
            self._counters[key] = Counters(levels | own)

    def depth_of_style(self, number: str, style: str) -> int | None:
        """At which level the style stands by which a heading is numbered."""
        counters = self._counters.get(self._kinds.get(number, ""))
        levels = counters.levels if counters else {}
        return next((depth for depth, level in levels.items() if level.style and level.style == style), None)

    def next_label(self, number: str, depth: int) -> str | None:
        """What stands before the next item: "" for a bullet, None if it is in no list."""
        counters = self._counters.get(self._kinds.get(number, ""))
        if counters is None or number == "0":
            return None
        level = counters.levels.get(depth, Level(kind="bullet"))
        start = self._changes.get(number, {}).pop(depth, None)
        values = counters.values
        values[depth] = start if start is not None else values.get(depth, level.start - 1) + 1
        for deeper in [place for place in values if place > depth]:
            del values[deeper]
        if level.kind == "bullet":
            return ""
        return _PLACE.sub(lambda found: _written(counters, int(found[1]) - 1, level.kind), level.text).strip()


def _written(counters: Counters, depth: int, kind: str) -> str:
    level = counters.levels.get(depth, Level())
    value = counters.values.setdefault(depth, level.start)
    return format_number(value, level.kind if kind != "bullet" else "decimal")


def format_number(value: int, kind: str) -> str:
    if not 0 < value < _MOST:
        return str(value)
    if kind.endswith("Letter"):
        text = chr(ord("a") + (value - 1) % _ALPHABET) * ((value - 1) // _ALPHABET + 1)
    elif kind.endswith("Roman"):
        text = _roman(value)
    elif kind == "none":
        return ""
    else:
        return f"{value:02}" if kind == "decimalZero" else str(value)
    return text.upper() if kind.startswith("upper") else text


def _roman(value: int) -> str:
    text = ""
    for worth, sign in _ROMAN:
        text += sign * (value // worth)
        value %= worth
    return text


def _read_levels(abstract: Element | None) -> dict[int, Level]:
    return {_number(attribute(one, "w:ilvl")): _read_level(one) for one in children(abstract, "w:lvl")}


def _read_level(element: Element) -> Level:
    return Level(
        start=_number(attribute(child(element, "w:start"), "w:val"), 1),
        kind=attribute(child(element, "w:numFmt"), "w:val") or "decimal",
        text=(attribute(child(element, "w:lvlText"), "w:val") or "")[:100],
        style=attribute(child(element, "w:pStyle"), "w:val") or "",
    )


def _number(written: str | None, otherwise: int = 0) -> int:
    return int(written) if written and written.isdecimal() and len(written) < _LEVELS else otherwise
