"""One page by what is seen of it, as a page that has its text in the file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.extract.ocr.blocks import blocks_of
from octavo.extract.ocr.engine import recognise
from octavo.extract.ocr.ink import has_ink
from octavo.extract.pdf.pages import PageText
from octavo.model.languages import ANY_LANGUAGE

if TYPE_CHECKING:
    from PIL.Image import Image


def recognise_page(
    picture: Image, number: int, label: str, *, scale: float = 1.0, language: str = ANY_LANGUAGE
) -> PageText:
    """`scale` is how many pixels of the picture make one unit of the page. A blank page is not looked at further."""
    width, height = (side / scale for side in picture.size)
    if not has_ink(picture):
        return PageText(number, label, width, height, recognised=True)
    blocks = blocks_of(recognise(picture, language), scale)
    return PageText(number, label, width, height, blocks, pictures=not blocks, recognised=True)
