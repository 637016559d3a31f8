"""Which pages go into one call of a model, so that its answer fits and the next one can be joined to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from octavo.core.errors import TokenLimit

# What a page of print takes as Markdown, where nobody knows more.
PAGE_TOKENS = 600
_MARK_TOKENS = 10
_CHARACTERS_A_TOKEN = 4  # of ASCII; others take up to a token each


class PageRange(NamedTuple):
    """Both pages are part of it."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class CallLimits:
    """`output_tokens` is the model's own limit; only `filled` of it is planned for, because pages are estimated."""

    single_pages: int = 200
    batch_pages: int = 100
    overlap_pages: int = 10
    output_tokens: int = 65_536
    filled: float = 0.8

    @property
    def tokens(self) -> float:
        return self.output_tokens * self.filled


def estimate_tokens(text: str) -> int:
    """Of a page whose text is known, if only badly: rather too many than too few."""
    ascii_only = len(text.encode("ascii", errors="ignore"))
    return ascii_only // _CHARACTERS_A_TOKEN + len(text) - ascii_only + _MARK_TOKENS


def plan_calls(tokens: Sequence[int], limits: CallLimits | None = None) -> list[PageRange]:
    """One call for all pages, or calls that share some pages with the one before; `tokens` has one number a page.

    A page that is too long for any call has one of its own, and shares nothing.
    """
    limits = limits or CallLimits()
    if not tokens:
        return []
    if len(tokens) <= limits.single_pages and sum(tokens) <= limits.tokens:
        return [PageRange(1, len(tokens))]
    return list(_batches(tokens, limits))


def _batches(tokens: Sequence[int], limits: CallLimits) -> Iterator[PageRange]:
    sums = list(accumulate(tokens, initial=0))

    def fits(first: int, last: int) -> bool:
        return sums[last] - sums[first - 1] <= limits.tokens

    first, last = 1, 0
    while last < len(tokens):
        if last:
            # A part of the pages at most, or more would be read twice than once; and the next page still has to fit
            # behind those that are shared.
            shared = min(limits.overlap_pages, (last - first + 1) // 3)
            first = next((start for start in range(last + 1 - shared, last + 1) if fits(start, last + 1)), last + 1)
        most = min(first + limits.batch_pages - 1, len(tokens))
        last = next((end for end in range(most, last + 1, -1) if fits(first, end)), last + 1)
        yield PageRange(first, last)


def halve_call(pages: PageRange, limits: CallLimits) -> list[PageRange]:
    """Two calls in place of one whose answer was cut off. Raises `TokenLimit` where there is only one page."""
    count = pages.last - pages.first + 1
    if count == 1:
        raise TokenLimit(f"It is page {pages.first}.")
    middle = pages.first + count // 2
    shared = min(limits.overlap_pages, count // 6)
    return [PageRange(pages.first, middle - 1 + shared), PageRange(middle, pages.last)]


_MARK = re.compile(r"^[ \t]*<!--[ \t]*page[ \t]+(\d{1,9})[ \t]*-->[ \t]*$", re.MULTILINE | re.IGNORECASE)


def mark(page: int) -> str:
    return f"<!-- page {page} -->"


def find_marks(markdown: str) -> dict[int, int]:
    """The marked pages and where they begin."""
    places: dict[int, int] = {}
    for found in _MARK.finditer(markdown):
        places.setdefault(int(found[1]), found.start())
    return places
