"""Finds labels: words that introduce the value of a field. The longest label wins: `due date` is not `date`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from octavo.facts.layout import TextRun
from octavo.facts.words import Box, fold

_BETWEEN = re.compile(r"[\s.\-]+")
# Between a label and its value: punctuation, and a remark in brackets such as (EUR).
_AFTER = re.compile(r"[\s:.#=\u2013\u2116*-]*(?:\([^)]{0,30}\))?[\s:.#=\u2013\u2116*-]*")


@dataclass(frozen=True, slots=True)
class Label:
    """A label. `field` is None if the label does not belong to any field of the mapping."""

    field: str | None
    weak: bool = False


@dataclass(frozen=True, slots=True)
class LabelHit:
    """A label in a text run; its value may start at `after`."""

    run: TextRun
    field: str | None
    weak: bool
    start: int
    end: int
    after: int

    @property
    def box(self) -> Box:
        return self.run.place(self.start, self.end).box


class LabelFinder:
    """Finds all labels with one pattern. If several fields have the same label, it belongs to the first field."""

    def __init__(self, labels: Iterable[tuple[str, Label]]) -> None:
        self._labels: dict[str, Label] = {}
        shapes: dict[str, None] = {}
        for text, label in labels:
            self._labels.setdefault(_key(text), label)
            shapes[_shape(text)] = None
        body = "|".join(sorted(shapes, key=len, reverse=True)) or r"(?!)"
        self._pattern = re.compile(rf"(?<!\w)(?:{body})(?![^\W\d])")

    def find(self, run: TextRun) -> list[LabelHit]:
        hits: list[LabelHit] = []
        for match in self._pattern.finditer(run.folded):
            label = self._labels.get(_key(match[0]))
            if label is None:
                continue
            gap = _AFTER.match(run.folded, match.end())
            after = gap.end() if gap else match.end()
            hits.append(LabelHit(run, label.field, label.weak, match.start(), match.end(), after))
        return hits


def _shape(text: str) -> str:
    return r"[\s.\-]*".join(re.escape(word) for word in _BETWEEN.split(fold(text).strip()) if word)


def _key(text: str) -> str:
    return _BETWEEN.sub("", fold(text))
