"""Recognises the text of one page image. The result has the same form as a page whose text is in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PIL import Image

from octavo.core.languages import ANY_LANGUAGE
from octavo.extract.extracted import Box
from octavo.extract.ocr.blocks import blocks_of
from octavo.extract.ocr.grey_sheets import grey_sheet, has_ink
from octavo.extract.ocr.order import Line
from octavo.extract.ocr.scripts import UprightSheet, certainty, recognise_upright
from octavo.extract.pdf.page_batches import PageBlock, PageText

# A single letter is usually a shape in a picture, such as a ring or a pole.
LEAST_LETTERS = 2
# Rendered and scanned print was read with a mean confidence of 0.83 to 0.97. The three limits below that were chosen,
# not measured: they were tried on random pixels and scribbles only, and on no handwriting.
LEAST_LINE = 0.4
SURE_PAGE = 0.68
LEAST_PAGE = 0.45
# The page is unsure if more than this share of what was read was left out.
MOST_LEFT_OUT = 0.25
NO_TEXT = "The page shows something that could not be read as text."
MAY_BE_WRONG = "The text was recognised with low confidence, for example because it is handwritten or a bad scan."


def recognise_page(
    picture: Image.Image, number: int, label: str, *, scale: float = 1.0, language: str = ANY_LANGUAGE
) -> PageText:
    """Recognise the text of a page. `scale` is the number of pixels per page unit. OCR is skipped for a blank page."""
    width, height = (side / scale for side in picture.size)
    if not has_ink(picture):
        return PageText(number, label, width, height, recognised=True)
    upright = recognise_upright(grey_sheet(picture), language)
    lines = readable_lines(upright.lines)
    blocks = tuple(_placed(block, upright, scale) for block in blocks_of(lines, scale))
    unsure = doubt_about(upright.lines, lines)
    return PageText(number, label, width, height, blocks, pictures=not blocks, recognised=True, unsure=unsure)


def readable_lines(lines: Sequence[Line]) -> list[Line]:
    """The lines without those that are shapes in a picture; none if hardly anything is left."""
    kept = [line for line in lines if line.score >= LEAST_LINE and any(map(str.isalnum, line.text))]
    enough = _letters(kept) >= LEAST_LETTERS and certainty(kept) >= LEAST_PAGE
    return kept if enough else []


def doubt_about(read: Sequence[Line], kept: Sequence[Line]) -> str | None:
    """Why the text of a page may be wrong or incomplete; None if it is sure."""
    if not kept:
        return NO_TEXT
    left_out = 1 - _letters(kept) / max(_letters(read), 1)
    return MAY_BE_WRONG if certainty(kept) < SURE_PAGE or left_out > MOST_LEFT_OUT else None


def _letters(lines: Sequence[Line]) -> int:
    return sum(len(line.text) for line in lines)


def _placed(block: PageBlock, upright: UprightSheet, scale: float) -> PageBlock:
    """Convert the box of a block from pixels of the upright sheet to units of the displayed page."""
    if block.box is None:
        return block
    return replace(block, box=Box(*(round(side / scale, 1) for side in upright.before_rotation(block.box))))
