"""Finds the labels of fields in a document, and the candidates for the values of these fields.

The value of a field is chosen from the candidates to the right of its label or below it. If labels overlap, the longest
one wins. For example, `due date` is not read as `date`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from octavo.convert.mappings.mapping import FIELD_TYPES, Check, Field, Prefer
from octavo.convert.mappings.mapping import Mapping as DocumentMapping
from octavo.facts.dates import find_dates
from octavo.facts.layout import Line, TextRun
from octavo.facts.words import Box, Notation, Place, TypedMatch, fold

_SAME_RUN, _RIGHT, _BELOW = 0.92, 0.9, 0.8
_WEAK = 0.75
_WHOLE = 0.8  # an amount without a fraction is often another kind of number
_FAR = 0.15  # subtracted for a value at the other end of the page
_MOST_DOWN = 3.5  # in label heights
_LINES_BELOW = 3
_ORDER = 0.0005  # breaks ties only
_RUNS_RIGHT = 2
_SUMS = {"amount", "number"}
_MOST_CANDIDATES = 5
_MOST_FIELDS = 4
_HOLDS = 0.6  # added to the sum of confidences for each check that passes
_BETWEEN = re.compile(r"[\s.\-]+")
# The text between a label and its value: punctuation, and a remark in brackets such as (EUR).
_AFTER = re.compile(r"[\s:.#=\u2013\u2116*-]*(?:\([^)]{0,30}\))?[\s:.#=\u2013\u2116*-]*")


@dataclass(frozen=True, slots=True)
class Label:
    """A text that can be printed next to a value, such as "Invoice no".

    `field` is the name of its field. It is None if the label does not belong to any field of the mapping.
    """

    field: str | None
    weak: bool = False


@dataclass(frozen=True, slots=True)
class LabelHit:
    """A label that was found in the document, and the text run that contains it.

    If the value is in the same text run, it starts at or after the offset `after`.
    """

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
    """Finds labels in a text, all with a single regular expression.

    If several fields share a label, it is assigned to the first field.
    """

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


@dataclass(frozen=True, slots=True)
class Candidate:
    value: str
    place: Place
    confidence: float


@lru_cache(maxsize=32)
def field_labels(mapping: DocumentMapping) -> LabelFinder:
    """Return a finder for the labels of all fields except tables, and for the mapping's other labels."""
    strong = [(text, Label(one.name)) for one in mapping.singles for text in one.labels]
    weak = [(text, Label(one.name, weak=True)) for one in mapping.singles for text in one.weak_labels]
    return LabelFinder([*strong, *weak, *((text, Label(None)) for text in mapping.other_labels)])


Hits = Mapping[tuple[int, int], Sequence[LabelHit]]


