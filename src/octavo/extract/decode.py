"""Decodes bytes of unknown encoding to text that the database can store. Never fails."""

# ruff: noqa: RUF001 - mathematical characters look like others

from __future__ import annotations

import codecs
import re
import unicodedata

import chardet
from chardet import EncodingEra

# UTF-32 byte order marks begin like those of UTF-16, so they are checked first.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# DOS and old Macintosh encodings are excluded: short Western texts are mistaken for them more often than they occur.
_ERAS = EncodingEra.MODERN_WEB | EncodingEra.LEGACY_ISO
_SAMPLE_BYTES = 128 * 1024
_LEAD_BYTES = 1024
# Below this, the guess depends on one or two characters. Those are more often quotation marks than Korean letters.
_LEAST_CONFIDENCE = 0.02
_FALLBACK = "cp1252"
_HEAD_BYTES = 4096
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_NEVER_IN_TEXT = frozenset({"Cc", "Cn"})  # control characters and unassigned code points
_LAYOUT = re.compile("[\t\n\r\f]")

_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_ESCAPED_EAST_ASIAN = re.compile(rb"\x1b\$[@ABC()]|\x1b\([JI]")

_NEWLINES = re.compile("\r\n?|[\x0b\x85]")
# Overstruck characters, terminal colours, control characters, and soft hyphens that are not shown.
_ERASED = re.compile(
    "[^\n]\x08|\x1b\\[[0-9;?]*[@-~]|[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ud800-\udfff]|(?<=\\w)\u00ad(?=\\w)"
)
_SUSPECT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\ufeff\ud800-\udfff]")

# The characters of the fonts Symbol and Wingdings by code. Office files store them as U+F020 to U+F0FF.
_SYMBOL_FROM_SPACE = (
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
    + "\ufffd" * 33
    + "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪\ufffd〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭\ufffd"
)
SYMBOL = {code: sign for code, sign in enumerate(_SYMBOL_FROM_SPACE, 0x20) if sign != "\ufffd"}
WINGDINGS = {
    0x22: "✂", 0x28: "☎", 0x2A: "✉", 0x45: "☜", 0x46: "☞", 0x4A: "☺", 0x4C: "☹", 0x6C: "●", 0x6D: "❍", 0x6E: "■",
    0x6F: "☐", 0x70: "❐", 0x71: "☐", 0x72: "☐", 0x73: "⧫", 0x74: "⧫", 0x75: "◆", 0x76: "❖", 0x77: "⬥", 0x78: "☒",
    0x9F: "•", 0xA0: "▪", 0xA1: "○", 0xA7: "▪", 0xA8: "☐", 0xAB: "★", 0xD8: "➢", 0xDF: "←", 0xE0: "→", 0xE1: "↑",
    0xE2: "↓", 0xE8: "➔", 0xF0: "⇨", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
# Codes that are more often characters of Symbol (∀, €, ↔) than of Wingdings, where the font is unknown.
_MOSTLY_SYMBOL = frozenset({0x22, 0xA0, 0xAB})
_SYMBOLS = re.compile("[\uf020-\uf0ff]")


def decode(data: bytes) -> str:
    """Decode the text of a file. Line endings become "\\n".

    Other control characters are removed, except tab and form feed.
    """
    return clean(data.decode(encoding_of(data), errors="replace"))


def clean(text: str) -> str:
    """Normalise line endings, and remove invisible characters and characters that the database rejects."""
    text = _NEWLINES.sub("\n", text)
    return _ERASED.sub("", text) if _SUSPECT.search(text) else text


def symbols_of(text: str, font: str = "") -> str:
    """Replace characters of symbol fonts with the same symbols in Unicode. An unknown character becomes U+FFFD."""
    return _SYMBOLS.sub(lambda found: _symbol(ord(found[0]) & 0xFF, font), text)


def _symbol(place: int, font: str) -> str:
    """Convert a character code of a symbol font to Unicode.

    If the font name is unknown, the font is assumed to be Symbol, or Wingdings if the code is rare in Symbol.
    """
    wingdings = WINGDINGS.get(place, "\ufffd")
    if "dings" in font.lower():
        return wingdings
    symbol = SYMBOL.get(place, "\ufffd")
    # The smile that Word puts in place of ":-)" is more frequent than the letter of Symbol.
    is_letter = symbol.isalnum() and wingdings != "☺"
    is_symbol = font or is_letter or symbol.isascii() or wingdings == "\ufffd" or place in _MOSTLY_SYMBOL
    return symbol if is_symbol else wingdings


def encoding_of(data: bytes) -> str:
    """Return the name of the Python codec that decodes these bytes."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding
    return _wide_encoding(data) or _escaped_encoding(data) or _utf8(data) or _detected(_sample(data))


def _wide_encoding(data: bytes) -> str | None:
    """Detect UTF-16 or UTF-32 without a byte order mark.

    Texts in all languages contain some ASCII characters: spaces, newlines and digits. So the encoding that results in
    the largest share of ASCII characters is chosen, if that share is large enough.
    """
    head = data[:_HEAD_BYTES]
    if b"\0" not in head or len(data) % 2:
        return None
    share, encoding = max((_ascii_share(head, encoding), encoding) for encoding in _WIDE)
    # One zero byte in valid UTF-8 is not enough evidence. If the bytes are not UTF-8, a few newlines are enough.
    return encoding if share > (0.3 if _is_utf8(head) else 0.005) else None


def _ascii_share(head: bytes, encoding: str) -> float:
    """Decode the bytes and return the share of ASCII characters.

    Returns 0 if the bytes cannot be text in this encoding.
    """
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
    """Detect an ISO-2022 encoding by its escape sequences.

    Such encodings use only seven bits, so they would otherwise be mistaken for ASCII.
    """
    found = _ESCAPED_EAST_ASIAN.search(data)
    return _detected(data[found.start() :][:_SAMPLE_BYTES]) if found else None


def _utf8(data: bytes) -> str | None:
    """Detect UTF-8, even if a few characters are damaged.

    More than nine tenths of the non-ASCII characters must be valid. Text in another encoding is unlikely to pass this
    test.
    """
    try:
        data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        broken = text.count("\ufffd")
        right = len(text) - len(text.encode("ascii", "ignore")) - broken
        return "utf-8" if right > 9 * broken else None
    return "utf-8"


def _sample(data: bytes) -> bytes:
    """Return the bytes around the first non-ASCII byte, for detecting the encoding.

    ASCII text alone does not show which encoding is used.
    """
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
