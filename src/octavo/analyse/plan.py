"""Which pages go into one call of a model: each is owned by one segment, and shown before others as their context.

Everything here counts units: the pages of a document, or its passages where it has no pages. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil
from typing import NamedTuple

from octavo.ai.call_limits import CallRoom

MOST_OWN, LEAST_OWN, MOST_CONTEXT = 100, 10, 75
OWN_BYTES = 15 << 20
# What a page of print takes as text; passages are counted by it.
PAGE_OF_TEXT_TOKENS = 600
# The first cut of a segment that was too long; then it is halved.
CUT_OWN = 80


class Segment(NamedTuple):
    """Owns the units from `first` to `last`; those from `context_first` on are shown before them."""

    first: int
    last: int
    context_first: int

    @property
    def own(self) -> int:
        return self.last - self.first + 1

    @property
    def shown(self) -> int:
        return self.last - self.context_first + 1


@dataclass(frozen=True, slots=True)
class Shape:
    """Most units that a segment owns, has as context, and shows in all; and most tokens that it shows."""

    own: int
    context: int
    shown: int
    tokens: int


def shape_of_pages(count: int, size: int, room: CallRoom) -> Shape:
    """For a file of so many pages and bytes."""
    a_page = max(1.0, size / count)
    own = min(MOST_OWN, max(LEAST_OWN, int(OWN_BYTES / a_page)))
    shown = max(1, min(own + MOST_CONTEXT, room.pages, int(room.bytes / a_page)))
    return Shape(min(own, shown), MOST_CONTEXT, shown, room.tokens)


def shape_of_passages(tokens: Sequence[int], room: CallRoom) -> Shape:
    """As much text as pages would have."""
    a_passage = max(1.0, sum(tokens) / max(1, len(tokens)))
    own = max(1, int(MOST_OWN * PAGE_OF_TEXT_TOKENS / a_passage))
    context = int(MOST_CONTEXT * PAGE_OF_TEXT_TOKENS / a_passage)
    return Shape(own, context, own + context, room.tokens)


def plan_segments(tokens: Sequence[int], shape: Shape) -> list[Segment]:
    """Segments for all units; `tokens` has an estimate for each. A unit that is too long for any call stands alone."""
    sums = list(accumulate(tokens, initial=0))

    def fits(first: int, last: int) -> bool:
        return last - first < shape.shown and sums[last] - sums[first - 1] <= shape.tokens

    segments: list[Segment] = []
    last = 0
    while last < len(tokens):
        first = last + 1
        most = min(first + shape.own - 1, len(tokens))
        last = next((end for end in range(most, first, -1) if fits(first, end)), first)
        earliest = max(1, first - shape.context)
        context = next((start for start in range(earliest, first) if fits(start, last)), first)
        segments.append(Segment(first, last, context))
    return segments


def subdivide(segment: Segment) -> list[Segment]:
    """What stands for a segment that was too long: parts of about 80 units, then halves, with less context each time.

    In the end one unit is tried without context. Nothing is answered where nothing is left to cut.
    """
    if segment.own == 1:
        return [Segment(segment.first, segment.last, segment.first)] if segment.context_first < segment.first else []
    number = ceil(segment.own / CUT_OWN) if segment.own > CUT_OWN else 2
    borders = [segment.first + segment.own * place // number for place in range(number + 1)]
    parts: list[Segment] = []
    for first, behind in pairwise(borders):
        context = min(segment.first - segment.context_first, behind - first)
        parts.append(Segment(first, behind - 1, max(segment.context_first, first - context)))
    return parts
