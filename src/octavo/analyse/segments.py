"""Divides a document into segments, one per model call, and checks that the segments together cover the whole document.

A segment is a range of units. A unit is a page of the document or, if it has no pages, a chunk. Each unit belongs to
exactly one segment; later segments may show it again as context. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil
from typing import NamedTuple

from octavo.ai.models import CallLimits

MOST_OWN, LEAST_OWN, MOST_CONTEXT = 100, 10, 75
OWN_BYTES = 15 << 20
# Tokens in the text of a printed page, to convert page limits to chunk limits.
PAGE_OF_TEXT_TOKENS = 600
# A segment that was too long is first cut into parts of this size, then halved.
CUT_OWN = 80
PART_CONTEXT = 3
MOST_NAMED = 10


class Segment(NamedTuple):
    """A range of units (pages or chunks) from `first` to `last`.

    The units from `context_first` to `first - 1` are shown to the model as context.
    """

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
class SegmentLimits:
    """The maximum size of a segment, in units (pages or chunks) and in tokens.

    - `own`: the number of units that belong to the segment
    - `context`: the number of earlier units that are shown as context
    - `shown`: the number of all units, including the context
    - `tokens`: the number of tokens in all units, including the context
    """

    own: int
    context: int
    shown: int
    tokens: int


def limits_for_pages(count: int, size: int, call_limits: CallLimits) -> SegmentLimits:
    """Return the maximum size of a segment of a file with `count` pages and `size` bytes.

    The segment is a range of pages that is sent in one model call.
    """
    page_bytes = max(1.0, size / count)
    own = min(MOST_OWN, max(LEAST_OWN, int(OWN_BYTES / page_bytes)))
    shown = max(1, min(own + MOST_CONTEXT, call_limits.pages, int(call_limits.bytes / page_bytes)))
    return SegmentLimits(min(own, shown), MOST_CONTEXT, shown, call_limits.tokens)


def limits_for_chunks(tokens: Sequence[int], call_limits: CallLimits) -> SegmentLimits:
    """Return the maximum size of a segment that consists of chunks, for a document without pages.

    The segment contains about as much text as one that consists of pages.
    """
    chunk_tokens = max(1.0, sum(tokens) / max(1, len(tokens)))
    own = max(1, int(MOST_OWN * PAGE_OF_TEXT_TOKENS / chunk_tokens))
    context = int(MOST_CONTEXT * PAGE_OF_TEXT_TOKENS / chunk_tokens)
    return SegmentLimits(own, context, own + context, call_limits.tokens)


def plan_segments(tokens: Sequence[int], limits: SegmentLimits) -> list[Segment]:
    """Divide a document into segments. `tokens` lists the estimated number of tokens of each unit (page or chunk).

    A unit that exceeds the limits gets a separate segment.
    """
    sums = list(accumulate(tokens, initial=0))

    def fits(first: int, last: int) -> bool:
        return last - first < limits.shown and sums[last] - sums[first - 1] <= limits.tokens

    segments: list[Segment] = []
    last = 0
    while last < len(tokens):
        first = last + 1
        most = min(first + limits.own - 1, len(tokens))
        last = next((end for end in range(most, first, -1) if fits(first, end)), first)
        earliest = max(1, first - limits.context)
        context = next((start for start in range(earliest, first) if fits(start, last)), first)
        segments.append(Segment(first, last, context))
    return segments


def subdivide(segment: Segment) -> list[Segment]:
    """Split a segment that was too long for the model.

    A segment of more than 80 units (pages or chunks) is split into parts of up to 80 units, and a shorter one into
    halves. Each part has as much context before it as the segment had, within these limits:

    - at least a third of the length of the part
    - at most the full length of the part
    - for the first part, never more than the segment had

    A segment with a single unit is returned without its context. If it has no context, the result is empty.
    """
    if segment.own == 1:
        return [Segment(segment.first, segment.last, segment.first)] if segment.context_first < segment.first else []
    number = ceil(segment.own / CUT_OWN) if segment.own > CUT_OWN else 2
    borders = [segment.first + segment.own * place // number for place in range(number + 1)]
    parts: list[Segment] = []
    for first, behind in pairwise(borders):
        own = behind - first
        context = max(min(segment.first - segment.context_first, own), own // PART_CONTEXT)
        parts.append(Segment(first, behind - 1, max(segment.context_first, first - context)))
    return parts


@dataclass(frozen=True, slots=True)
class Coverage:
    """The gaps and overlaps between segments.

    `missing`: ranges of pages or chunks that are in no segment. `doubled`: ranges that are in several segments. Ranges
    include both ends.
    """

    missing: tuple[tuple[int, int], ...]
    doubled: tuple[tuple[int, int], ...]

    @property
    def is_complete(self) -> bool:
        return not (self.missing or self.doubled)

    def explain(self, unit: str) -> str:
        reasons = [f"{unit} {_name(self.missing)} are missing"] if self.missing else []
        reasons += [f"{unit} {_name(self.doubled)} are covered twice"] if self.doubled else []
        return "; ".join(reasons) or f"all {unit} are covered once"


def check_coverage(ranges: Iterable[tuple[int, int]], count: int) -> Coverage:
    """Check that each of `count` units (pages or chunks) is in exactly one of the `ranges`."""
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
        doubled.append((count + 1, reached))  # units beyond the end do not exist
    return Coverage(tuple(missing), tuple(doubled))


def _name(ranges: tuple[tuple[int, int], ...]) -> str:
    named = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[:MOST_NAMED]]
    return ", ".join(named) + (" …" if len(ranges) > MOST_NAMED else "")
