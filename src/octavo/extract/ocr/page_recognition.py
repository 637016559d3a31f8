"""Recognises the text of one page image. The result has the same form as a page whose text is in the file."""

from __future__ import annotations

from dataclasses import replace

from PIL import Image, ImageChops, ImageFilter

from octavo.core.languages import ANY_LANGUAGE
from octavo.extract.extracted import Box
from octavo.extract.ocr.blocks import blocks_of
from octavo.extract.ocr.rotation import UprightSheet, recognise_upright
from octavo.extract.pdf.page_batches import PageBlock, PageText

# A single letter is usually a shape in a picture, such as a ring or a pole.
LEAST_LETTERS = 2


def recognise_page(
    picture: Image.Image, number: int, label: str, *, scale: float = 1.0, language: str = ANY_LANGUAGE
) -> PageText:
    """Recognise the text of a page. `scale` is the number of pixels per page unit. OCR is skipped for a blank page."""
    width, height = (side / scale for side in picture.size)
    if not has_ink(picture):
        return PageText(number, label, width, height, recognised=True)
    upright = recognise_upright(picture, language)
    found = blocks_of(upright.lines, scale) if sum(len(line.text) for line in upright.lines) >= LEAST_LETTERS else []
    blocks = tuple(_placed(block, upright, scale) for block in found)
    return PageText(number, label, width, height, blocks, pictures=not blocks, recognised=True)


def _placed(block: PageBlock, upright: UprightSheet, scale: float) -> PageBlock:
    """Convert the box of a block from pixels of the upright sheet to units of the displayed page."""
    if block.box is None:
        return block
    return replace(block, box=Box(*(round(side / scale, 1) for side in upright.before_rotation(block.box))))


_SIDE = 500
_MARGIN = 0.03  # scanners often show the edge of the paper
_GROUND = 8
# The contrast between a stroke and the paper in grey levels, and the number of such points in a page number.
_CONTRAST = 24
_LEAST_POINTS = 12


def has_ink(picture: Image.Image) -> bool:
    """Whether the page is not blank. This check is much faster than OCR.

    Faint print counts as ink; the paper grain and shadows of an empty sheet do not.
    """
    small = picture.convert("L")
    small.thumbnail((_SIDE, _SIDE), reducing_gap=2.0)
    width, height = small.size
    across, down = round(width * _MARGIN), round(height * _MARGIN)
    small = small.crop((across, down, width - across, height - down))
    ground = small.filter(ImageFilter.BoxBlur(_GROUND))
    return sum(ImageChops.difference(small, ground).histogram()[_CONTRAST:]) >= _LEAST_POINTS
