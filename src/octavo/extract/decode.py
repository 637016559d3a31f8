"""Bytes of unknown encoding to text that can be stored. Whatever the bytes are, text comes out."""

from __future__ import annotations

import codecs
import re
import unicodedata

import chardet
from chardet import EncodingEra

# The marks of UTF-32 begin like those of UTF-16, so they come first.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Encodings of DOS and the old Macintosh are left out: short Western texts are taken for them more often than
# they are met.
_ERAS = EncodingEra.MODERN_WEB | EncodingEra.LEGACY_ISO
_SAMPLE_BYTES = 128 * 1024
_LEAD_BYTES = 1024
# Below it the guess rests on one or two characters, which are quotation marks or accents more often than Korean.
_LEAST_CONFIDENCE = 0.02
_FALLBACK = "cp1252"
_HEAD_BYTES = 4096
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_NEVER_IN_TEXT = frozenset({"Cc", "Cn"})  # control characters, and what Unicode has not assigned
_LAYOUT = re.compile("[\t\n\r\f]")

_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_ESCAPED_EAST_ASIAN = re.compile(rb"\x1b\$[@ABC()]|\x1b\([JI]")

_NEWLINES = re.compile("\r\n?|[\x0b\x85]")
# A character that was struck over, a colour for a terminal, and what has no business in text.
_ERASED = re.compile("[^\n]\x08|\x1b\\[[0-9;?]*[@-~]|[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")
_SUSPECT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")


def decode(data: bytes) -> str:
    """The text of a file: newlines are "\\n", and of the control characters only tab, newline and form feed stay."""
    return clean(data.decode(encoding_of(data), errors="replace"))


def clean(text: str) -> str:
    """What the database refuses or a reader never sees is gone; also for text that was no bytes of ours."""
    text = _NEWLINES.sub("\n", text)
    return _ERASED.sub("", text) if _SUSPECT.search(text) else text


def encoding_of(data: bytes) -> str:
    """The name of a codec that Python has."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding
    return _wide_encoding(data) or _escaped_encoding(data) or _utf8(data) or _detected(_sample(data))


def _wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, by the spaces, newlines and digits that all languages share."""
    head = data[:_HEAD_BYTES]
    if b"\0" not in head or len(data) % 2:
        return None
    share, encoding = max((_ascii_share(head, encoding), encoding) for encoding in _WIDE)
    # A stray zero makes no wide text of a narrow one; where the bytes are no UTF-8 a few newlines are proof enough.
    return encoding if share > (0.3 if _is_utf8(head) else 0.005) else None


def _ascii_share(head: bytes, encoding: str) -> float:
    """How much of the text is ASCII; nothing if it cannot be text at all."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return 0.0
    if any(unicodedata.category(character) in _NEVER_IN_TEXT for character in _LAYOUT.sub("", text)):
        return 0.0
    return sum(map(str.isascii, text)) / max(len(text), 1)


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _escaped_encoding(data: bytes) -> str | None:
    """ISO-2022, which is seven bits wide and would pass as ASCII."""
    found = _ESCAPED_EAST_ASIAN.search(data)
    return _detected(data[found.start() :][:_SAMPLE_BYTES]) if found else None


def _utf8(data: bytes) -> str | None:
    """UTF-8, also with a few broken places: no other encoding is right by chance for nine tenths of a text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        broken = text.count("\ufffd")
        right = len(text) - len(text.encode("ascii", "ignore")) - broken
        return "utf-8" if right > 9 * broken else None
    return "utf-8"


def _sample(data: bytes) -> bytes:
    """From where the text stops being ASCII, because the head alone may say nothing."""
    found = _NOT_ASCII.search(data)
    start = max(found.start() - _LEAD_BYTES, 0) if found else 0
    return data[start : start + _SAMPLE_BYTES]


def _detected(sample: bytes) -> str:
    guess = chardet.detect(sample, encoding_era=_ERAS, prefer_superset=True, compat_names=False)
    if not guess["encoding"] or guess["confidence"] < _LEAST_CONFIDENCE:
        return _FALLBACK
    try:
        return codecs.lookup(guess["encoding"]).name
    except LookupError:
        return _FALLBACK
