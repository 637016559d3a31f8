"""Treats an image file as a document with one page per sheet. Most images have one sheet. Runs in the sandbox."""

from __future__ import annotations

import re
from pathlib import Path

from PIL import Image

from octavo.core.errors import TooLarge
from octavo.core.languages import ANY_LANGUAGE
from octavo.extract.extracted import Metadata
from octavo.extract.ocr.grey_sheets import reading_scale
from octavo.extract.pdf.letters import one_line
from octavo.extract.pdf.page_batches import PageText, PdfFacts
from octavo.extract.pictures.image_files import count_sheets, fit_image, open_picture, seek_sheet

MOST_SHEETS = 2000
_TAKEN, _CAMERA = 0x9003, 0x0110
_DETAILS = 0x8769
_MOST_NAME = 100
_DATE = re.compile(r"(\d{4}):(\d\d):(\d\d)")


def open_sheets(path: Path) -> PdfFacts:
    """Read the facts of an image file. Raises `BadInput` if the file is damaged, and `TooLarge`."""
    with open_picture(path) as picture:
        sheets = count_sheets(picture)
        if sheets > MOST_SHEETS:
            raise TooLarge(f"It has {sheets:,} sheets; the limit is {MOST_SHEETS:,}.")
        return PdfFacts(sheets, metadata=_metadata(picture))


def read_sheet(path: Path, number: int, language: str = ANY_LANGUAGE) -> PageText:
    """Recognise the text of a sheet; positions are in pixels of the upright image."""
    # Imported late: loading the engine takes a second, and opening the file does not need it.
    from octavo.extract.ocr.page_recognition import recognise_page

    with open_picture(path) as picture:
        seek_sheet(picture, number)
        longest = max(picture.size)
        shown = fit_image(picture, round(longest * min(1.0, reading_scale(*picture.size))))
    scale = max(shown.size) / longest
    return recognise_page(shown, number, str(number), scale=scale, language=language)


def _metadata(picture: Image.Image) -> Metadata:
    exif = picture.getexif()
    taken, camera = exif.get_ifd(_DETAILS).get(_TAKEN), exif.get(_CAMERA)
    date = _DATE.match(taken) if isinstance(taken, str) else None
    extra = {"camera": one_line(camera)[:_MOST_NAME]} if isinstance(camera, str) else {}
    return Metadata(date="-".join(date.groups()) if date else None, extra=extra)
