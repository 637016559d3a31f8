"""What is right about an extracted text: its headings, words, letters, cells and lists, and their order."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import pypdfium2

from octavo.extract.extracted import BlockKind, Extracted
from octavo.extract.pdf.page_text import open_pdf

_pdfium: Any = pypdfium2
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+(.+)$", re.MULTILINE)
_ROW = re.compile(r"^\|(.*)\|[ \t]*$", re.MULTILINE)
_WORD = re.compile(r"[^\W_]{2,}")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[((?:[^\[\]\\]|\\.)*)\]\([^()]*\)")
_LINE_MARKS = re.compile(r"^[ \t]*(?:#{1,6} |[-*+] |> |\|?(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$|```\w*$)", re.MULTILINE)
_MARKS = re.compile(r"\\(?=[!-/:-@\[-`{-~])|\*+|~~|`|\||\$|\[Image:[^\]]*\]")
# Tags that programs write into Markdown; anything else in angle brackets is text.
_TAG = re.compile(
    r"</?(?:br|su[bp]|[biu]|em|strong|span|div|p|img|a|table|thead|tbody|t[rdh]|[uod]l|li|dt|dd|details|summary"
    r"|math|m[a-z]+|semantics|annotation)\b[^<>]*>"
)


class Heading(NamedTuple):
    """`page` is None if it is unknown."""

    words: str
    page: int | None = None
    level: int | None = None


class HeadingScore(NamedTuple):
    """`levels`: share of pairs of headings that are ordered by level as their bookmarks are."""

    recall: float
    precision: float
    levels: float


def without_bookmarks(path: Path, folder: Path) -> Path:
    """Pages that are copied into a new file leave the bookmarks behind."""
    copy = _pdfium.PdfDocument.new()
    copy.import_pages(_pdfium.PdfDocument(path))
    copy.save(folder / path.name)
    return folder / path.name


def bookmarks_of(path: Path) -> list[Heading]:
    return [Heading(plain_words(one.title), one.page, one.level) for one in open_pdf(path).bookmarks]


def headings_in(markdown: str) -> list[Heading]:
    """Headings of a Markdown text; it does not say on which page they are."""
    return [Heading(plain_words(text)) for text in _HEADING.findall(markdown)]


def headings_of(extracted: Extracted) -> list[Heading]:
    headings = (one for one in extracted.blocks if one.kind is BlockKind.HEADING)
    return [Heading(plain_words(one.text), one.page, one.level) for one in headings]


def plain_words(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


def is_same(wanted: Heading, found: Heading) -> bool:
    """The same page, and the same words apart from a number before them or a line that is missing."""
    title, words = wanted.words, found.words
    return found.page in {wanted.page, None} and (
        (title in words and len(words) < len(title) + 12) or (words in title and len(words) > 0.6 * len(title))
    )


def recall(wanted: Sequence[Heading], found: Iterable[Heading]) -> float:
    """The share of wanted headings that were found. A heading that was found counts for one wanted heading only."""
    left = list(found)
    hits = 0
    for one in wanted:
        match = next((other for other in left if is_same(one, other)), None)
        if match:
            left.remove(match)
            hits += 1
    return hits / len(wanted)


def judge_headings(wanted: Sequence[Heading], found: Sequence[Heading]) -> HeadingScore:
    pairs = [(one, other) for one in wanted if (other := next((h for h in found if is_same(one, h)), None))]
    agreeing = [_order(a, c) == _order(b, d) for (a, b), (c, d) in combinations(pairs, 2)]
    right = sum(any(is_same(one, other) for one in wanted) for other in found)
    return HeadingScore(len(pairs) / len(wanted), right / max(len(found), 1), mean(agreeing) if agreeing else 0.0)


def _order(one: Heading, other: Heading) -> int:
    first, second = one.level or 0, other.level or 0
    return (first > second) - (first < second)


def words_of(path: Path) -> Counter[str]:
    """As PDFium reads them, without any layout."""
    document = _pdfium.PdfDocument(path)
    return words_in("\n".join(page.get_textpage().get_text_bounded() for page in document))


def words_in(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def word_recall(wanted: Counter[str], text: str) -> float:
    return sum((wanted & words_in(text)).values()) / wanted.total()


def share_found(wanted: Iterable[str], found: Iterable[str]) -> tuple[int, int]:
    """How many of the wanted texts were found, each as often as it should be, and how many are wanted."""
    expected = Counter(wanted)
    return (expected & Counter(found)).total(), expected.total()


def plain(markdown: str) -> str:
    """Markdown without its marks, so that programs which mark differently can be compared."""
    text = _LINK.sub(r"\1", html.unescape(_TAG.sub(" ", _COMMENT.sub("", markdown))))
    return _MARKS.sub("", _LINE_MARKS.sub("", text))


def tokens(markdown: str) -> list[str]:
    return _TOKEN.findall(plain(markdown))


def cells_of(markdown: str) -> Iterator[str]:
    for row in _ROW.findall(markdown):
        for cell in re.split(r"(?<!\\)\|", row):
            text = "".join(_TOKEN.findall(plain(cell)))
            if text and set(text) - set("-:"):
                yield text


def items_of(markdown: str) -> Iterator[str]:
    """The items of lists, compared by their first words, because programs differ in what belongs to an item."""
    for item in _ITEM.findall(markdown):
        if words := plain_words(plain(item)).split():
            yield " ".join(words[:6])


def letters_of(text: str) -> Counter[str]:
    """Letters and digits, whose compatibility forms (such as ligatures) count as the usual ones."""
    return Counter(one for one in unicodedata.normalize("NFKC", text) if one.isalnum())


def foreign_words(text: str, source: str) -> list[str]:
    """Words of a text that are not in `source`, where words may be separated or hyphenated differently."""
    whole = re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", source).lower())
    known: dict[str, bool] = {}
    words = _WORD.findall(unicodedata.normalize("NFKC", plain(text)).lower())
    return [word for word in words if not known.setdefault(word, word in whole)]


def edit_similarity(expected: Sequence[str], found: Sequence[str]) -> float:
    """One minus the share of tokens that have to be inserted, deleted or replaced."""
    if not expected or not found:
        return float(not expected and not found)
    return 1 - _edit_distance(expected, found) / max(len(expected), len(found))


def _edit_distance(expected: Sequence[str], found: Sequence[str]) -> int:
    """Levenshtein distance by the bit-parallel method of Myers (1999), with one bit for each expected token."""
    places: dict[str, int] = {}
    for index, token in enumerate(expected):
        places[token] = places.get(token, 0) | 1 << index
    mask, last = (1 << len(expected)) - 1, 1 << (len(expected) - 1)
    more, less, distance = mask, 0, len(expected)
    for token in found:
        same = places.get(token, 0)
        across = (((same & more) + more) ^ more) | same | less
        rises, falls = less | ~(across | more) & mask, more & across
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = (rises << 1 | 1) & mask, falls << 1 & mask
        less, more = rises & across, (falls | ~(rises | across)) & mask
    return distance
