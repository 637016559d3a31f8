"""Letters as PDFs store them to letters as people write them."""

from __future__ import annotations

import re
import unicodedata

from octavo.extract.decode import clean

# Two letters in one sign, a hyphen that only a line's end shows, and bullets of the fonts that office programs use.
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
# PDFium's sign for a hyphen at the end of a line, alone or with the line's end.
_BROKEN_WORD = re.compile("(?<=\\w)[\x02\ufffe\u00ad][ \t]*(?:\r?\n[ \t]*|[ \t]+)?(?=\\w)")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-[ \t]*\n[ \t]*(?=[^\W\d_A-Z])")
_NOT_CHARACTERS = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LETTER = re.compile(r"[^\W\d_]")
_NO_LETTERS = re.compile("[\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]")
_MANY = 0.3


def clean_letters(text: str) -> str:
    """What the database refuses or a reader never sees is gone; line ends stay."""
    if text.isascii() and text.isprintable():
        return text
    text = clean(_BROKEN_WORD.sub("", text))
    if not text.isascii():
        text = _NOT_CHARACTERS.sub("", _STRANGE.sub(lambda found: _LIGATURES[found.group()], text))
        text = text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
    return text


def one_line(text: str) -> str:
    """Lines of one paragraph together; a word that a hyphen divides at the end of a line is whole again."""
    text = clean_letters(text)
    if "\n" in text:
        text = _HYPHENATED.sub("", text)
    return " ".join(text.split())


def is_meaningless(text: str) -> bool:
    """Whether many of its letters have no meaning, because the file does not say which letters its signs stand for."""
    if text.isascii():
        return False
    return len(_NO_LETTERS.findall(text)) > _MANY * len(text)


def count_letters(text: str) -> int:
    return len(_LETTER.findall(text))


def has_right_to_left(text: str) -> bool:
    return not text.isascii() and _RIGHT_TO_LEFT.search(text) is not None


def is_right_to_left(text: str) -> bool:
    """Whether most of its letters are of such a script."""
    if not has_right_to_left(text):
        return False
    return 2 * len(_RIGHT_TO_LEFT.findall(text)) > count_letters(text)
