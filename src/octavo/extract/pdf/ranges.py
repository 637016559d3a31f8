"""Which pages make a batch."""

from __future__ import annotations

from collections.abc import Iterator

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
