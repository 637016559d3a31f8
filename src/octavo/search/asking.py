"""What somebody typed into the search box, taken apart: words, "phrases" and -what is not wanted."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from octavo.search.errors import NothingAsked, QueryTooLong

MOST_CHARACTERS = 1000
MOST_WORDS = 60
# A minus counts only before a word: 5 - 3 and well-known are plain text. A quotation mark that is never closed reaches
# to the end.
_PART = re.compile(r'(?P<minus>(?<!\S)-(?=["\w]))?(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))')
_WORDLIKE = re.compile(r"\w")
_QUOTES = str.maketrans(dict.fromkeys("“”„«»", '"'))


@dataclass(frozen=True, slots=True)
class Asked:
    """`words` rank, those of phrases among them; each of `phrases` has to be there, and nothing of `excluded`."""

    words: tuple[str, ...]
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As a model reads it."""
        return " ".join(self.words)


def read_query(text: str) -> Asked:
    """Anything can be typed; what has nothing to look for in it is refused with a reason."""
    if len(text) > MOST_CHARACTERS:
        raise QueryTooLong(f"It has {len(text)} characters; {MOST_CHARACTERS} are possible.")
    words: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    for part in _PART.finditer(_printable(text).translate(_QUOTES)):
        said = " ".join((part["phrase"] if part["word"] is None else part["word"]).split())
        if not _WORDLIKE.search(said):
            continue
        if part["minus"]:
            excluded.append(said)
            continue
        words += said.split()
        if part["word"] is None:
            phrases.append(said)
    if not words:
        raise NothingAsked
    return Asked(tuple(words[:MOST_WORDS]), tuple(phrases), tuple(excluded))


def _printable(text: str) -> str:
    """Without control characters and halves of characters, which no text has and no database takes."""
    return "".join(" " if unicodedata.category(char) in {"Cc", "Cs"} else char for char in text)
