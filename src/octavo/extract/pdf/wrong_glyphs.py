"""Corrects characters that were read wrongly from a PDF: symbols of TeX fonts that were read as letters, and accents
that are drawn as separate characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.letters import ACCENTS, Characters, with_accent
from octavo.extract.pdf.own_letters import replace_letters

# The symbols of TeX's symbol font whose names have no Unicode character, so that PDFium returns their codes.
_TEX_SYMBOLS = {"`": "⊢", "a": "⊣", "b": "⌊", "c": "⌋", "d": "⌈", "e": "⌉", "h": "⟨", "i": "⟩", "3": "∋", "7": "↦"}
# Hats and tildes over formulas, and the symbols of the font collection mathabx, whose codes PDFium reads as letters.
_WIDE_ACCENTS = dict.fromkeys("bcd", "\u0302") | dict.fromkeys("efg", "\u0303")
_LARGE_SYMBOL_FONT = re.compile(rb"cmex|lmmathextension", re.IGNORECASE)
_MATHABX = dict(zip("\u201cěďPpqrstu\u00b4\u02c6`", "=≥≤∈()[]{}\u2212\u00d7+", strict=True))
_MATHABX_FONT = re.compile(rb"math[ab]\d", re.IGNORECASE)
_TEX_SYMBOL_FONT = re.compile(rb"cmsy|cmbsy|lmmathsymbols", re.IGNORECASE)
_EURO_FONT = re.compile(rb"fey[mb]|eurosym", re.IGNORECASE)
_SUSPECT = re.compile(
    r"(?<![A-Za-z])h(?=\S)|(?<=\S)i(?![A-Za-z])|6(?==)|e(?=\s?\d)|(?<=\d)\s?e(?![A-Za-z])"
    r"|(?<![A-Za-z])[A-Za-z][b-g](?![a-z])"
)
_MATHABX_SIGN = re.compile("[\\w)q] ?[\u201cěď] ?[\\w(\u00b4]")
_MAY_BE_WRONG = re.compile(
    r"(?<![A-Za-z])h\S{1,40}i(?![A-Za-z])|[\[{(]h[a-z]|(?<![\d.,])6=|(?<![A-Za-z])[A-Z][bc](?=[(),;\sA-Z])|(?<![A-Za-z])e\d|\d\s?e(?![A-Za-z0-9])"
)
# Codes of TeX's fonts that have no names: the ligature "ff", and bullets at the start of a line.
_CODED = re.compile("[\x0f\x1b\x88]")
_CODED_FF = re.compile("(?<=[A-Za-z])\x1b")
_LIGATURES = str.maketrans({"\x1b": "ff", "\x1c": "fi", "\x1e": "ffi", "\x1f": "ffl", "\x02": "-", "\ufffe": "-"})
_CODED_BULLET = re.compile(r"(?:(?<=\A)|(?<=[\r\n]))[\x0f\x88](?=\s)")
_LATE_ACCENT = re.compile(f"[^\\W\\d_],? ?([{''.join(ACCENTS)}])(?=\\s|\\Z)")
_MOST_CHECKED = 500
_MOST_LETTERS = 2000
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
    if not own.isascii() and _MATHABX_SIGN.search(own):
        page, _ = replace_letters(page, read(), _mathabx_symbols(read().text, font_of))
    if _CODED.search(own):
        page, _ = replace_letters(page, read(), {found.start(): "ff" for found in _CODED_FF.finditer(read().text)})
        page = replace(page, runs=(*page.runs, *_coded_bullets(page, read())))
    if "\x1d" in own:
        page = _with_coded_ligatures(page, read())
    page = _with_accents(page, read()) if any(map(_is_accent, page.runs)) else page
    return _with_late_accents(page, read()) if not own.isascii() and _LATE_ACCENT.search(own) else page


def _with_coded_ligatures(page: PageContent, characters: Characters) -> PageContent:
    """Correct the ligature "fl" of TeX fonts without names, which liteparse reads as "Th"."""
    runs = list(page.runs)
    for found in islice(re.finditer("\x1d", characters.text), _MOST_CHECKED):
        box = characters.box(found.start())
        word = _word_around(characters.text, found.start(), "\x1d").translate(_LIGATURES)
        for number, run in enumerate(runs if box else ()):
            if not box or not _holds(run.box, box):
                continue
            words = tuple(
                one._replace(text=word.replace("\x1d", "fl"))
                if _reads_as(one.text, word) and _holds(Box(*one[:4]), box)
                else one
                for one in run.words
            )
            if words != run.words:
                runs[number] = run._replace(text=" ".join(one.text for one in words), words=words)
    return replace(page, runs=tuple(runs))


def _reads_as(text: str, word: str) -> bool:
    return text == word.replace("\x1d", "Th")


def _wrong_symbols(text: str, font_of: Callable[[int], bytes]) -> dict[int, str]:
    """Find characters that are really symbols of a TeX font. Maps the index of each character to the symbol.

    "≠" is stored as two characters: "=" and, before it, a slash that is read as "6".
    """
    found: dict[int, str] = {}
    for match in islice(_SUSPECT.finditer(text), _MOST_CHECKED):
        index = match.end() - 1
        font = font_of(index)
        if text[index] == "e" and _EURO_FONT.search(font):
            found[index] = "€"
        elif text[index] in _WIDE_ACCENTS and _LARGE_SYMBOL_FONT.search(font):
            found[index] = _WIDE_ACCENTS[text[index]]
        elif _TEX_SYMBOL_FONT.search(font):
            if text[index] == "6":
                found |= {index: "≠", index + 1: ""}
            elif text[index] in _TEX_SYMBOLS:
                found[index] = _TEX_SYMBOLS[text[index]]
    return found


def _mathabx_symbols(text: str, font_of: Callable[[int], bytes]) -> dict[int, str]:
    suspect = (index for index, letter in enumerate(text) if letter in _MATHABX)
    return {
        index: _MATHABX[text[index]] for index in islice(suspect, _MOST_LETTERS) if _MATHABX_FONT.search(font_of(index))
    }


def without_known_codes(own: str) -> str:
    """Replace the control characters in PDFium's text that stand for a bullet or for "ff"."""
    return _CODED_BULLET.sub("•", _CODED_FF.sub("ff", own)) if _CODED.search(own) else own


