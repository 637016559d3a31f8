"""Finds quotes and words in a text, and returns their positions.

Differences in white space are ignored. Apart from that, a quote must be verbatim. Words that a person searches for are
also found with different case, accents or inline markup.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, islice, takewhile

from octavo.language.markdown_segments import blank_markup
from octavo.records.documents import Span

MIN_CHARACTERS = 3
# The number of characters before and after a quote that are compared.
CONTEXT = 80
MOST_OCCURRENCES = 1000
_WORD, _LETTERS = re.compile(r"\S+"), re.compile(r"[^\W_]+")
_LAST_MARKS = ".,;:!?\u2026)]\"'\u201d\u2019\u00bb"
_LINE_MARK = re.compile(r"^[ \t>]*(?:#{1,6}|[-+*•]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
# Accents as separate characters, hyphens that are only visible at the end of a line, and marks of bold text or code.
# The quantifiers are possessive, so that no text makes the search slow.
_UNSEEN = "[\u0300-\u036f\u00ad*`\\\\]*+"
_BETWEEN = r"[\s*_`~\[\]\\]++(?:\([^()\s]*+\)[\s*_`~\[\]\\]*+)?"
_MAX_ADDRESS, _ADDRESS_END = 2000, re.compile(r"[)\s]")
_ACCENTED = (range(0x00C0, 0x0500), range(0x1E00, 0x2000))
_SAME_MARKS = ("'\u2018\u2019\u201a\u02bc", '"\u201c\u201d\u201e\u00ab\u00bb', "-\u2010\u2011\u2012\u2013\u2014")


# Verbatim quotes ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    """A quote that was found in a text.

    `text` is the exact text `source[start:end]`, not the quote as the model wrote it.
    """

    text: str
    start: int
    end: int


def find_quote(quote: str, source: str) -> QuoteMatch | None:
    """Find the first occurrence of a quote, ignoring differences in white space.

    Returns None if there is no occurrence, or if the quote is shorter than `MIN_CHARACTERS`.
    """
    if sum(map(len, _WORD.findall(quote))) < MIN_CHARACTERS:
        return None
    place = _verbatim(quote).search(source)
    return QuoteMatch(place.group(), place.start(), place.end()) if place else None


def _verbatim(quote: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, _WORD.findall(quote))))


@dataclass(frozen=True, slots=True)
class Anchor:
    """The data for finding a passage again: its quote, the text around it, and its last known position."""

    quote: str
    text_before: str = ""
    text_after: str = ""
    start: int | None = None


class QuoteFinder:
    """The Markdown of a document, prepared for finding many quotes in it.

    If the exact quote is not found, only letters and digits are compared, and Markdown syntax is ignored. People copy
    quotes from pages that do not show this syntax.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _letters(self) -> SqueezedText:
        return SqueezedText(_without_markup(self.text), _LETTERS)

    def find(self, anchor: Anchor) -> Span | None:
        """Find the best occurrence of a quote.

        Occurrences that begin and end at word boundaries are preferred, then those with the same text around them, and
        then the one nearest to the last known position.
        """
        found = list(islice(self._find_verbatim(anchor.quote), MOST_OCCURRENCES)) or [
            self._with_last_marks(one, anchor.quote)
            for one in islice(self._letters.find_all(_without_markup(anchor.quote)), MOST_OCCURRENCES)
        ]
        return max(found, key=lambda one: self._rank(one, anchor), default=None)

    def _find_verbatim(self, quote: str) -> Iterator[Span]:
        if quote.strip():
            yield from (Span(*one.span()) for one in _verbatim(quote).finditer(self.text))

    def _with_last_marks(self, span: Span, quote: str) -> Span:
        """Extend a passage to include the punctuation at the end of its quote."""
        end = span.end
        for mark in quote[len(quote.rstrip(_LAST_MARKS)) :]:
            end += self.text.startswith(mark, end)
        return Span(span.start, end)

    def _rank(self, span: Span, anchor: Anchor) -> tuple[int, int, int]:
        text = self.text
        whole = 2 - _cuts_word(text, span.start) - _cuts_word(text, span.end)
        before, after = text[max(0, span.start - 2 * CONTEXT) : span.start], text[span.end : span.end + 2 * CONTEXT]
        same = _same_length(reversed(_letters(before)), reversed(_letters(anchor.text_before)))
        same += _same_length(_letters(after), _letters(anchor.text_after))
        return whole, same, -abs(span.start - (anchor.start or 0))


class SqueezedText:
    """The characters of a text that match a pattern, joined into one string, and their positions in the text."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        parts = list(pattern.finditer(text))
        self._text = "".join(part.group() for part in parts)
        self._starts = [part.start() for part in parts]
        self._offsets = list(accumulate((part.end() - part.start() for part in parts), initial=0))[:-1]

    def find_all(self, quote: str) -> Iterator[Span]:
        wanted = "".join(self._pattern.findall(quote))
        at = self._text.find(wanted) if wanted else -1
        while at >= 0:
            yield Span(self._place(at), self._place(at + len(wanted) - 1) + 1)
            at = self._text.find(wanted, at + 1)

    def _place(self, offset: int) -> int:
        part = bisect_right(self._offsets, offset) - 1
        return self._starts[part] + offset - self._offsets[part]


def _cuts_word(text: str, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1 : place + 1].isalnum()


def _without_markup(text: str) -> str:
    return _LINE_MARK.sub(lambda mark: " " * len(mark.group()), blank_markup(text))


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(text))


def _same_length(one: Iterable[str], other: Iterable[str]) -> int:
    """Return the length of the common prefix of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


# Words that a person searches for -----------------------------------------------------------------------------------


def find_words(query: str, text: str, most: int) -> list[Span]:
    """Find up to `most` places in Markdown where the words of a query directly follow each other, in the same order.

    Case, accents, white space and inline markup are ignored. The URLs of links are not searched, because they are not
    visible.
    """
    if not (words := _WORD.findall(unicodedata.normalize("NFD", query))):
        return []
    pattern = re.compile(_BETWEEN.join("".join(_any_form(one) for one in word) for word in words))
    found = (Span(*one.span()) for one in pattern.finditer(text))
    return list(islice((one for one in found if not _is_hidden(text, one.start)), most))


def _is_hidden(text: str, place: int) -> bool:
    """Whether a position is in the URL of a link."""
    opened = text.rfind("](", max(0, place - _MAX_ADDRESS), place)
    return opened >= 0 and not _ADDRESS_END.search(text, opened + 2, place)


def _any_form(character: str) -> str:
    """Return a regular expression that matches a character in either case, with or without accents."""
    if unicodedata.combining(character):
        return ""
    forms = _forms()[_base(character)] | {character, character.lower(), character.upper()}
    return f"[{''.join(re.escape(one) for one in sorted(forms) if len(one) == 1)}]{_UNSEEN}"


@cache
def _forms() -> defaultdict[str, frozenset[str]]:
    """Map each unaccented character to all characters that are treated as equal to it."""
    found = defaultdict[str, frozenset[str]](frozenset)
    for one in (chr(code) for codes in _ACCENTED for code in codes):
        found[_base(one)] |= {one}
    for same in _SAME_MARKS:
        for one in same:
            found[one] |= frozenset(same)
    return found


def _base(character: str) -> str:
    return unicodedata.normalize("NFD", character.lower())[0]
