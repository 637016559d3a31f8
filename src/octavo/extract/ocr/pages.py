"""One page by what is seen of it, as a page that has its text in the file is read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from octavo.core.languages import ANY_LANGUAGE
from octavo.extract.contract import Box
from octavo.extract.ocr.blocks import blocks_of
from octavo.extract.ocr.ink import has_ink
from octavo.extract.ocr.turning import Upright, recognise_upright
from octavo.extract.pdf.pages import PageBlock, PageText

if TYPE_CHECKING:
    from PIL.Image import Image

# One letter alone is a ring, a pole, or a cup seen from above.
LEAST_LETTERS = 2


def recognise_page(
    picture: Image, number: int, label: str, *, scale: float = 1.0, language: str = ANY_LANGUAGE
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
