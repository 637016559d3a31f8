"""Search queries: the text of a search box as words, "phrases" and -exclusions, and filters by document."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from octavo.core.errors import BadInput
from octavo.core.types import JSON

DEFAULT_LIMIT = 20
MOST_LIMIT = 100
MOST_CHARACTERS = 1000
MOST_WORDS = 60
# A minus counts only before a word: 5 - 3 and well-known are plain text. An unclosed quotation mark reaches to the end.
_PART = re.compile(r'(?P<minus>(?<!\S)-(?=["\w]))?(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))')
_WORDLIKE = re.compile(r"\w")
_QUOTES = str.maketrans(dict.fromkeys("“”„«»", '"'))


class EmptyQuery(BadInput):
    """The query is empty. Enter a word, a phrase in quotation marks, or a question."""

    code = "NOTHING_ASKED"


class QueryTooLong(BadInput):
    """The query is too long."""

    code = "QUERY_TOO_LONG"


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A parsed query. `words` rank the hits and include the words of phrases.

    A hit must contain all `phrases` and none of `excluded`.
    """

    words: tuple[str, ...]
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text to embed."""
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class Filters:
    """Limits a search to the documents that match every filter.

    For `documents`, `tags` and `kinds`, one matching entry is enough. `since` and `until` apply to the document's date
    or, if it has none, to the day it was added. `kinds` are source types. `versions` includes superseded versions;
    without it, they are searched only if `documents` names them.
    """

    documents: Sequence[UUID] = ()
    tags: Sequence[str] = ()
    collection: str | None = None
    kinds: Sequence[str] = ()
    language: str | None = None
    since: date | None = None
    until: date | None = None
    without: UUID | None = None
    versions: bool = False

    def as_json(self) -> dict[str, JSON]:
        """The filters that are set, in the form that the database expects."""
        given: dict[str, JSON] = {
            "documents": [str(one) for one in self.documents],
            "tags": list(self.tags),
            "collection": self.collection,
            "kinds": list(self.kinds),
            "language": self.language,
            "since": self.since.isoformat() if self.since else None,
            "until": self.until.isoformat() if self.until else None,
            "without": str(self.without) if self.without else None,
            "versions": self.versions,
        }
        return {name: value for name, value in given.items() if value}


def parse_query(text: str) -> SearchQuery:
    """Parse the text of a search box. Raises `EmptyQuery` if it has no words to search for."""
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
        raise EmptyQuery
    return SearchQuery(tuple(words[:MOST_WORDS]), tuple(phrases), tuple(excluded))


def _printable(text: str) -> str:
    """Replace control characters and lone surrogates, which the database rejects, with spaces."""
    return "".join(" " if unicodedata.category(char) in {"Cc", "Cs"} else char for char in text)
