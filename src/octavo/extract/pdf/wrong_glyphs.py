"""Finds characters that PDFium reads wrongly: symbols of TeX fonts that are read as letters, and accents that are drawn
as separate characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.letters import ACCENTS, Characters, with_accent
from octavo.extract.pdf.own_letters import replace_letters

# The symbols of TeX's symbol font whose names have no Unicode character, so that PDFium returns their codes.
_TEX_SYMBOLS = {"`": "⊢", "a": "⊣", "b": "⌊", "c": "⌋", "d": "⌈", "e": "⌉", "h": "⟨", "i": "⟩", "3": "∋", "7": "↦"}
_TEX_SYMBOL_FONT = re.compile(rb"cmsy|cmbsy|lmmathsymbols", re.IGNORECASE)
_EURO_FONT = re.compile(rb"fey[mb]|eurosym", re.IGNORECASE)
_SUSPECT = re.compile(
    r"(?<![A-Za-z])h(?=\S{1,40}i(?![A-Za-z]))|(?<=\S)i(?![A-Za-z])|6(?==)|e(?=\s?\d)|(?<=\d)\s?e(?![A-Za-z])"
)
_MAY_BE_WRONG = re.compile(r"(?<![A-Za-z])h\S{1,40}i(?![A-Za-z])|(?<![\d.,])6=|(?<![A-Za-z])e\d|\d\s?e(?![A-Za-z0-9])")
_MOST_CHECKED = 500
_MOST_ACCENTS = 50
_NEAR = 1.0  # points
_LONGEST = 50  # letters before a letter with an accent that can belong to its word
_WORD_START, _WORD_END = re.compile(r"\S*\Z"), re.compile(r"\S*")


def with_right_symbols(
    page: PageContent, own: str, read: Callable[[], Characters], font_of: Callable[[int], bytes]
) -> PageContent:
    """Correct symbols that were read as letters, and join accents with the letters below them.

    `own` is PDFium's text. `read` returns its characters with their positions, and `font_of` returns the font of a
    character. Both are called only if needed.
    """
    if _MAY_BE_WRONG.search(own):
        page, _ = replace_letters(page, read(), _wrong_symbols(read().text, font_of))
    return _with_accents(page, read()) if any(map(_is_accent, page.runs)) else page


def _wrong_symbols(text: str, font_of: Callable[[int], bytes]) -> dict[int, str]:
    """Map the indexes of characters that are symbols of a TeX font to these symbols.

    The slash through "=" is a separate symbol before it.
    """
    found: dict[int, str] = {}
    for match in islice(_SUSPECT.finditer(text), _MOST_CHECKED):
        index = match.end() - 1
        font = font_of(index)
        if text[index] == "e" and _EURO_FONT.search(font):
            found[index] = "€"
        elif _TEX_SYMBOL_FONT.search(font):
            if text[index] == "6":
                found |= {index: "≠", index + 1: ""}
            elif text[index] in _TEX_SYMBOLS:
                found[index] = _TEX_SYMBOLS[text[index]]
    return found


def _with_accents(page: PageContent, characters: Characters) -> PageContent:
    """Join accents that are text runs of their own with the letters below them.

    If liteparse left out the letter, the accent is replaced with the whole word from PDFium's text.
    """
    letters: dict[int, str] = {}
    below: dict[TextRun, int] = {}
    for accent in islice(filter(_is_accent, page.runs), _MOST_ACCENTS):
        for index, letter in _letters_below(accent, characters):
            if index not in letters and (whole := with_accent(accent.text.strip(), letter)):
                letters[index], below[accent] = whole, index
                break
    page, placed = replace_letters(page, characters, letters)
    runs: list[TextRun] = []
    for run in page.runs:
        if run not in below:
            runs.append(run)
        elif below[run] not in placed:
            word = _word_around(characters.text, below[run], letters[below[run]])
            runs.append(run._replace(text=word, words=(Word(*run.box, word),)))
    return replace(page, runs=tuple(runs))


def _word_around(text: str, index: int, letter: str) -> str:
    """Return the word of a character, with the character replaced by `letter`."""
    before, after = _WORD_START.search(text, max(index - _LONGEST, 0), index), _WORD_END.match(text, index + 1)
    return f"{before[0] if before else ''}{letter}{after[0] if after else ''}"


def _is_accent(run: TextRun) -> bool:
    return run.text.strip() in ACCENTS


def _letters_below(accent: TextRun, characters: Characters) -> Iterator[tuple[int, str]]:
    """Yield the letters that are centred below an accent, with their indexes."""
    middle = (accent.box.left + accent.box.right) / 2
    for index, letter in enumerate(characters.text):
        if not letter.isalpha() or not (box := characters.box(index)):
            continue
        is_level = abs(box.bottom - accent.box.bottom) < accent.size
        if is_level and abs((box.left + box.right) / 2 - middle) < max(_NEAR, 0.15 * accent.size):
            yield index, letter