def _coded_bullets(page: PageContent, characters: Characters) -> Iterator[TextRun]:
    """Yield bullets that PDFium returns as control characters and liteparse leaves out."""
    for found in _CODED_BULLET.finditer(characters.text):
        box = characters.box(found.start())
        middle = (box.top + box.bottom) / 2 if box else 0.0
        level = (run for run in page.runs if box and run.box.top < middle < run.box.bottom and run.box.left > box.left)
        beside = min(level, key=lambda run: run.box.left, default=None)
        if box and beside:
            place = Box(box.left, beside.box.top, box.right, beside.box.bottom)
            yield beside._replace(box=place, text="•", words=(Word(*place, "•"),), bold=False, tag=None)


def _with_accents(page: PageContent, characters: Characters) -> PageContent:
    """Join accents that are separate text runs with the letters below them.

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


def _with_late_accents(page: PageContent, characters: Characters) -> PageContent:
    """Join accents with their letters if they are stored after the word, although they are drawn above one of its
    letters.
    """
    runs = list(page.runs)
    for found in islice(_LATE_ACCENT.finditer(characters.text), _MOST_ACCENTS):
        box = characters.box(found.end() - 1)
        place = next((at for at, run in enumerate(runs) if box and _holds(run.box, box)), None)
        if box and place is not None:
            runs[place] = _with_late_accent(runs[place], found[1], box, characters)
    return replace(page, runs=tuple(runs))


def _with_late_accent(run: TextRun, accent: str, box: Box, characters: Characters) -> TextRun:
    words = [word for word in run.words if word.text != accent or not _holds(Box(*word[:4]), box)]
    at = next((at for at, word in enumerate(words) if _holds(Box(*word[:4]), box)), None)
    below = next(_letters_below(run._replace(box=box, text=accent), characters), None)
    whole = with_accent(accent, below[1]) if below else ""
    if at is None or below is None or not whole:
        return run
    index, letter = below
    start = _WORD_START.search(characters.text, max(index - _LONGEST, 0), index)
    skipped = start[0].count(letter) if start else 0
    parts = words[at].text.replace(accent, "", 1).split(letter)
    if len(parts) <= skipped + 1:
        return run
    text = letter.join(parts[: skipped + 1]) + whole + letter.join(parts[skipped + 1 :])
    words[at] = words[at]._replace(text=text)
    return run._replace(text=" ".join(word.text for word in words), words=tuple(words))


def _holds(one: Box, other: Box) -> bool:
    across, down = (other.left + other.right) / 2, (other.top + other.bottom) / 2
    return one.left <= across <= one.right and one.top <= down <= one.bottom


def _word_around(text: str, index: int, letter: str) -> str:
    """Return the word that contains the character at `index`, with that character replaced by `letter`."""
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
