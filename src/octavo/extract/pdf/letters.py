"""Converts the characters that PDFs store to the characters that people write."""

from __future__ import annotations

import re
import unicodedata

from octavo.extract.decode import clean

# Ligatures, soft hyphens, special spaces, and bullets from the symbol fonts of office programs.
_LIGATURES = {
    "\ufb00": "ff",
    "\ufb01": "fi",
    "\ufb02": "fl",
    "\ufb03": "ffi",
    "\ufb04": "ffl",
    "\ufb05": "st",
    "\ufb06": "st",
    "\u00ad": "",
    "\u00a0": " ",
    "\u2002": " ",
    "\u2003": " ",
    "\u2009": " ",
    "\u200b": "",
    "\uf0b7": "•",
    "\uf0a7": "▪",
    "\uf0d8": "➢",
    "\uf0fc": "✓",
}
_STRANGE = re.compile("[\ufb00-\ufb06\u00ad\u00a0\u2002\u2003\u2009\u200b\uf0b7\uf0a7\uf0d8\uf0fc]")
# PDFium's character for a hyphen at the end of a line, with or without the line break.
_BROKEN_WORD = re.compile("(?<=\\w)[\x02\ufffe\u00ad][ \t]*(?:\r?\n[ \t]*|[ \t]+)?(?=\\w)")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-[ \t]*\n[ \t]*(?=[^\W\d_A-Z])")
_NOT_CHARACTERS = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LETTER = re.compile(r"[^\W\d_]")
_NO_LETTERS = re.compile("[\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]")
_MANY = 0.3


def clean_letters(text: str) -> str:
    """Remove characters that the database refuses or a reader never sees; line breaks are kept."""
    if text.isascii() and text.isprintable():
        return text
    text = clean(_BROKEN_WORD.sub("", text))
    if not text.isascii():
        text = _NOT_CHARACTERS.sub("", _STRANGE.sub(lambda found: _LIGATURES[found.group()], text))
        text = text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
    return text


def one_line(text: str) -> str:
    """Join the lines of a paragraph, and rejoin words hyphenated at the end of a line."""
    text = clean_letters(text)
    if "\n" in text:
        text = _HYPHENATED.sub("", text)
    return " ".join(text.split())


def is_meaningless(text: str) -> bool:
    """Whether the text is mostly garbage. This happens if the fonts do not map their glyphs to characters."""
    if text.isascii():
        return False
    return len(_NO_LETTERS.findall(text)) > _MANY * len(text)


def count_letters(text: str) -> int:
    return len(_LETTER.findall(text))


def has_right_to_left(text: str) -> bool:
    return not text.isascii() and _RIGHT_TO_LEFT.search(text) is not None


def is_right_to_left(text: str) -> bool:
    """Whether most letters belong to a right-to-left script."""
    if not has_right_to_left(text):
        return False
    return 2 * len(_RIGHT_TO_LEFT.findall(text)) > count_letters(text)
