"""Parsers as they are written first: no size is checked, nothing is counted."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

from octavo.sandbox import Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import JSON


@sandboxed
def read_zip(task: Task) -> JSON:
    with zipfile.ZipFile(task.input) as archive:
        members = [archive.read(name) for name in archive.namelist()]
    return sum(map(len, members))


@sandboxed
def read_pdf(task: Task) -> JSON:
    import pypdfium2

    opened: Any = pypdfium2.PdfDocument(task.input)
    with opened as document:
        outline = len(list(document.get_toc()))
        letters = 0
        for page in document:
            letters += len(page.get_textpage().get_text_bounded())
            page.render(scale=1).close()
        return [len(document), outline, letters]


@sandboxed
def read_picture(task: Task) -> JSON:
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    with Image.open(task.input) as picture:
        picture.load()
        return list(picture.size)
