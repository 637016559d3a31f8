"""Scans for tests: sheets of paper with print on them, small enough to be recognised quickly, and PDFs of them."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image

from octavo.extract.pdf.document import open_document, render
from tests.support.pdf import Part, Pdf, Words


def sheet(parts: Sequence[Part], folder: Path, *, height: int = 396, scale: float = 1.5) -> Image.Image:
    """A page as a scanner sees it; its upper half, unless something else is said."""
    path = folder / "sheet.pdf"
    path.write_bytes(Pdf([parts]).write())
    with open_document(path) as document:
        whole = render(document, 1, scale)
    return whole.crop((0, 0, whole.width, round(height * scale)))


def lines(text: Sequence[str], *, top: float, left: float = 72, size: float = 12) -> list[Words]:
    return [Words(line, left, top + number * size * 1.3, size) for number, line in enumerate(text)]


def scanned_pdf(sheets: Sequence[Image.Image], points: float = 1.5) -> bytes:
    """Sheets that were scanned with so many pixels for each point."""
    body = BytesIO()
    first, *others = sheets
    first.save(body, "PDF", save_all=True, append_images=others, resolution=72 * points)
    return body.getvalue()


def saved(picture: Image.Image, kind: str, **more: object) -> bytes:
    body = BytesIO()
    picture.save(body, kind, **more)
    return body.getvalue()
