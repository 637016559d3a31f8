"""Recognises the text of one page image, and returns it like a page that has its text in the file."""

from __future__ import annotations

from dataclasses import replace

from PIL import Image, ImageChops, ImageFilter

from octavo.core.languages import ANY_LANGUAGE
from octavo.extract.extracted import Box
from octavo.extract.ocr.blocks import blocks_of
from octavo.extract.ocr.turning import Upright, recognise_upright
from octavo.extract.pdf.page_batches import PageBlock, PageText

# One letter alone is a ring, a pole, or a cup seen from above.
LEAST_LETTERS = 2


def recognise_page(
    picture: Image.Image, number: int, label: str, *, scale: float = 1.0, language: str = ANY_LANGUAGE
) -> PageText:
    """`scale` is how many pixels of the picture make one unit of the page. A blank page is not looked at further."""
    width, height = (side / scale for side in picture.size)
    if not has_ink(picture):
        return PageText(number, label, width, height, recognised=True)
    upright = recognise_upright(picture, language)
    found = blocks_of(upright.lines, scale) if sum(len(line.text) for line in upright.lines) >= LEAST_LETTERS else []
    blocks = tuple(_placed(block, upright, scale) for block in found)
    return PageText(number, label, width, height, blocks, pictures=not blocks, recognised=True)


def _placed(block: PageBlock, upright: Upright, scale: float) -> PageBlock:
    """In units of the page, where it is seen."""
    if block.box is None:
        return block
    return replace(block, box=Box(*(round(side / scale, 1) for side in upright.as_it_lay(block.box))))


_SIDE = 500
_MARGIN = 0.03  # where scanners leave the edge of the paper
_GROUND = 8
# Grey levels between a stroke and the paper around it, and how many such points a number at the foot of a page has.
_CONTRAST = 24
_LEAST_POINTS = 12


def has_ink(picture: Image.Image) -> bool:
    """Also faint print counts; the grain and the shadows of an empty sheet do not."""
    small = picture.convert("L")
    small.thumbnail((_SIDE, _SIDE), reducing_gap=2.0)
    width, height = small.size
    across, down = round(width * _MARGIN), round(height * _MARGIN)
    small = small.crop((across, down, width - across, height - down))
    ground = small.filter(ImageFilter.BoxBlur(_GROUND))
    return sum(ImageChops.difference(small, ground).histogram()[_CONTRAST:]) >= _LEAST_POINTS