@dataclass(frozen=True, slots=True)
class CandidateFinder:
    """Finds candidates for field values in the lines of a document. `hits` contains the labels that were found."""

    lines: Sequence[Line]
    hits: Hits
    notation: Notation

    def of(self, field: Field) -> Iterator[Candidate]:
        """Find all candidates for the value of a field."""
        for hits in self.hits.values():
            for hit in hits:
                if hit.field == field.name and (field.type != "text" or _announces(hit)):
                    yield from self._after(hit, field)

    def _after(self, hit: LabelHit, field: Field) -> Iterator[Candidate]:
        found = self._in_same_run(hit, field) or self._right(hit, field)
        if found is None:
            found = self._below(hit, field)
        if found is None or (hit.weak and field.type == "identifier" and not _is_alone(hit.run, *found[:2])):
            return
        run, value, confidence = found
        confidence *= _WEAK if hit.weak else 1.0
        if field.type == "amount" and "." not in value.value:
            confidence *= _WHOLE
        order = hit.run.line * _ORDER
        confidence += -order if field.prefer is Prefer.FIRST else min(order, 0.05)
        yield Candidate(value.value, run.place(value.start, value.end), max(confidence, 0.1))

    def _in_same_run(self, hit: LabelHit, field: Field) -> tuple[TextRun, TypedMatch, float] | None:
        """Find a value in the same text run as the label, between this label and the next one."""
        later = [other.start for other in self._hits(hit.run) if other.start >= hit.after]
        found = self._pick(hit.run, field, hit.after, min(later, default=len(hit.run.text)))
        return (hit.run, found, _SAME_RUN) if found else None

    def _right(self, hit: LabelHit, field: Field) -> tuple[TextRun, TypedMatch, float] | None:
        """Find a value to the right of the label.

        If there are several amounts, the last one is used, because it is usually the total.
        """
        if any(other.start >= hit.after for other in self._hits(hit.run)):
            return None
        best: tuple[TextRun, TypedMatch, float] | None = None
        runs = self.lines[hit.run.line].runs
        following = runs[runs.index(hit.run) + 1 :]
        for steps, run in enumerate(following):
            labels = self._hits(run)
            found = self._pick(run, field, 0, min((other.start for other in labels), default=len(run.text)))
            if found and (best is None or field.type in _SUMS):
                distance = max(run.box.left - hit.run.box.right, 0.0)
                best = run, found, _RIGHT - _FAR * min(distance / 600, 1.0)
            if labels or (best and field.type not in _SUMS) or (steps + 1 >= _RUNS_RIGHT and field.type not in _SUMS):
                break
        return best

    def _below(self, hit: LabelHit, field: Field) -> tuple[TextRun, TypedMatch, float] | None:
        """Find a value below the label, in the nearest line with text at that position."""
        box = hit.box
        for line in self.lines[hit.run.line + 1 : hit.run.line + 1 + _LINES_BELOW]:
            down = line.box.top - box.bottom
            if line.page != hit.run.page or down > _MOST_DOWN * box.height:
                return None
            for run in (one for one in line.runs if _is_under(one.box, box)):
                found = None if self._hits(run) else self._pick(run, field, 0, len(run.text))
                return (run, found, _BELOW) if found else None
        return None

    def _pick(self, run: TextRun, field: Field, start: int, end: int) -> TypedMatch | None:
        found = FIELD_TYPES[field.type].find(run.text[start:end], self.notation)
        if field.type in _SUMS:
            # The parts of a date are not amounts.
            days = find_dates(run.text[start:end], self.notation)
            found = [one for one in found if not any(day.start < one.end and one.start < day.end for day in days)]
            found = [one for one in found if "." in one.value] or found
        if not found:
            return None
        one = found[-1] if field.type in _SUMS else found[0]
        return TypedMatch(one.value, one.start + start, one.end + start)

    def _hits(self, run: TextRun) -> Sequence[LabelHit]:
        runs = self.lines[run.line].runs
        return self.hits.get((run.line, runs.index(run)), ())


def _announces(hit: LabelHit) -> bool:
    """Whether a value is expected after the label.

    This is true if the label is the whole text run, or if it is at the start of the run and followed by a colon.
    """
    return hit.start == 0 and (hit.after >= len(hit.run.text) or ":" in hit.run.text[hit.end : hit.after])


def _is_alone(label: TextRun, run: TextRun, found: TypedMatch) -> bool:
    """Whether a value is in the same text run as its label, or is the whole of another text run.

    An identifier with a weak label is used only if this is true.
    """
    return run is label or found.end - found.start >= len(run.text.strip(" #"))


def _is_under(box: Box, label: Box) -> bool:
    """Whether two boxes overlap horizontally by more than 30 % of the width of the narrower one."""
    shared = min(box.right, label.right) - max(box.left, label.left)
    return shared > 0.3 * min(box.right - box.left, label.right - label.left)


Candidates = Mapping[str, Sequence[Candidate]]


def choose(candidates: Candidates, checks: Sequence[Check], sums: Mapping[str, str]) -> dict[str, Candidate]:
    """Choose the best candidate for each field.

    Amounts that together pass the checks, such as net + tax = total, are preferred. `sums` contains the totals of table
    columns.
    """
    ranked = {name: _distinct(found) for name, found in candidates.items() if found}
    chosen = {name: found[0] for name, found in ranked.items()}
    equations = [check for check in checks if not check.at_most]
    names = list(dict.fromkeys(name for check in equations for name in check.names if name in ranked))[:_MOST_FIELDS]
    if not names:
        return chosen

    def score(picked: tuple[Candidate, ...]) -> float:
        values = {**{name: one.value for name, one in chosen.items()}, **sums}
        values |= {name: one.value for name, one in zip(names, picked, strict=True)}
        passed = sum(bool(check.holds(values.get)) for check in equations)
        return sum(one.confidence for one in picked) + _HOLDS * passed

    best = max(product(*(ranked[name] for name in names)), key=score)
    return chosen | dict(zip(names, best, strict=True))


def _distinct(found: Sequence[Candidate]) -> list[Candidate]:
    """Return the most confident candidate for each value, best first.

    A value that was found several times ranks slightly higher.
    """
    best: dict[str, Candidate] = {}
    times: dict[str, int] = {}
    for one in sorted(found, key=lambda candidate: -candidate.confidence):
        best.setdefault(one.value, one)
        times[one.value] = times.get(one.value, 0) + 1
    ranked = sorted(best.values(), key=lambda one: -(one.confidence + 0.01 * min(times[one.value], 5)))
    return ranked[:_MOST_CANDIDATES]
