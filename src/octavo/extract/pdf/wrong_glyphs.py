"""Corrects characters that were read wrongly from a PDF: symbols of TeX fonts that were read as letters, accents that
are drawn as separate characters, and program listings whose letters are printed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice, pairwise
from statistics import median

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.letters import ACCENTS, Characters, with_accent
from octavo.extract.pdf.lines import box_around, is_monospaced
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
    r"(?<![A-Za-z])h(?=\S| [^\x00-\x7f])|(?<=\S)i(?![A-Za-z])|(?<=[^\x00-\x7f] )i(?![A-Za-z])"
    r"|6(?==)|e(?=\s?\d)|(?<=\d)\s?e(?![A-Za-z])"
    r"|(?<![A-Za-z])[A-Za-z][b-g](?![a-z])"
)
_MATHABX_SIGN = re.compile("[\\w)q] ?[\u201cěď] ?[\\w(\u00b4]")
_MAY_BE_WRONG = re.compile(
    r"(?<![A-Za-z])h(?:\S| \S{1,40} )\S{0,40}i(?![A-Za-z])"
    r"|[\[{(]h[a-z]|(?<![\d.,])6=|(?<![A-Za-z])[A-Z][bc](?=[(),;\sA-Z])|(?<![A-Za-z])e\d|\d\s?e(?![A-Za-z0-9])"
)
# Codes of TeX's fonts that have no names: the ligature "ff", and bullets at the start of a line.
_CODED = re.compile("[\x0f\x1b\x88]")
_CODED_FF = re.compile("(?<=[A-Za-z])\x1b")
_LIGATURES = str.maketrans({"\x1b": "ff", "\x1c": "fi", "\x1e": "ffi", "\x1f": "ffl", "\x02": "-", "\ufffe": "-"})
_CODED_BULLET = re.compile(r"(?:(?<=\A)|(?<=[\r\n]))[\x0f\x88](?=\s)")
_LATE_ACCENT = re.compile(f"[^\\W\\d_],? ?([{''.join(ACCENTS)}])(?=\\s|\\Z)")
_MOST_CHECKED = 500
_LEAST_SPREAD, _LEAST_LETTERS = 3, 8  # lines of a listing; letters of a line
_FEWEST_SINGLE, _SINGLE = 3, 0.4  # words of a single letter; share of the words
_SAME_PITCH, _MOSTLY_EXACT = 0.3, 0.85  # share of the width of a column; share of the letters
_SAME_WIDTH, _LEAST_ALIKE = 0.05, 0.25  # share of the width of a column; share of the lines
_WORD_GAP, _FITTING = 0.85, 0.8  # shares of the width of a column
_CODE_FONT = "Courier"
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
    page = replace(page, runs=tuple(map(_with_euro, page.runs)))
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


def _with_euro(run: TextRun) -> TextRun:
    """Correct a euro sign without text next to it, such as the header of a table column."""
    if run.text == "e" and _EURO_FONT.search(run.font.encode()):
        return run._replace(text="€", words=tuple(word._replace(text="€") for word in run.words))
    return run


def with_whole_listings(page: PageContent, read: Callable[[], Characters]) -> PageContent:
    """Join the letters of program listings in which TeX prints each letter separately, in columns of equal width.

    The font need not be monospaced. Each line becomes a text run in a monospaced font, with the spaces of the program.
    """
    numbered: list[tuple[list[TextRun], list[TextRun]]]
    numbered = [(line[:1], line[1:]) if _is_number(line[0]) else ([], line) for line in _text_lines(page.runs)]
    lines = [line for _, line in numbered if _is_spread(line)]
    if len(lines) < _LEAST_SPREAD:
        return page
    characters = read()
    letters = ((characters.box(index), letter) for index, letter in enumerate(characters.text) if letter.strip())
    places = [(box, letter) for box, letter in letters if box]
    inside = [_letters_of(line, places) for line in lines]
    fitting = [(pitch, line[0].size) for line, one in zip(lines, inside, strict=True) if (pitch := _pitch(one))]
    pitches, sizes = [pitch for pitch, _ in fitting], {round(size) for _, size in fitting}
    pitch = median(pitches) if pitches else 0.0
    alike = sum(abs(one - pitch) < _SAME_WIDTH * pitch for one in pitches)
    if alike < max(_LEAST_SPREAD, _LEAST_ALIKE * len(lines)):
        return page
    made: dict[TextRun, TextRun | None] = {}
    for line, found in zip(lines, inside, strict=True):
        if round(line[0].size) in sizes and (run := _whole_line(line[0], found, pitch)):
            made |= dict.fromkeys(line) | {line[0]: run}
    # The numbers of empty lines belong to the listing.
    edges = {round(number.box.right) for numbers, line in numbered for number in numbers if line and line[0] in made}
    numbers = (number for numbers, line in numbered for number in numbers if not line)
    made |= {one: one._replace(font=_CODE_FONT) for one in numbers if round(one.box.right) in edges}
    return replace(page, runs=tuple(one for run in page.runs if (one := made.get(run, run))))


def _is_number(run: TextRun) -> bool:
    return run.text.strip().isdecimal()


def _text_lines(runs: Sequence[TextRun]) -> list[list[TextRun]]:
    lines: list[list[TextRun]] = []
    middle = 0.0
    for run in sorted(runs, key=lambda run: run.box.top + run.box.bottom):
        at = (run.box.top + run.box.bottom) / 2
        if lines and at - middle < run.size / 2:
            lines[-1].append(run)
        else:
            lines.append([run])
            middle = at
    return [sorted(line, key=lambda run: run.box.left) for line in lines]


def _is_spread(line: Sequence[TextRun]) -> bool:
    """Whether many words of a line are single letters, in Latin script and not in a monospaced font."""
    words = [word.text for run in line for word in run.words]
    single = sum(len(word) == 1 and word.isascii() for word in words)
    if any(is_monospaced(run.font) for run in line):
        return False
    return single >= _FEWEST_SINGLE and _SINGLE * len(words) < single


def _letters_of(line: Sequence[TextRun], places: Sequence[tuple[Box, str]]) -> list[tuple[Box, str]]:
    around = box_around([run.box for run in line])
    inside = (one for one in places if around.top <= (one[0].top + one[0].bottom) / 2 <= around.bottom)
    return sorted(one for one in inside if around.left - 1 < one[0].left and one[0].right < around.right + 1)


def _pitch(letters: Sequence[tuple[Box, str]]) -> float:
    """Return the width of the columns in which the letters of a line are printed. Returns 0 if there are no columns."""
    middles = [(box.left + box.right) / 2 for box, _ in letters]
    steps = [other - one for one, other in pairwise(middles)]
    pitch = median(steps) if len(steps) >= _LEAST_LETTERS else 0.0
    cells = list(accumulate((round(step / pitch) for step in steps), initial=0)) if pitch > 0 else [0]
    if not cells[-1] or len(set(cells)) < len(cells):
        return 0.0
    pitch = (middles[-1] - middles[0]) / cells[-1]
    away = (middle - middles[0] - cell * pitch for middle, cell in zip(middles, cells, strict=True))
    return pitch if sum(abs(one) < _SAME_PITCH * pitch for one in away) >= _MOSTLY_EXACT * len(cells) else 0.0


def _whole_line(first: TextRun, letters: Sequence[tuple[Box, str]], pitch: float) -> TextRun | None:
    """Return the line of a listing. Returns None if its letters are not printed in columns of the given width.

    The gap between two letters of a word is narrower than a column.
    """
    if len(letters) < _FEWEST_SINGLE:
        return None
    words: list[list[tuple[Box, str]]] = []
    for before, one in zip([None, *letters], letters, strict=False):
        if before and one[0].left - before[0].right < _WORD_GAP * pitch:
            words[-1].append(one)
        else:
            words.append([one])
    steps = [(word[-1][0].right - word[0][0].left) / len(word) for word in words if len(word) > 1]
    if steps and not _FITTING * pitch < median(steps) < pitch / _FITTING:
        return None
    top, bottom = min(box.top for box, _ in letters), max(box.bottom for box, _ in letters)
    placed: list[Word] = []
    for word in words:
        middle, width = (word[0][0].left + word[-1][0].right) / 2, len(word) * pitch
        text = "".join(letter for _, letter in word)
        placed.append(Word(middle - width / 2, top, middle + width / 2, bottom, text))
    text = " ".join(word.text for word in placed)
    box = Box(placed[0].left, top, placed[-1].right, bottom)
    return first._replace(box=box, text=text, font=_CODE_FONT, bold=False, italic=False, words=tuple(placed))


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
    """If an accent is a separate text run, join it with the letter below it.

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
    """If an accent is stored after a word but drawn above one of its letters, join it with this letter."""
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
