"""Recognises the text of one page image. The result has the same form as a page with embedded text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from PIL import Image

from octavo.core.texts import ANY_LANGUAGE
from octavo.extract.extracted import Box
from octavo.extract.ocr.blocks import blocks_of
from octavo.extract.ocr.grey_sheets import (
    InkSheet,
    before_straightening,
    grey_sheet,
    has_ink,
    ink_sheet,
    straightened,
    tilt_of,
    unread_letters,
)
from octavo.extract.ocr.order import Line
from octavo.extract.ocr.scripts import UprightSheet, certainty, recognise_upright, rotate_left, scaled
from octavo.extract.ocr.tesseract import load_reader
from octavo.extract.pdf.page_batches import PageText

# A single letter is usually a shape in a picture, such as a ring or a pole.
LEAST_LETTERS = 2
# Measured on drawn pages (decision 14). In lines with a score below 0.5, a third of the letters were right; from 0.7
# on, nearly all. Pages below 0.55 had no correct word, pages below 0.8 at most 86 %. Scribbles reached 0.70.
LEAST_LINE = 0.5
SURE_PAGE = 0.8
LEAST_PAGE = 0.55
# Strokes in a photo are often mistaken for these characters.
STROKES = frozenset("\u30fc\u4e00\u4e28\u4e36\u30ce")
# The page is unsure if more than this share of the recognised letters was dropped.
MOST_LEFT_OUT = 0.25
# A page with fewer letters is unsure if any of its lines is below this confidence, which most print reaches.
FEW_LETTERS, SURE_LINE = 20, 0.8
# A page is read again if it has this many letters in rows that were not recognised. It is unsure if these letters
# are more than this share of the recognised ones.
SOME_UNREAD, MOST_UNREAD = 4, 0.05
# The longest sides of the copies that are read again.
COPY_SIDES = (1600, 1000)
# A page is also read again if more than this share has a dark or coloured background, unless it has many letters.
SOME_COLOURED, MANY_LETTERS = 0.02, 1000
# The most lines of these copies that are compared.
MOST_LINES = 1000
# Lines of these copies need a higher confidence and a word, because pictures are often mistaken for single letters.
LEAST_FOUND, LEAST_WORD = 0.7, 4
LEAST_FOUND_SHORT, LEAST_SHORT = 0.85, 2
# Lines that overlap by this share of the smaller line show the same text. The one with the highest score is kept: its
# confidence, plus a little for each letter, and a little if it is from the first reading.
MOST_OVERLAP = 0.3
LETTER_BONUS, MOST_BONUS, FIRST_BONUS = 0.02, 20, 0.03
# A vowel sign after a virama, or two different vowel signs in succession. No Indic script has them.
_IMPOSSIBLE = re.compile(
    r"[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d]"
    r"[\u093e-\u094c\u09be-\u09cc\u0a3e-\u0a4c\u0abe-\u0acc\u0b3e-\u0b4c\u0bbe-\u0bcc\u0c3e-\u0c4c\u0cbe-\u0ccc\u0d3e-\u0d4c]"
    r"|[\u093e-\u094c]{2}"
)
MISSED = "The page shows letters that could not be read, for example on a coloured background or in a drawing."
NO_TEXT = "The page is not blank, but no text on it could be recognised."
MAY_BE_WRONG = "The text was recognised with low confidence, for example because it is handwritten or the scan is poor."


def recognise_page(
    picture: Image.Image, number: int, label: str, *, scale: float = 1.0, language: str = ANY_LANGUAGE
) -> PageText:
    """Recognise the text of a page. `scale` is the number of pixels per page unit. OCR is skipped for a blank page."""
    width, height = (side / scale for side in picture.size)
    if not has_ink(picture):
        return PageText(number, label, width, height, recognised=True)
    tilt = tilt_of(picture)
    straight = straightened(picture, tilt) if tilt else picture
    upright = recognise_upright(grey_sheet(straight), language)
    read, unread = read_hidden(rotate_left(straight, upright.quarters), upright)
    lines = readable_lines(read)

    def place(box: Box) -> Box:
        """Convert a box from pixels of the upright picture to units of the displayed page."""
        turned = upright.before_rotation(box)
        on_picture = before_straightening(turned, tilt, picture.size, straight.size) if tilt else turned
        return Box(*(round(side / scale, 1) for side in on_picture))

    blocks = tuple(replace(one, box=place(one.box) if one.box else None) for one in blocks_of(lines, scale))
    unsure = MAY_BE_WRONG if lines and has_impossible_letters(upright.lines) else doubt_about(read, lines, unread)
    return PageText(number, label, width, height, blocks, pictures=not blocks, recognised=True, unsure=unsure)


def read_hidden(turned: Image.Image, upright: UprightSheet) -> tuple[list[Line], int]:
    """Read text that the first OCR run missed, unless the page was read well.

    Such text is very large, in a diagram, or on a dark or coloured background. Returns all lines, and the number of
    letters that are still unread.
    """
    ink, lines = ink_sheet(turned), upright.lines
    unread = unread_letters(ink, (line.box for line in lines if line.score >= LEAST_LINE))
    coloured = ink.coloured > SOME_COLOURED and _letters(lines) < MANY_LETTERS
    if not coloured and not _is_much(unread, lines) and certainty(lines) >= SURE_PAGE:
        return lines, unread
    reader = load_reader(upright.script)
    found = [scaled(line, copy.scale) for copy in _copies(turned, ink) for line in reader.read_sparse(copy.picture)]
    lines = join_readings(lines, found)
    return lines, unread_letters(ink, (line.box for line in lines if line.score >= LEAST_LINE))


def _copies(turned: Image.Image, ink: InkSheet) -> Iterator[InkSheet]:
    """Yield four copies of the page: two sizes, each in grey and with the background removed.

    A word that OCR misses in one copy can be readable in another.
    """
    for side in COPY_SIDES:
        scale = min(1.0, side / max(turned.size))
        size = max(1, round(turned.width * scale)), max(1, round(turned.height * scale))
        yield InkSheet(turned.convert("L").resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0), scale)
        yield InkSheet(ink.picture.resize(size, Image.Resampling.BICUBIC), scale)


def join_readings(lines: Sequence[Line], found: Sequence[Line]) -> list[Line]:
    """Combine the lines of the first OCR run on a page with `found`, the lines of further runs.

    Lines in `found` with a low confidence are skipped. If two lines overlap, the one with the higher score is kept. The
    score depends on the confidence and the number of letters. A line of the first run has a small advantage.
    """
    added: list[Line] = []
    for line in sorted(filter(_is_clear, found), key=_rank, reverse=True)[:MOST_LINES]:
        shown = [other for other in lines if _overlap(line.box, other.box) > MOST_OVERLAP]
        better = all(_rank(line) > _rank(other) + FIRST_BONUS for other in shown)
        if better and not any(_overlap(line.box, other.box) > MOST_OVERLAP for other in added):
            added.append(line)
    kept = [line for line in lines if not any(_overlap(line.box, other.box) > MOST_OVERLAP for other in added)]
    return kept + added


def _is_clear(line: Line) -> bool:
    longest = max(map(len, re.findall(r"\w+", line.text)), default=0)
    least = LEAST_FOUND if longest >= LEAST_WORD else LEAST_FOUND_SHORT
    return line.score >= least and longest >= LEAST_SHORT


def _rank(line: Line) -> float:
    return line.score + LETTER_BONUS * min(sum(map(str.isalnum, line.text)), MOST_BONUS)


def _overlap(one: Box, other: Box) -> float:
    """Return the area that two boxes share, as a fraction of the smaller box."""
    width = min(one.right, other.right) - max(one.left, other.left)
    height = min(one.bottom, other.bottom) - max(one.top, other.top)
    smaller = min((box.right - box.left) * (box.bottom - box.top) for box in (one, other))
    return width * height / max(smaller, 1) if width > 0 and height > 0 else 0.0


def readable_lines(lines: Sequence[Line]) -> list[Line]:
    """Remove lines that are probably not text, such as shapes in a picture.

    If hardly any text remains, remove all lines.
    """
    kept = [line for line in lines if line.score >= LEAST_LINE and any(map(str.isalnum, line.text))]
    letters = sum(len(line.text) for line in kept if not STROKES.issuperset(line.text.replace(" ", "")))
    enough = letters >= LEAST_LETTERS and certainty(kept) >= LEAST_PAGE
    return kept if enough else []


def doubt_about(read: Sequence[Line], kept: Sequence[Line], unread: int = 0) -> str | None:
    """Return the reason why the text of a page may be wrong or incomplete. Returns None if there is no doubt."""
    if not kept:
        return NO_TEXT
    left_out = 1 - _letters(kept) / max(_letters(read), 1)
    few = _letters(kept) < FEW_LETTERS and min(line.score for line in kept) < SURE_LINE
    if few or certainty(kept) < SURE_PAGE or left_out > MOST_LEFT_OUT:
        return MAY_BE_WRONG
    return MISSED if _is_much(unread, kept) else None


def _is_much(unread: int, lines: Sequence[Line]) -> bool:
    return unread >= max(SOME_UNREAD, MOST_UNREAD * _letters(lines))


def has_impossible_letters(lines: Sequence[Line]) -> bool:
    """Whether characters of an Indic script are in an impossible order. This happens when an OCR model guesses."""
    return any(_IMPOSSIBLE.search(line.text) for line in lines)


def _letters(lines: Sequence[Line]) -> int:
    return sum(len(line.text) for line in lines)
