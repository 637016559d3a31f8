"""Where the value of a label may stand: behind it, to the right of it, or below it; each place with its confidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from octavo.convert.mappings.dates import find_dates
from octavo.convert.mappings.field_types import FIELD_TYPES
from octavo.convert.mappings.mapping import Check, Field, Prefer
from octavo.convert.rules.labels import Hit
from octavo.convert.rules.layout import Line, Piece
from octavo.convert.values import Box, Found, Habits, Place

_BEHIND, _RIGHT, _BELOW = 0.92, 0.9, 0.8
_WEAK = 0.75
_WHOLE = 0.8  # an amount without a fraction is more often something else
_FAR = 0.15  # for a value at the other end of the page
_MOST_DOWN = 3.5  # heights of the label
_LINES_BELOW = 3
_ORDER = 0.0005  # so little that only equals are told apart
_PIECES_RIGHT = 2
_SUMS = {"amount", "number"}


@dataclass(frozen=True, slots=True)
class Candidate:
    value: str
    place: Place
    confidence: float


Hits = Mapping[tuple[int, int], Sequence[Hit]]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The lines of a document and the labels in them, by line and piece."""

    lines: Sequence[Line]
    hits: Hits
    habits: Habits

    def of(self, field: Field) -> Iterator[Candidate]:
        """All candidates of a field."""
        for hits in self.hits.values():
            for hit in hits:
                if hit.field == field.name and (field.type != "text" or _announces(hit)):
                    yield from self._after(hit, field)

    def _after(self, hit: Hit, field: Field) -> Iterator[Candidate]:
        found = self._behind(hit, field) or self._right(hit, field)
        if found is None:
            found = self._below(hit, field)
        if found is None or (hit.weak and field.type == "identifier" and not _is_alone(hit.piece, *found[:2])):
            return
        piece, value, confidence = found
        confidence *= _WEAK if hit.weak else 1.0
        if field.type == "amount" and "." not in value.value:
            confidence *= _WHOLE
        order = hit.piece.line * _ORDER
        confidence += -order if field.prefer is Prefer.FIRST else min(order, 0.05)
        yield Candidate(value.value, piece.place(value.start, value.end), max(confidence, 0.1))

    def _behind(self, hit: Hit, field: Field) -> tuple[Piece, Found, float] | None:
        """In the same piece, up to the next label."""
        later = [other.start for other in self._hits(hit.piece) if other.start >= hit.after]
        found = self._pick(hit.piece, field, hit.after, min(later, default=len(hit.piece.text)))
        return (hit.piece, found, _BEHIND) if found else None

    def _right(self, hit: Hit, field: Field) -> tuple[Piece, Found, float] | None:
        """In the pieces that follow in the line. Of a row of amounts the last is its sum."""
        if any(other.start >= hit.after for other in self._hits(hit.piece)):
            return None
        best: tuple[Piece, Found, float] | None = None
        pieces = self.lines[hit.piece.line].pieces
        following = pieces[pieces.index(hit.piece) + 1 :]
        for steps, piece in enumerate(following):
            labels = self._hits(piece)
            found = self._pick(piece, field, 0, min((other.start for other in labels), default=len(piece.text)))
            if found and (best is None or field.type in _SUMS):
                distance = max(piece.box.left - hit.piece.box.right, 0.0)
                best = piece, found, _RIGHT - _FAR * min(distance / 600, 1.0)
            if labels or (best and field.type not in _SUMS) or (steps + 1 >= _PIECES_RIGHT and field.type not in _SUMS):
                break
        return best

    def _below(self, hit: Hit, field: Field) -> tuple[Piece, Found, float] | None:
        """In the next line that has something under the label."""
        box = hit.box
        for line in self.lines[hit.piece.line + 1 : hit.piece.line + 1 + _LINES_BELOW]:
            down = line.box.top - box.bottom
            if line.page != hit.piece.page or down > _MOST_DOWN * box.height:
                return None
            for piece in (one for one in line.pieces if _is_under(one.box, box)):
                found = None if self._hits(piece) else self._pick(piece, field, 0, len(piece.text))
                return (piece, found, _BELOW) if found else None
        return None

    def _pick(self, piece: Piece, field: Field, start: int, end: int) -> Found | None:
        found = FIELD_TYPES[field.type].find(piece.text[start:end], self.habits)
        if field.type in _SUMS:
            # The parts of a day are no amounts.
            days = find_dates(piece.text[start:end], self.habits)
            found = [one for one in found if not any(day.start < one.end and one.start < day.end for day in days)]
            found = [one for one in found if "." in one.value] or found
        if not found:
            return None
        one = found[-1] if field.type in _SUMS else found[0]
        return Found(one.value, one.start + start, one.end + start)

    def _hits(self, piece: Piece) -> Sequence[Hit]:
        pieces = self.lines[piece.line].pieces
        return self.hits.get((piece.line, pieces.index(piece)), ())


def _announces(hit: Hit) -> bool:
    """Any words may follow a label for words, so it must be one: alone, or first and with a colon."""
    return hit.start == 0 and (hit.after >= len(hit.piece.text) or ":" in hit.piece.text[hit.end : hit.after])


def _is_alone(label: Piece, piece: Piece, found: Found) -> bool:
    """A weak label says little, so what stands elsewhere must be nothing but an identifier."""
    return piece is label or found.end - found.start >= len(piece.text.strip(" #"))


def _is_under(box: Box, label: Box) -> bool:
    """They share a part of their width, or begin or end at the same place."""
    shared = min(box.right, label.right) - max(box.left, label.left)
    return shared > 0.3 * min(box.right - box.left, label.right - label.left)


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
