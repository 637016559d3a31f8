"""Plans which pages go into each model call.

The answer to a call must fit within the model's output limit. Consecutive calls share pages, so that their answers can
be joined. The prompt asks the model to write a marker line before each page, so that each page can be found in the
answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from octavo.core.errors import TokenLimit

# Estimate for a printed page as Markdown, if its text is unknown.
PAGE_TOKENS = 600
_MARKER_TOKENS = 10
_CHARACTERS_PER_TOKEN = 4  # for ASCII; other characters take up to one token each
_MARKER = re.compile(r"^[ \t]*<!--[ \t]*page[ \t]+(\d{1,9})[ \t]*-->[ \t]*$", re.MULTILINE | re.IGNORECASE)


class PageRange(NamedTuple):
    """A range of page numbers. `first` and `last` are included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits for planning model calls.

    A document of up to `single_pages` pages is read in one call. A longer one is split into calls of `batch_pages`
    pages, and neighbouring calls share `overlap_pages` pages. `output_tokens` is the largest number of tokens that the
    model can return. Calls are planned to use only the fraction `filled` of it, because page lengths are estimates.
    """

    single_pages: int = 200
    batch_pages: int = 100
    overlap_pages: int = 10
    output_tokens: int = 65_536
    filled: float = 0.8

    @property
    def tokens(self) -> float:
        return self.output_tokens * self.filled


def estimate_tokens(text: str) -> int:
    """Estimate how many output tokens a page needs, from a rough version of its text.

    The estimate is deliberately high.
    """
    ascii_only = len(text.encode("ascii", errors="ignore"))
    return ascii_only // _CHARACTERS_PER_TOKEN + len(text) - ascii_only + _MARKER_TOKENS


def plan_calls(tokens: Sequence[int], limits: CallLimits | None = None) -> list[PageRange]:
    """Plan the model calls that read a document: one call for all pages if they fit, or else several overlapping calls.
    `tokens` contains the estimated output tokens of each page. A single page that exceeds the limit still gets its own
    call.
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
            # Share at most a third of the pages, so that most are read only once. The next page must still fit after
            # the shared ones.
            shared = min(limits.overlap_pages, (last - first + 1) // 3)
            first = next((start for start in range(last + 1 - shared, last + 1) if fits(start, last + 1)), last + 1)
        most = min(first + limits.batch_pages - 1, len(tokens))
        last = next((end for end in range(most, last + 1, -1) if fits(first, end)), last + 1)
        yield PageRange(first, last)


def halve_call(pages: PageRange, limits: CallLimits) -> list[PageRange]:
    """Split a call whose answer was too long, and therefore cut off, into two calls.

    Raises `TokenLimit` if the call has only one page.
    """
    count = pages.last - pages.first + 1
    if count == 1:
        raise TokenLimit(f"Affected: page {pages.first}.")
    middle = pages.first + count // 2
    shared = min(limits.overlap_pages, count // 6)
    return [PageRange(pages.first, middle - 1 + shared), PageRange(middle, pages.last)]


def page_marker(page: int) -> str:
    return f"<!-- page {page} -->"


def find_page_markers(markdown: str) -> dict[int, int]:
    """Find the page markers that the model wrote. Maps each page number to the offset of its marker in the text."""
    places: dict[int, int] = {}
    for found in _MARKER.finditer(markdown):
        places.setdefault(int(found[1]), found.start())
    return places
