"""Which pages make a batch, and pages as people name them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from octavo.extract.pdf.pages import Batch, PageText

# Measured: beyond it the speed hardly grows, and the memory does.
BATCH_PAGES = 100


def batch_ranges(page_count: int, start: int = 1, size: int = BATCH_PAGES) -> Iterator[tuple[int, int]]:
    """The batches of a document from a page on, as the numbers of their first and last pages.

    Their borders are the same wherever one starts, because how a page is read depends a little on its neighbours.
    """
    first = (start - 1) // size * size + 1
    for number in range(first, page_count + 1, size):
        yield number, min(number + size - 1, page_count)


def unreadable(first: int, last: int, reason: str) -> Batch:
    """Stands for pages whose reading ended the process that read them."""
    return Batch(tuple(PageText(number, str(number), None, None, failed=reason) for number in range(first, last + 1)))


def write_ranges(numbers: Iterable[int]) -> str:
    """As people write them: "1-3,7"."""
    runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    ends = [(run[0][1], run[-1][1]) for run in (list(group) for _, group in runs)]
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def read_ranges(written: str) -> Iterator[int]:
    for run in filter(None, written.split(",")):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)
