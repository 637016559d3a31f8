"""Detects the type of a file from its first bytes.

The file name and media type count only if the bytes are ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import cast

import filetype

from octavo.extract.archives import locked_type, zipped_type
from octavo.extract.decode import encoding_of
from octavo.extract.extracted import SourceType
from octavo.extract.text_kinds import text_kind

HEAD_BYTES = 64 * 1024

# PDF readers accept a header anywhere in the first kilobyte, but a text that quotes a PDF header is not a PDF.
_PDF_AT_START = re.compile(rb"\s*(?:\xef\xbb\xbf)?%PDF-")
_PDF_OBJECT = re.compile(rb"\d+\s+\d+\s+obj\b")
_PDF_LEAD_BYTES = 1024
_PDF_LABELS = frozenset({".pdf", "application/pdf"})

_IMAGES = frozenset(
    {
        "image/avif",
        "image/bmp",
        "image/gif",
        "image/heic",
        "image/heif",
        "image/jpeg",
        "image/png",
        "image/tiff",
        "image/webp",
    }
)

# High Efficiency Image Format: more brands than `filetype` knows.
_HEIF = re.compile(rb".{4}ftyp(?:hei[cxms]|hev[cxms]|mif[12]|msf1|avi[fs])", re.DOTALL)

# Control characters allowed in text besides tab and newlines: form feed, escape, backspace, and the CP/M end mark.
_CONTROL = re.compile("[\x00-\x07\x0e-\x19\x1c-\x1f\x7f]")
_MOST_CONTROL = 0.01


def detect(head: bytes, filename: str = "", content_type: str = "") -> SourceType:
    """The type of a file. `head` contains the first `HEAD_BYTES` of the file, or the whole file."""
    suffix, media_type = _suffix(filename), _media_type(content_type)
    if head.startswith(b"PK\x03\x04"):
        return zipped_type(head, suffix, media_type)
    if _is_pdf(head, labelled=bool({suffix, media_type} & _PDF_LABELS)):
        return SourceType.PDF
    if head.lstrip().startswith(b"{\\rtf"):
        return SourceType.RTF
    if locked := locked_type(head, suffix, media_type):
        return locked
    text = readable_text(head)
    if text is not None:
        return text_kind(text, suffix, media_type)
    return SourceType.IMAGE if _is_image(head) else SourceType.OTHER


def readable_text(head: bytes) -> str | None:
    """Decode the first bytes of a file; None if they are not text. A character cut off at the end is dropped."""
    text = head.decode(encoding_of(head), errors="ignore")
    strange = sum(1 for _ in _CONTROL.finditer(text))
    return None if "\0" in text or strange > _MOST_CONTROL * len(text) else text


def _is_pdf(head: bytes, *, labelled: bool) -> bool:
    if _PDF_AT_START.match(head):
        return True
    lead = head[:_PDF_LEAD_BYTES]
    if b"%PDF-" in lead:
        return _PDF_OBJECT.search(head) is not None
    return labelled and _PDF_OBJECT.search(lead) is not None


def _is_image(head: bytes) -> bool:
    guess = cast("Callable[[bytes], str | None]", filetype.guess_mime)  # pyright: ignore[reportUnknownMemberType]
    return _HEIF.match(head) is not None or guess(head) in _IMAGES


def _suffix(filename: str) -> str:
    return PurePosixPath(filename.lower()).suffix


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
