"""Restores characters that the liteparse library replaces or leaves out, such as dashes, quotes, fractions and page
numbers.

The characters are taken from the text that PDFium reads from the same page.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from math import isfinite
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.letters import AS_RAISED, Characters, has_right_to_left

# The signs that liteparse writes as "-", "'" and '"'. PDFium has special characters for a hyphen at a line end.
_DASHES, _APOSTROPHES, _QUOTES = (
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "\u2018\u2019\u201a\u201b\u2032",
    "\u201c\u201d\u201e\u201f\u2033",
)
_LINE_END_HYPHENS = "\x02\ufffe\u00ad"
_ALIKE = (("-", _DASHES), ("'", _APOSTROPHES), ('"', _QUOTES))
_FOLDED = str.maketrans(
    {sign: plain for plain, signs in _ALIKE for sign in signs}
    | dict.fromkeys(_LINE_END_HYPHENS, "-")
    | {"\x1b": "ft"}  # the code of the ligature "ff", which liteparse reads wrongly
)
_SIGNS = re.compile(f"[{_DASHES}{_APOSTROPHES}{_QUOTES}]")
_UNFOLDED = str.maketrans(dict.fromkeys(_LINE_END_HYPHENS, "-"))
_ANY_SIGNS = re.compile(f"[-'\"{_DASHES}{_APOSTROPHES}{_QUOTES}{_LINE_END_HYPHENS}]")
_ALL_DOUBLED = re.compile(r"([^\W\d_])\1([^\W\d_])\2([^\W\d_])\3")
_DOUBLED = re.compile(r"([^\W_])(?=\1)")
_SECOND_PLANE = "\U00010000"  # letters from here on are restored elsewhere
_MARKS = frozenset(".,;:?!•")
_ARROW = "\u20d7"  # above the next letter; liteparse leaves it out
_BRACKETS = frozenset("()[]")
_FEW_MARKS, _MANY_MARKS = 5, 0.2
_LEADERS = re.compile(r"\.{3,}|(?:\. ){3,}")
_ROW = 16.0  # points
_SLACK = 0.5
_MOST_ROWS = 100
_MOST_EDITS = 3000  # per page
_MANY_LOST, _LARGE_SHARE = 60, 0.1  # letters; share of a page; if more are missing, it is on purpose
_LONGEST = 100  # the most characters before and after a changed one that can belong to its word
_LEAST_HEIGHT = 0.4  # as a share of the height of a line; smaller letters on it are not part of its text
_FRACTION_SLASHES = "\u2044/"
_JOINED = 0.12  # as a share of the letter size; parts closer than this are one word
_LONG_TEXT, _LEAST_LIGATURES = 500, 0.001  # letters, and the share of pairs in any text of European languages
_LEAST_I = 0.02  # of the letters of a text in a European language
_LOST_LETTERS = {"i": "f", "l": "f", "f": "f", "h": "T"}
_TWICE, _THREE_TIMES, _FEW_WIDE = 1.65, 3.0, 0.4
_MOST_PARTS = 6  # as a share of a word
_WORD_SPACE, _TOUCHING = 0.13, 0.02  # gaps, as a share of the height of a line
_SPACED = 2  # letters of the parts of a word that is printed with wide letter spacing, on average
_SAME_PLACE = 0.4  # as a share of the width and height of a letter


class _Edits(NamedTuple):
    """Corrections to liteparse's text.

    Characters are given by their index in PDFium's text. `signs` are dashes and quotes that liteparse replaced. `lost`
    are characters that liteparse left out. `doubled` are characters that are drawn twice; the second copy is removed.
    `raised` are superscript digits. `replaced` maps the index of a wrong character to the right text.
    """

    signs: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    doubled: frozenset[int] = frozenset()
    raised: frozenset[int] = frozenset()
    replaced: Mapping[int, str] = MappingProxyType({})

    def old(self, text: str, index: int) -> str:
        return "" if index in self.lost or text[index] == _ARROW else text[index].translate(_FOLDED)

    def new(self, text: str, index: int) -> str:
        if index in self.raised:
            return text[index].translate(AS_RAISED)
        if index in self.replaced:
            return self.replaced[index]
        return "" if index in self.doubled or text[index] == _ARROW else text[index].translate(_UNFOLDED)


class OwnLetters(NamedTuple):
    """A page after its text was completed with letters from PDFium.

    `missing` is the number of letters that are still missing. `misses_digits` is true if digits may be among them.
    """

    page: PageContent
    missing: int = 0
    misses_digits: bool = False


def with_own_letters(page: PageContent, own: str, read: Callable[[], Characters]) -> OwnLetters:
    """Restore the dashes and quotes that liteparse replaced, and the letters that it left out.

    `own` is PDFium's text. `read` returns PDFium's characters with their positions, and is called only if needed.
    """
    unclear = _unclear_signs(own)
    page = _translated(page, own, unclear)
    missing, doubled = _missing(page, own), _ALL_DOUBLED.search(own) is not None
    if not unclear and not missing and not doubled:
        return OwnLetters(page)
    characters, words = read(), _WordsByPlace(page.runs, only_signs=not missing and not doubled)
    too_many = missing.total() > max(_MANY_LOST, _LARGE_SHARE * len(own))
    lost, sure = _lost(page, characters, Counter() if too_many else missing, words)
    signs = frozenset(_indexes(characters.text, unclear))
    edits = _Edits(signs, lost, frozenset(_doubled(characters)) if doubled else frozenset())
    page, placed = _edited(page, characters, edits, words)
    page, added = _with_lost_words(page, characters, lost - placed)
    left = lost - placed - added
    misses_digits = not sure or too_many or any(characters.text[index].isdigit() for index in left)
    return OwnLetters(page, missing.total() - len(lost) + len(left), misses_digits)


def with_raised_letters(page: PageContent, characters: Characters, raised: frozenset[int]) -> PageContent:
    """Write exponents and note numbers as superscript characters, so that "10⁵" does not become "105"."""
    if not raised:
        return page
    return _edited(page, characters, _Edits(raised=raised), _WordsByPlace(page.runs, only_signs=False))[0]


def may_have_halved_ligatures(own: str) -> bool:
    """Whether a font may encode each of the ligatures "fi" and "fl" as only its second letter.

    This is likely if "fi" and "fl" are very rare in a long text.
    """
    pairs = own.count("fi") + own.count("fl")
    return len(own) > _LONG_TEXT and _LEAST_LIGATURES * len(own) > pairs and own.count("i") > _LEAST_I * len(own)


def with_whole_ligatures(page: PageContent, characters: Characters, font: Callable[[int], bytes]) -> PageContent:
    """Restore ligatures that a font encodes as only their last letter, such as "fi" encoded as "i".

    They are recognised by their width: the glyph is much wider than its last letter. `font` returns the font name of a
    character.
    """
    halved = {index: lost + letter for letter in _LOST_LETTERS for index, lost in _halved(characters, letter, font)}
    return replace_letters(page, characters, halved)[0]


def replace_letters(
    page: PageContent, characters: Characters, replaced: Mapping[int, str]
) -> tuple[PageContent, frozenset[int]]:
    """Replace wrong characters. `replaced` maps indexes of PDFium's characters to the right text.

    Returns the page, and the indexes of all characters in the changed words.
    """
    if not replaced:
        return page, frozenset()
    return _edited(page, characters, _Edits(replaced=replaced), _WordsByPlace(page.runs, only_signs=False))


def _halved(characters: Characters, letter: str, font: Callable[[int], bytes]) -> Iterator[tuple[int, str]]:
    """Find ligatures that are encoded as only their last letter.

    Yields the index of that letter, and the letters that are missing before it.
    """
    boxes = {index: box for index in _indexes(characters.text, letter) if (box := _glyph_box(characters, index))}
    by_font: defaultdict[tuple[bytes, int], dict[int, float]] = defaultdict(dict)
    for index, box in boxes.items():
        by_font[font(index), round(box.bottom - box.top)][index] = box.right - box.left
    for (name, _), widths in by_font.items():
        if not name:  # letters of several fonts without names cannot be compared
            continue
        usual = median(widths.values())
        wide = [index for index, width in widths.items() if width > _TWICE * usual]
        if len(wide) > _FEW_WIDE * len(widths):
            continue
        for index in wide:
            is_start = index == 0 or characters.text[index - 1].isspace()
            if letter != "h" or is_start:
                lost = _LOST_LETTERS[letter]
                yield index, 2 * lost if letter in "il" and widths[index] > _THREE_TIMES * usual else lost


def _glyph_box(characters: Characters, index: int) -> Box | None:
    """Return the box of a letter.

    Returns None if the letter is part of a ligature, because the glyph then shows other letters, too.
    """
    box = characters.box(index)
    beside = (at for at in (index - 1, index + 1) if 0 <= at < len(characters.text))
    return None if any(characters.box(at) == box for at in beside) else box


def with_own_spaces(page: PageContent, own: str) -> PageContent:
    """Join words that liteparse split, such as "exam ple", if PDFium's text (`own`) contains them as one word.

    They are not joined if all parts are also separate words in PDFium's text.
    """
    words, found = frozenset(own.split()), {word.text for run in page.runs for word in run.words}
    if found <= words or words <= found:
        return page
    runs = tuple(_with_joined_words(run, words) if len(run.words) > 1 else run for run in page.runs)
    return replace(page, runs=runs)


def _with_joined_words(run: TextRun, known: frozenset[str]) -> TextRun:
    if known.issuperset([word.text for word in run.words]):
        return run
    if not any(_parts_of_word(run.words, at, known) > 1 for at in range(len(run.words) - 1)):
        return run
    words: list[Word] = []
    text, end, at = "", 0, 0
    while at < len(run.words):
        count = _parts_of_word(run.words, at, known)
        parts = run.words[at : at + count]
        start = run.text.find(parts[0].text, end)
        text += run.text[end:start]
        for part in parts:
            start = run.text.find(part.text, max(start, end))
            end = start + len(part.text)
        whole = "".join(part.text for part in parts)
        lefts, tops, rights, bottoms, _ = zip(*parts, strict=True)
        words.append(Word(min(lefts), min(tops), max(rights), max(bottoms), whole))
        text, at = text + whole, at + count
    return run._replace(words=tuple(words), text=text + run.text[end:]) if len(words) < len(run.words) else run


def _parts_of_word(words: Sequence[Word], at: int, known: frozenset[str]) -> int:
    """Return how many words, starting at index `at`, are really a single word.

    Words are joined if PDFium's text contains them as one word, or if their letters touch. Words without
    letters are never joined.
    """
    if not words[at].text.isalpha():
        return 1
    for count in range(min(_MOST_PARTS, len(words) - at), 1, -1):
        parts = [word.text for word in words[at : at + count]]
        if "".join(parts) in known and all(map(str.isalpha, parts[:-1])) and parts[-1][0].isalpha():
            is_spaced = len("".join(parts)) <= _SPACED * count or _are_close(words[at : at + count], _WORD_SPACE)
            return count if is_spaced and not known.issuperset(parts) else 1
    # Letters that touch are never two words.
    touching = 1
    while at + touching < len(words) and _are_close(words[at + touching - 1 : at + touching + 1], _TOUCHING):
        touching += 1
    parts = [word.text for word in words[at : at + touching]]
    return touching if all(map(str.isalpha, parts)) and known.isdisjoint(parts) else 1


def _are_close(words: Sequence[Word], most: float) -> bool:
    """Whether the gaps between words are less than `most` times the height of a word. Also works for vertical text."""
    return all(
        _gap(one, other) < most * min(one.bottom - one.top, one.right - one.left) for one, other in pairwise(words)
    )


def _gap(one: Word, other: Word) -> float:
    across = max(one.left, other.left) - min(one.right, other.right)
    return max(across, max(one.top, other.top) - min(one.bottom, other.bottom))


def _unclear_signs(own: str) -> frozenset[str]:
    """Return the dashes and quotes of the page that cannot be told apart in liteparse's text.

    liteparse writes several of them as the same plain character.
    """
    if own.isascii() or not _SIGNS.search(own):
        return frozenset()
    found = frozenset(_ANY_SIGNS.findall(own))
    kinds = ({one.translate(_UNFOLDED) for one in found if one.translate(_FOLDED) == plain} for plain, _ in _ALIKE)
    return frozenset(sign for kind in kinds if len(kind) > 1 for sign in kind if _SIGNS.match(sign))


def _translated(page: PageContent, own: str, unclear: frozenset[str]) -> PageContent:
    """Restore each plain dash or quote for which only one original character is possible on this page."""
    if own.isascii():
        return page
    plain = {sign.translate(_FOLDED): sign for sign in set(_SIGNS.findall(own)) - unclear}
    if not plain:
        return page
    table = str.maketrans(plain)
    return replace(page, runs=tuple(_with_signs(run, table, plain) for run in page.runs))


def _with_signs(run: TextRun, table: dict[int, int | str], plain: Iterable[str]) -> TextRun:
    if not any(sign in run.text for sign in plain):
        return run
    words = tuple(word._replace(text=word.text.translate(table)) for word in run.words)
    return run._replace(text=run.text.translate(table), words=words)


def _missing(page: PageContent, own: str) -> Counter[str]:
    """Count the characters in PDFium's text that are missing from liteparse's text.

    A character that liteparse writes in another form is not missing.
    """
    wanted, have = Counter(own), Counter("".join(run.text for run in page.runs))
    wanted["."] -= sum(map(len, _LEADERS.findall(own)))
    lost = Counter({one: count for one, count in (wanted - have).items() if _is_lost(one, count, wanted[one])})
    return Counter({one: count for one, count in lost.items() if not _is_written(one, wanted, have)}) if lost else lost


def _is_lost(letter: str, count: int, wanted: int) -> bool:
    """Whether a character is treated as missing: it must be a letter, a digit or a bracket.

    A punctuation mark is treated as missing only if liteparse left out many of the same mark.
    """
    if letter in _MARKS:
        return count > max(_FEW_MARKS, _MANY_MARKS * wanted)
    return letter in _BRACKETS or (letter.isalnum() and letter < _SECOND_PLANE)


def _is_written(letter: str, wanted: Counter[str], have: Counter[str]) -> bool:
    """Whether liteparse's text contains a character in another form, such as "f" and "i" instead of a ligature."""
    usual = unicodedata.normalize("NFKC", letter)
    return usual != letter and all(have[one] > wanted[one] for one in usual)


