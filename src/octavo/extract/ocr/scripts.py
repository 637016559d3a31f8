"""Finds the orientation and script (writing system) of a picture, and reads it with the OCR model of that script."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from PIL.Image import Image, Resampling, Transpose

from octavo.core.texts import ANY_LANGUAGE, SCRIPTS, scripts_of_language
from octavo.extract.extracted import Box
from octavo.extract.ocr.grey_sheets import GreySheet
from octavo.extract.ocr.order import Line
from octavo.extract.ocr.tesseract import ORIENTATION, Orientation, load_reader, open_reader

# Most models read their own script with a mean confidence of at least 0.83, and a different one with 0.26 to 0.73.
CERTAIN = 0.82
# The number of lines that are read with all models to find out which one fits.
SAMPLE_LINES = 3
# If lines are found only by a search for single words, and there are more than this, they are parts of a picture.
FEW_LINES = 3
SAMPLE_WIDTH = 20  # in line heights
# From this certainty on, the orientation that the model found is tried before the upright one.
SURE_TURN = 1.0
# Below the first certainty, a copy with this longest side is read in all orientations. Another orientation is chosen
# if it has this many letters in clear words, and this many times as many as the first one.
UNSURE_TURN, TURNING_SIDE = 0.7, 1000
LEAST_TURNED, MORE_TURNED = 6, 1.5
CLEAR, CLEAR_WORD = 0.7, 3
# From this certainty on, scripts with letters that look like Latin ones are not compared with Latin.
SURE_SCRIPT = 2.0
LIKE_LATIN = frozenset({"Armenian", "Cyrillic", "Greek"})
# Another model must fit better than the Latin one by this much, because most models also know Latin letters and digits.
BETTER = 0.05
IN_LATIN = frozenset({"Latin", "Vietnamese"})
# The share of letters with accents from which a page can be Vietnamese: there it is .2 to .4, in Hungarian .15.
MANY_ACCENTS = 0.12
# Lines of this height in pixels have letters of about 7 points at 200 dots per inch. They are read enlarged.
SMALL_PRINT, ENLARGED = 24, 1.5
# Scripts that the orientation model calls by other names. It cannot tell the two sets of Chinese characters apart.
_CALLED = {
    "Han": ("HanS", "HanT"),
    "Hiragana": ("Japanese",),
    "Katakana": ("Japanese",),
    "Korean": ("Hangul",),
    "Fraktur": ("Latin",),
}
_LINE_MARGIN = 0.3
# Fewer single letters may be a row of labels.
SCATTERED_LETTERS = 12


@dataclass(frozen=True, slots=True)
class UprightSheet:
    """The lines that were read from a picture, and the rotation that made the picture upright.

    The picture was rotated to the left by `quarters` quarter turns. `width` and `height` are its dimensions before the
    rotation.
    """

    lines: list[Line]
    width: int
    height: int
    quarters: int = 0
    script: str = "Latin"

    def before_rotation(self, box: Box) -> Box:
        """Convert a box to its position on the picture before the rotation."""
        left, top, right, bottom = box
        width, height = self.width, self.height
        match self.quarters:
            case 0:
                return box
            case 1:
                return Box(width - bottom, left, width - top, right)
            case 2:
                return Box(width - right, height - bottom, width - left, height - top)
            case _:
                return Box(top, height - right, bottom, height - left)


class Reading(NamedTuple):
    """The result of one OCR run: the lines, and the script (writing system) of the model that was used."""

    script: str
    lines: list[Line]

    @property
    def certainty(self) -> float:
        return certainty(self.lines)


def recognise_upright(sheet: GreySheet, language: str) -> UprightSheet:
    """Recognise a picture in any orientation. Boxes are in pixels of the original picture."""
    found = load_reader(ORIENTATION).find_orientation(sheet.sharp)
    candidates = _candidates(language, found)
    readings: dict[int, Reading] = {}
    # The detected orientation is often wrong for scripts that the model hardly knows. Most sheets are upright.
    turns = (found.quarters, 0) if found and found.certainty >= SURE_TURN else (0, found.quarters if found else 0)
    for quarters in dict.fromkeys(turns):
        readings[quarters] = _read_well(rotate_left(sheet.picture, quarters), candidates, language)
        if readings[quarters].certainty >= CERTAIN and readings[quarters].script in candidates:
            break
    quarters = max(readings, key=lambda turn: readings[turn].certainty)
    if readings[quarters].certainty < UNSURE_TURN:
        quarters, script = _better_turn(sheet.picture, quarters, readings[quarters].script, language)
        if quarters not in readings:
            readings[quarters] = _read_well(rotate_left(sheet.picture, quarters), (script,), language)
    width, height = (round(side / sheet.scale) for side in sheet.picture.size)
    lines, script = [scaled(line, sheet.scale) for line in readings[quarters].lines], readings[quarters].script
    return UprightSheet(lines, width, height, quarters, script)


def _better_turn(picture: Image, quarters: int, script: str, language: str) -> tuple[int, str]:
    """Read a small copy of a picture in all four orientations. Returns the best orientation and script.

    The given orientation is kept, unless clearly more letters can be read in another.
    """
    small = picture.copy()
    small.thumbnail((TURNING_SIDE, TURNING_SIDE), reducing_gap=2.0)
    scripts = dict.fromkeys((script, "Latin")) if language == ANY_LANGUAGE else (script,)
    turns = [(turn, one) for one in scripts for turn in range(4)]
    read = {pair: _clear_letters(load_reader(pair[1]).read_sparse(rotate_left(small, pair[0]))) for pair in turns}
    best = max(read, key=lambda pair: read[pair])
    better = read[best] >= LEAST_TURNED and read[best] > MORE_TURNED * read[quarters, script]
    return best if better else (quarters, script)


def _clear_letters(lines: Sequence[Line]) -> int:
    words = [word for line in lines if line.score >= CLEAR for word in line.text.split()]
    return sum(len(word) for word in words if len(word) >= CLEAR_WORD and word.isalnum())


def _read_well(upright: Image, candidates: tuple[str, ...], language: str) -> Reading:
    """Read a picture. If its print is small, also read an enlarged copy.

    Returns the reading with the higher confidence.
    """
    reading = read_script(upright, candidates, language)
    if not reading.lines or median(line.height for line in reading.lines) > SMALL_PRINT:
        return reading
    larger = upright.resize((round(upright.width * ENLARGED), round(upright.height * ENLARGED)), Resampling.BICUBIC)
    lines = [scaled(line, ENLARGED) for line in load_reader(reading.script).read(larger)]
    return max(reading, Reading(reading.script, lines), key=lambda one: one.certainty)


def rotate_left(picture: Image, quarters: int) -> Image:
    turns = {1: Transpose.ROTATE_90, 2: Transpose.ROTATE_180, 3: Transpose.ROTATE_270}
    return picture.transpose(turns[quarters]) if quarters else picture


def scaled(line: Line, scale: float) -> Line:
    return replace(line, box=Box(*(side / scale for side in line.box)))


def _candidates(language: str, found: Orientation | None) -> tuple[str, ...]:
    """Return the scripts (writing systems) to try first.

    If a language is given, these are the scripts of that language. Otherwise, the result contains only the detected
    script, or Latin if no script was detected. Latin is added if the detection is uncertain and the script is easily
    confused with Latin, such as Cyrillic.
    """
    if language != ANY_LANGUAGE:
        return scripts_of_language(language)
    if not found:
        return ("Latin",)
    named = tuple(script for script in _CALLED.get(found.script, (found.script,)) if script in SCRIPTS)
    alike = found.certainty < SURE_SCRIPT and LIKE_LATIN.intersection(named)
    return (*named, "Latin") if alike or not named else named


def read_script(upright: Image, candidates: tuple[str, ...], language: str = ANY_LANGUAGE) -> Reading:
    """Read a picture with the OCR model of each candidate script, and return the best reading.

    If no reading is certain and no language is given, also try the script that best fits a few sample lines.
    """
    readings = [_read(script, upright) for script in candidates]
    first = max(readings, key=lambda reading: reading.certainty + BETTER * (reading.script == "Latin"))
    if not first.lines or language != ANY_LANGUAGE:
        return first
    if first.certainty >= CERTAIN:
        return _with_accents(upright, first)
    best = best_script(upright, first.lines, first.script)
    if best in candidates:
        return first
    return max(first, _read(best, upright), key=lambda reading: reading.certainty)


def _with_accents(upright: Image, first: Reading) -> Reading:
    """If the text seems to be Vietnamese, read the picture again with the Vietnamese model.

    The Latin model misreads Vietnamese accents and still reports a high confidence.
    """
    letters = [letter for line in first.lines for letter in line.text if letter.isalpha()]
    accents = sum(not letter.isascii() for letter in letters)
    if first.script != "Latin" or accents < MANY_ACCENTS * len(letters):
        return first
    samples = _samples(upright, first.lines)
    is_better = fit("Vietnamese", samples).certainty > fit("Latin", samples).certainty + BETTER
    return _read("Vietnamese", upright) if is_better else first


def _read(script: str, upright: Image) -> Reading:
    """Read a picture with the OCR model of a script. If no lines are found, look for single words."""
    reader = load_reader(script)
    if lines := reader.read(upright):
        return Reading(script, lines)
    lines = reader.read_sparse(upright)
    return Reading(script, lines if len(lines) <= FEW_LINES else [])


def best_script(upright: Image, lines: Sequence[Line], first: str) -> str:
    samples = _samples(upright, lines)
    fits = [fit(script, samples) for script in dict.fromkeys((first, *SCRIPTS))]

    def rank(reading: Reading) -> float:
        return reading.certainty + BETTER * (reading.script == "Latin")

    best = max(fits, key=rank)
    if best.script not in IN_LATIN and _is_latin(best.lines):
        best = max((one for one in fits if one.script in IN_LATIN), key=rank)
    return best.script


def _samples(upright: Image, lines: Sequence[Line]) -> list[Image]:
    longest = sorted(lines, key=lambda line: line.width, reverse=True)[:SAMPLE_LINES]
    return [upright.crop(_around(line.box)) for line in longest]


def fit(script: str, samples: Sequence[Image]) -> Reading:
    reader = open_reader(script)
    lines = [line for sample in samples for line in reader.read_line(sample)]
    reader.close()
    return Reading(script, lines)


def _is_latin(lines: Sequence[Line]) -> bool:
    """Whether most letters are Latin.

    If so, the page is probably not in the script of the model that read them, because most models also recognise Latin
    letters.
    """
    letters = [letter for line in lines for letter in line.text if letter.isalpha()]
    return 2 * sum(unicodedata.name(letter, "").startswith("LATIN") for letter in letters) > len(letters)


def _around(box: Box) -> tuple[int, int, int, int]:
    """Return the area around the beginning of a line, which is used as a sample of the line.

    The area includes a margin, because Tesseract misreads letters at the edge of a picture.
    """
    left, top, right, bottom = box
    margin = _LINE_MARGIN * (bottom - top)
    right = min(right, left + SAMPLE_WIDTH * (bottom - top))
    return round(left - margin), round(top - margin), round(right + margin), round(bottom + margin)


def certainty(lines: Sequence[Line]) -> float:
    """Return the average confidence of the lines, weighted by length. Returns 0 if there are no lines.

    The value is halved if most words have only one letter.
    """
    letters = sum(len(line.text) for line in lines)
    mean = sum(line.score * len(line.text) for line in lines) / max(letters, 1)
    return mean / 2 if _is_scattered(lines) else mean


def _is_scattered(lines: Sequence[Line]) -> bool:
    """Whether most words are single letters.

    A model for the wrong script returns such text, sometimes with high confidence.
    """
    words = [word for line in lines for word in line.text.split() if word.isalpha()]
    single = sum(len(word) == 1 for word in words)
    return single >= SCATTERED_LETTERS and single > len(words) / 2
