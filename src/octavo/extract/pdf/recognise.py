"""The text of a page that only shows it: drawn as a picture, and recognised there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from octavo.core.languages import ANY_LANGUAGE
from octavo.extract.ocr.pages import recognise_page
from octavo.extract.pdf.document import PageError, open_document
from octavo.extract.pdf.pages import PageText
from octavo.extract.pdf.pictures import fitting_scale, render
from octavo.extract.pdf.read import DAMAGED, label_of

# Pixels for each point, which makes 200 for each inch: letters of the usual size gain nothing by more.
SCALE = 200 / 72


def read_drawn(path: Path, number: int, password: str | None = None, language: str = ANY_LANGUAGE) -> PageText:
    """The page of this number, with places in points as it is seen."""
    with open_document(path, password) as document:
        label = label_of(document, number)
        try:
            with document.page(number) as page:
                width, height = page.size
            picture = render(document, number, SCALE)
        except PageError:
            return PageText(number, label, None, None, failed=DAMAGED)
    scale = fitting_scale(width, height, SCALE)
    found = recognise_page(picture, number, label, scale=scale, language=language)
    return replace(found, width=width, height=height)