def _indexes(text: str, letters: Iterable[str]) -> Iterator[int]:
    """Return up to `_MOST_EDITS` positions at which one of `letters` occurs in a text."""
    wanted = "".join(map(re.escape, letters))
    found = re.finditer(f"[{wanted}]", text) if wanted else iter(())
    return (one.start() for one in islice(found, _MOST_EDITS))


def _doubled(characters: Characters) -> Iterator[int]:
    """Find letters that are drawn twice at nearly the same position, as a shadow.

    Yields the index of each second copy.
    """
    for found in islice(_DOUBLED.finditer(characters.text), _MOST_EDITS):
        one, other = characters.box(found.start()), characters.box(found.start() + 1)
        if one and other and _same_place(one, other):
            yield found.start() + 1


def without_doubles(text: str) -> str:
    """If a text seems to be drawn twice, as in "TThhee", remove the second copy of each letter.

    Real double letters are removed too, so use the result only for counting.
    """
    return _DOUBLED.sub("", text) if _ALL_DOUBLED.search(text) else text


def _same_place(one: Box, other: Box) -> bool:
    wide, high = max(one.right - one.left, 0.1), max(one.bottom - one.top, 0.1)
    across, down = (
        abs(one.left + one.right - other.left - other.right),
        abs(one.top + one.bottom - other.top - other.bottom),
    )
    return across < 2 * _SAME_PLACE * wide and down < 2 * _SAME_PLACE * high


