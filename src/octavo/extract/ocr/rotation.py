"""Finds the rotation of a sheet. The engine reads only upright text and text rotated to the right by a quarter turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from octavo.extract.extracted import Box
from octavo.extract.ocr.engine import recognise
from octavo.extract.ocr.lines import Line

if TYPE_CHECKING:
    from PIL.Image import Image

# Upside-down print is read with a confidence of about 0.6, upright print with 0.95 and more.
CERTAIN = 0.8
ENOUGH_LETTERS = 20
MOST = 0.7


@dataclass(frozen=True, slots=True)
class UprightSheet:
    """The lines of a sheet after it was rotated to the left by `quarters` quarter turns, so that it is upright.

    `width` and `height` are those of the sheet before the rotation.
    """

    lines: list[Line]
    width: int
    height: int
    quarters: int = 0

    def before_rotation(self, box: Box) -> Box:
        """Convert a box to its position on the sheet before the rotation."""
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


def recognise_upright(picture: Image, language: str) -> UprightSheet:
    """Recognise the text of an image in any orientation."""
    lines, quarters = recognise(picture, language), 0
    if _letters(lines) >= ENOUGH_LETTERS and _certainty(lines) < CERTAIN:
        turned = recognise(picture.rotate(180), language)
        if _weight(turned) > _weight(lines):
            lines, quarters = turned, 2
    width, height = picture.size
    if _letters([line for line in lines if line.is_vertical]) > MOST * _letters(lines):
        # Most lines run from top to bottom, so the right side of the sheet is its top.
        lines = [replace(line, box=rotated_left(line.box, width)) for line in lines]
        quarters += 1
    return UprightSheet(lines, width, height, quarters)


def rotated_left(box: Box, width: int) -> Box:
    """The position of a box after its sheet, which is `width` wide, was rotated left by a quarter turn."""
    return Box(box.top, width - box.right, box.bottom, width - box.left)


def _letters(lines: Sequence[Line]) -> int:
    return sum(len(line.text) for line in lines)


def _weight(lines: Sequence[Line]) -> float:
    return sum(line.score * len(line.text) for line in lines)


def _certainty(lines: Sequence[Line]) -> float:
    return _weight(lines) / max(_letters(lines), 1)
