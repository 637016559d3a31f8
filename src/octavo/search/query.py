"""Parses the text of a search box into words, "phrases" and -exclusions."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from octavo.core.errors import BadInput

MOST_CHARACTERS = 1000
MOST_WORDS = 60
# A minus counts only before a word: 5 - 3 and well-known are plain text. An unclosed quotation mark reaches to the end.
_PART = re.compile(r'(?P<minus>(?<!\S)-(?=["\w]))?(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))')
_WORDLIKE = re.compile(r"\w")
_QUOTES = str.maketrans(dict.fromkeys("“”„«»", '"'))


class NothingAsked(BadInput):
    """The query is empty. Enter a word, a phrase in quotation marks, or a question."""

    code = "NOTHING_ASKED"


class QueryTooLong(BadInput):
    """The query is too long."""

    code = "QUERY_TOO_LONG"


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """`words` rank hits and include those of phrases; a hit must contain all `phrases` and none of `excluded`."""

    words: tuple[str, ...]
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that is embedded."""
        return " ".join(self.words)


def parse_query(text: str) -> SearchQuery:
    """Accepts any text. Raises `NothingAsked` if it has no words to search for."""
    if len(text) > MOST_CHARACTERS:
        raise QueryTooLong(f"It has {len(text)} characters; the limit is {MOST_CHARACTERS}.")
    words: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    for part in _PART.finditer(_printable(text).translate(_QUOTES)):
        content = " ".join((part["phrase"] if part["word"] is None else part["word"]).split())
        if not _WORDLIKE.search(content):
            continue
        if part["minus"]:
            excluded.append(content)
            continue
        words += content.split()
        if part["word"] is None:
            phrases.append(content)
    if not words:
        raise NothingAsked
    return SearchQuery(tuple(words[:MOST_WORDS]), tuple(phrases), tuple(excluded))


def _printable(text: str) -> str:
    """Without control characters and lone surrogates, which the database rejects."""
    return "".join(" " if unicodedata.category(char) in {"Cc", "Cs"} else char for char in text)
