"""Where passages stand on the pictures of their pages, whatever size a picture has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from octavo.web.reading.plan import Plan, Sheet

WHOLE = 10_000
USUAL_SIZE = (3, 4)
# A picture that is taller than this would leave no room for anything below it.
MOST_HEIGHT = 1.5


class Mark(NamedTuple):
    """A place on a page; its sides are in ten-thousandths of the page."""

    page: int
    left: int
    top: int
    right: int
    bottom: int


def marks_of(boxes: Iterable[Sequence[float]], plan: Plan) -> list[Mark]:
    """Of boxes as passages have them: page, left, top, right, bottom, in points. Pages without a size have none."""
    return [mark for box in boxes if (mark := _mark(box, plan.sheet_of(int(box[0]))))]


def _mark(box: Sequence[float], sheet: Sheet | None) -> Mark | None:
    if sheet is None or not sheet.width or not sheet.height:
        return None
    page, left, top, right, bottom = box
    across, down = WHOLE / sheet.width, WHOLE / sheet.height
    return Mark(int(page), round(left * across), round(top * down), round(right * across), round(bottom * down))


def usual_size(sheets: Iterable[Sheet]) -> tuple[int, int]:
    """Of most pages: the size of the frame that pictures are shown in, so that nothing moves from page to page."""
    sizes = Counter((round(one.width), round(one.height)) for one in sheets if one.width and one.height)
    width, height = sizes.most_common(1)[0][0] if sizes else USUAL_SIZE
    return max(width, 1), max(1, min(height, round(width * MOST_HEIGHT)))
