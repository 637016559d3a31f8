"""Verifies citations in model answers: the quoted words must be on the page that the citation names. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LEAST_CHARACTERS = 3
_MARKS = re.compile(r"\\(?=[^\w\s])|[*_`#>|~\[\]]|\u00ad")
_LEFT_OUT = re.compile(r"\.\.\.|…")
_QUOTE_MARKS = str.maketrans(
    dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"') | dict.fromkeys("\u2018\u2019\u201a", "'")
)


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote with its position.

    `page` is a page number or, if the document has no pages, a chunk number. Both start at 1.
    """

    page: int
    quote: str
    verified: bool
    relevance: float = 1.0


class PageTexts:
    """The texts of a document's pages, prepared for finding quotes in them."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._texts = texts
        self._plain: dict[int, str] = {}

    def contain(self, quote: str, page: int) -> bool:
        """Whether the page contains the quote. An ellipsis in the quote matches any text."""
        parts = [part for part in map(plain, _LEFT_OUT.split(quote)) if part]
        if sum(map(len, parts)) < LEAST_CHARACTERS:
            return False
        text, place = self._of(page), 0
        for part in parts:
            found = text.find(part, place)
            if found < 0:
                return False
            place = found + len(part)
        return True

    def pages_with(self, quote: str) -> list[int]:
        return [page for page in self._texts if self.contain(quote, page)]

    def _of(self, page: int) -> str:
        if page not in self._plain:
            self._plain[page] = plain(self._texts.get(page, ""))
        return self._plain[page]


def verify(cited: Iterable[tuple[int, str, float]], texts: PageTexts) -> list[Citation]:
    """Check citations, given as (page, quote, relevance), against the texts of the pages.

    If a quote is not on the cited page but on exactly one other page, the page number is corrected.
    """
    found: dict[tuple[int, str], Citation] = {}
    for page, quote, relevance in cited:
        verified = texts.contain(quote, page)
        if not verified and len(others := texts.pages_with(quote)) == 1:
            page, verified = others[0], True  # noqa: PLW2901 - the model named the wrong page
        found.setdefault((page, plain(quote)), Citation(page, quote, verified, relevance))
    return list(found.values())


def plain(text: str) -> str:
    """Normalise a text for comparison: no Markdown, single spaces, straight quotation marks."""
    return " ".join(_MARKS.sub("", unicodedata.normalize("NFKC", text)).translate(_QUOTE_MARKS).split())