_Key = tuple[int, int]


class _WordsByPlace:
    """Finds the words at a position on the page.

    A word is identified by the index of its text run and its index in that run. The position index contains text runs,
    not single words. This is enough, because few positions are looked up.
    """

    def __init__(self, runs: Sequence[TextRun], *, only_signs: bool) -> None:
        self._only_signs = only_signs
        self._rows: defaultdict[int, list[tuple[Box, int, TextRun]]] = defaultdict(list)
        for number, run in enumerate(runs):
            if has_right_to_left(run.text) or (only_signs and not _ANY_SIGNS.search(run.text)):
                continue
            lefts, tops, rights, bottoms, _ = zip(*run.words, strict=True)
            box = Box(min(lefts) - _SLACK, min(tops), max(rights) + _SLACK, max(bottoms))
            if not isfinite(box.top + box.bottom):
                continue
            first, last = int(box.top // _ROW), int(box.bottom // _ROW)
            for row in range(first, min(last, first + _MOST_ROWS) + 1):
                self._rows[row].append((box, number, run))

    def at(self, box: Box) -> list[tuple[Word, _Key]]:
        """Return the words around the centre of a box.

        The word that is vertically closest to the centre comes first.
        """
        across, down = (box.left + box.right) / 2, (box.top + box.bottom) / 2
        found = [
            (word, (number, place))
            for (left, top, right, bottom), number, run in self._rows.get(int(down // _ROW), ())
            if left <= across <= right and top <= down <= bottom
            for place, word in enumerate(run.words)
            if word.left - _SLACK <= across <= word.right + _SLACK and word.top <= down <= word.bottom
            if not self._only_signs or _ANY_SIGNS.search(word.text)
        ]
        return sorted(found, key=lambda one: abs(one[0].top + one[0].bottom - 2 * down))


def _lost(
    page: PageContent, characters: Characters, missing: Counter[str], words: _WordsByPlace
) -> tuple[frozenset[int], bool]:
    """Find the characters that are missing from the words at their position.

    Returns their indexes, and whether the positions of missing digits are certain. Second copies of a character at the
    same position are ignored, because liteparse leaves them out on purpose.
    """
    lost: defaultdict[str, list[int]] = defaultdict(list)
    used: defaultdict[_Key, Counter[str]] = defaultdict(Counter)
    seen: defaultdict[tuple[str, int, int], list[Box]] = defaultdict(list)
    for index in _indexes(characters.text, missing):
        letter, box = characters.text[index], characters.box(index)
        if box is None or not _is_on_page(page, box):
            continue
        if not _is_in_ligature(characters, index, box) and _is_copy(seen, letter, box):
            continue
        for word, key in words.at(box):
            if used[key][letter] < word.text.count(letter):
                used[key][letter] += 1
                break
        else:
            lost[letter].append(index)
    clear = {letter: found for letter, found in lost.items() if len(found) <= missing[letter]}
    sure = not any(letter.isdigit() for letter in lost if letter not in clear)
    return frozenset(index for found in clear.values() for index in found), sure


def _is_in_ligature(characters: Characters, index: int, box: Box) -> bool:
    """Whether a letter is drawn by the same glyph as the preceding equal letter, as in the ligatures "ff" and "ffi"."""
    text = characters.text
    if not index or text[index - 1] != text[index] or characters.box(index - 1) != box:
        return False
    return _ALL_DOUBLED.search(text, max(index - 6, 0), index + 6) is None


def _is_on_page(page: PageContent, box: Box) -> bool:
    return 0 <= box.left + box.right <= 2 * page.width and 0 <= box.top + box.bottom <= 2 * page.height


def _is_copy(seen: defaultdict[tuple[str, int, int], list[Box]], letter: str, box: Box) -> bool:
    column, row = int((box.left + box.right) // (2 * _ROW)), int((box.top + box.bottom) // (2 * _ROW))
    for across, down in _AROUND:
        near = seen.get((letter, column + across, row + down))
        if near and any(_same_place(box, one) for one in near):
            return True
    seen[letter, column, row].append(box)
    return False


_AROUND = tuple((across, down) for across in (0, -1, 1) for down in (0, -1, 1))


def _edited(
    page: PageContent, characters: Characters, edits: _Edits, words: _WordsByPlace
) -> tuple[PageContent, frozenset[int]]:
    """Apply the corrections to the words of a page.

    Returns the page, and the indexes of all characters in the changed words.
    """
    texts: defaultdict[int, dict[int, str]] = defaultdict(dict)
    placed: set[int] = set()
    for index in sorted(edits.signs | edits.lost | edits.doubled | edits.raised | edits.replaced.keys()):
        anchor = _anchor(characters.text, index, edits.lost) if index not in placed else None
        # The box of a wrong symbol can be far from its line. The letter before it is then at the right place.
        anchors = (anchor, index - 1) if index in edits.replaced and index else (anchor,)
        for one in anchors:
            box = characters.box(one) if one is not None else None
            if one is None or box is None or index in placed:
                continue
            for word, (number, place) in words.at(box):
                span = _span(word.text, characters.text, one, edits)
                if span and (one == anchor or index in span) and place not in texts[number]:
                    texts[number][place] = "".join(edits.new(characters.text, at) for at in span)
                    placed.update(span)
                    break
    runs = (_with_words(run, texts[number]) if number in texts else run for number, run in enumerate(page.runs))
    return replace(page, runs=tuple(runs)), frozenset(placed)


def _anchor(text: str, index: int, lost: frozenset[int]) -> int | None:
    """Return the index of the nearest character that liteparse found in the same word.

    Returns None if it found no character of the word.
    """
    for step in (1, -1):
        near = index
        while near in lost and 0 <= near + step < len(text) and abs(near - index) < _LONGEST:
            near += step
        if near not in lost and not text[near].isspace() and not (near < index and text[near] in _LINE_END_HYPHENS):
            return near
    return None


def _span(word: str, text: str, anchor: int, edits: _Edits) -> range | None:
    """Return the range of PDFium's characters that form a word found by liteparse.

    `anchor` is the index of one of these characters. Returns None if the characters do not match the word.
    """
    wanted, start, old = word.translate(_FOLDED), anchor, edits.old(text, anchor)
    if old not in wanted:
        return None
    while start > 0 and not _is_word_end(text, start) and anchor - start < _LONGEST:
        start -= 1
    end = anchor + 1
    while end < len(text) and not text[end].isspace() and not _is_word_end(text, end) and end - anchor < _LONGEST:
        end += 1
    for first in range(start, anchor + 1):
        last, rest = first, wanted
        while last < end and rest.startswith(one := edits.old(text, last)) and (rest or not one):
            rest, last = rest[len(one) :], last + 1
        if not rest and last > anchor:
            return range(first, last)
    return None


def _is_word_end(text: str, index: int) -> bool:
    """Whether the character before `index` ends a word.

    It does if it is a space, or a hyphen that divides a word at the end of a line.
    """
    return text[index - 1].isspace() or text[index - 1] in _LINE_END_HYPHENS


def _with_words(run: TextRun, texts: dict[int, str]) -> TextRun:
    """Replace words of a text run. `texts` maps the indexes of words to their new texts."""
    parts: list[str] = []
    end = 0
    for place, word in enumerate(run.words):
        start = run.text.find(word.text, end)
        if start < 0:
            return run
        parts += run.text[end:start], texts.get(place, word.text)
        end = start + len(word.text)
    words = tuple(word._replace(text=texts.get(place, word.text)) for place, word in enumerate(run.words))
    return run._replace(text="".join([*parts, run.text[end:]]), words=words)


def _with_lost_words(
    page: PageContent, characters: Characters, lost: frozenset[int]
) -> tuple[PageContent, frozenset[int]]:
    """Add whole words that liteparse left out.

    A word is added to the text run at its position. If there is none, the word becomes a new text run.
    """
    runs = list(page.runs)
    placed: set[int] = set()
    for group in _groups(characters.text, lost) if runs else ():
        boxes = [box for index in group if (box := characters.box(index))]
        lefts, tops, rights, bottoms = zip(*boxes, strict=True)
        box = Box(min(lefts), min(tops), max(rights), max(bottoms))
        text = characters.text[group.start : group.stop]
        near = min(range(len(runs)), key=_Nearness(runs, box))
        if not _contains_centre(runs[near].box, box):
            runs.append(_run_like(runs[near], box, text))
        elif (changed := _with_word(runs[near], box, text)) is not None:
            runs[near] = changed
        else:
            continue
        placed.update(group)
    return replace(page, runs=tuple(runs)) if placed else page, frozenset(placed)


class _Nearness(NamedTuple):
    runs: Sequence[TextRun]
    box: Box

    def __call__(self, number: int) -> float:
        one, other = self.runs[number].box, self.box
        across = max(one.left - other.right, other.left - one.right, 0.0)
        return across + 4 * abs(one.top + one.bottom - other.top - other.bottom)


def _groups(text: str, lost: frozenset[int]) -> Iterator[range]:
    """Yield the range of each word that liteparse left out completely, up to 100 words.

    `lost` contains the indexes of missing characters.
    """
    starts = (index for index in sorted(lost) if index == 0 or _is_word_end(text, index))
    for start in islice(starts, _MOST_ROWS):
        end = start
        while end in lost:
            end += 1
        if end == len(text) or text[end].isspace():
            yield range(start, end)


def _with_word(run: TextRun, box: Box, text: str) -> TextRun | None:
    """Insert a word into a text run.

    If it touches the next word, the two are joined. Returns None if the word does not fit, for example because another
    word is at its position.
    """
    if run.rotation or box.bottom - box.top < _LEAST_HEIGHT * (run.box.bottom - run.box.top):
        return None
    middle = (box.left + box.right) / 2
    for place, word in enumerate(run.words):
        if word.right <= middle:
            continue
        slash = word.text[0] in _FRACTION_SLASHES and middle < (word.left + word.right) / 2
        if not slash and word.left < box.right - _LEAST_HEIGHT * (box.right - box.left):
            return None
        apart = "" if slash or word.left - box.right < _JOINED * run.size else " "
        return _with_words(run, {place: f"{text}{apart}{word.text}"})
    return None


def _run_like(near: TextRun, box: Box, text: str) -> TextRun:
    if near.box.top <= (box.top + box.bottom) / 2 <= near.box.bottom:
        box = Box(box.left, near.box.top, box.right, near.box.bottom)
    size = min(near.size, box.bottom - box.top)
    word = near.words[0]._replace(left=box.left, top=box.top, right=box.right, bottom=box.bottom, text=text)
    return near._replace(
        box=box, text=text, size=size, font="", bold=False, italic=False, rotation=0.0, tag=None, words=(word,)
    )


def _contains_centre(run: Box, box: Box) -> bool:
    across, down = (box.left + box.right) / 2, (box.top + box.bottom) / 2
    return run.left <= across <= run.right and run.top <= down <= run.bottom
