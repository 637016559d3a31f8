"""Sheets that lie on their side or on their head: the engine reads what is turned to the right, and guesses else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from octavo.extract.extracted import Box
from octavo.extract.ocr.engine import recognise
from octavo.extract.ocr.lines import Line

if TYPE_CHECKING:
    from PIL.Image import Image

# Print that stands on its head is read with a certainty of about 0.6, and print that does not with 0.95 and more.
CERTAIN = 0.8
ENOUGH_LETTERS = 20
MOST = 0.7


@dataclass(frozen=True, slots=True)
class Upright:
    """Lines as they are when the sheet is turned the right way, by so many quarters to the left.

    `width` and `height` are those of the sheet before it was turned.
    """

    lines: list[Line]
    width: int
    height: int
    quarters: int = 0

    def as_it_lay(self, box: Box) -> Box:
        """A place on the sheet before it was turned."""
        left, top, right, bottom = box
        width, height = self.width, self.height
        match self.quarters:
            case 0:
                return box
            case 1:
                return Box(width - bottom, left, width - top, right)
            case 2:
                return Box(width - right, height - bottom, width - left, height - top)
            case _:
                return Box(top, height - right, bottom, height - left)


def recognise_upright(picture: Image, language: str) -> Upright:
    """What is on the picture, whichever side is up."""
    lines, quarters = recognise(picture, language), 0
    if _letters(lines) >= ENOUGH_LETTERS and _certainty(lines) < CERTAIN:
        turned = recognise(picture.rotate(180), language)
        if _weight(turned) > _weight(lines):
            lines, quarters = turned, 2
    width, height = picture.size
    if _letters([line for line in lines if line.is_upright]) > MOST * _letters(lines):
        # These lines run down the sheet, so that its right side is up.
        lines = [replace(line, box=turned_left(line.box, width)) for line in lines]
        quarters += 1
    return Upright(lines, width, height, quarters)


def turned_left(box: Box, width: int) -> Box:
    """A place on a sheet of this width, after the sheet was turned by a quarter."""
    return Box(box.top, width - box.right, box.bottom, width - box.left)


def _letters(lines: Sequence[Line]) -> int:
    return sum(len(line.text) for line in lines)


def _weight(lines: Sequence[Line]) -> float:
    return sum(line.score * len(line.text) for line in lines)


def _certainty(lines: Sequence[Line]) -> float:
    return _weight(lines) / max(_letters(lines), 1)
