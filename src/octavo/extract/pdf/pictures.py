"""Pages of a PDF as pictures: to look at, and to recognise the text of pages that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.extract.pdf.document import Document

if TYPE_CHECKING:
    from PIL.Image import Image

# A page may say that it is as large as a house.
MOST_PIXELS = 20_000_000
MOST_SIDE = 8000


def render(document: Document, number: int, scale: float) -> Image:
    """A page as it is seen, on white; `scale` is pixels for each point, less where the picture would be too large.

    Raises `PageError` for a page that cannot be drawn.
    """
    with document.page(number) as page:
        return page.drawn(fitting_scale(*page.size, scale))


def fitting_scale(width: float, height: float, scale: float) -> float:
    """The largest scale up to this at which a page of so many points is a picture of bearable size."""
    by_side = MOST_SIDE / max(width, height, 1.0)
    by_area = (MOST_PIXELS / max(width * height, 1.0)) ** 0.5
    return min(scale, by_side, by_area)
