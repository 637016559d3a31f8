"""Search queries: parses the text of a search box into words, "phrases", -exclusions and document filters.

Operators select documents by their facts: `from:coolblue`, `type:invoice`, `after:2014`, `before:2015-03`, and
`amount:717.97`, `amount:>100` or `amount:100..200`. To select documents by a custom field, use `field:Project` or
`field:"Project:North coast"`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

from octavo.core.errors import BadInput
from octavo.core.types import JSON, first_day

DEFAULT_LIMIT = 20
MOST_LIMIT = 100
MOST_CHARACTERS = 1000
MOST_WORDS = 60
# A minus counts only before a word: 5 - 3 and well-known are plain text. An unclosed quotation mark reaches to the end.
_OPERATOR = re.compile(
    r'(?<!\S)(?P<name>from|type|before|after|amount|field):(?:"(?P<quoted>[^"]+)"|(?P<value>[^\s"]+))', re.IGNORECASE
)
_AMOUNT = re.compile(r"(?P<sign>[<>]=?)?(?P<least>\d{1,15}(?:\.\d{1,6})?)(?P<to>\.\.(?P<most>\d{1,15}(?:\.\d{1,6})?))?")
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
    """A parsed query. The hits are ranked by `words`, which include the words in phrases.

    A hit must contain all `phrases` and none of `excluded`. `facts` select documents, in the format that the database
    expects. A query with only `facts` finds all documents that they select.
    """

    words: tuple[str, ...]
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    facts: Mapping[str, JSON] = field(default_factory=dict[str, JSON])

    @property
    def text(self) -> str:
        """The words of the query as one text, from which its vector is computed."""
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class Filters:
    """Limits a search to the documents that match every filter.

    For `documents`, `tags` and `kinds`, one matching entry is enough. `since` and `until` apply to the document's date
    or, if it has none, to the day it was added. `kinds` are source types. If `versions` is true, superseded versions
    are included. Otherwise, they are searched only if `documents` contains them. `field` is a custom field and its
    value, as in `Project:Coast`, or only the name of the field. `facts` are the operators of a parsed query.
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
    facts: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    field: str | None = None

    def as_json(self) -> dict[str, JSON]:
        """Return the filters that are set, in the format that the database expects."""
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
            **_read_field(self.field or ""),
            **self.facts,
        }
        return {name: value for name, value in given.items() if value}


def parse_query(text: str) -> SearchQuery:
    """Parse the text of a search box. Raises `EmptyQuery` if it has no words to search for."""
    if len(text) > MOST_CHARACTERS:
        raise QueryTooLong(f"It has {len(text)} characters; the limit is {MOST_CHARACTERS}.")
    facts, text = _read_operators(_printable(text).translate(_QUOTES))
    words: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    for part in _PART.finditer(text):
        content = " ".join((part["phrase"] if part["word"] is None else part["word"]).split())
        if not _WORDLIKE.search(content):
            continue
        if part["minus"]:
            excluded.append(content)
            continue
        words += content.split()
        if part["word"] is None:
            phrases.append(content)
    if not words and not facts:
        raise EmptyQuery
    return SearchQuery(tuple(words[:MOST_WORDS]), tuple(phrases), tuple(excluded), facts)


def _read_operators(text: str) -> tuple[dict[str, JSON], str]:
    """Split a query into its operators and the remaining text. An operator with an invalid value is treated as text."""
    facts: dict[str, JSON] = {}

    def read(match: re.Match[str]) -> str:
        found = _read_operator(match["name"].lower(), match["quoted"] or match["value"])
        facts.update(found)
        return " " if found else match[0]

    rest = _OPERATOR.sub(read, text)
    return facts, rest


def _read_operator(name: str, value: str) -> dict[str, JSON]:
    if name == "from":
        return {"sender": value}
    if name == "type":
        return {"kind": value.lower().replace(" ", "_")}
    if name == "amount":
        return _read_amount(value)
    if name == "field":
        return _read_field(value)
    day = first_day(value)
    return {name: day.isoformat()} if day else {}


def _read_field(text: str) -> dict[str, JSON]:
    """Read a custom field and its value. Names contain no colon, so the name ends at the first colon."""
    name, _, value = text.partition(":")
    found: dict[str, JSON] = {"field": name.strip(), "field_value": value.strip()}
    return {one: text for one, text in found.items() if text} if found["field"] else {}


def _read_amount(value: str) -> dict[str, JSON]:
    match = _AMOUNT.fullmatch(value)
    if not match or (match["sign"] and match["to"]):
        return {}
    sign, least = match["sign"] or "", match["least"]
    most = match["most"] or least
    found: dict[str, JSON] = {} if sign.startswith("<") else {"amount_min": least}
    return found if sign.startswith(">") else found | {"amount_max": most}


def _printable(text: str) -> str:
    """Replace control characters and lone surrogates, which the database rejects, with spaces."""
    return "".join(" " if unicodedata.category(char) in {"Cc", "Cs"} else char for char in text)
