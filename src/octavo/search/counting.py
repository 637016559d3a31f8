"""In how many passages words are. Those of common words are remembered: they cost the most, and hardly change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from octavo.database import Connection, fetch_rows, load_queries
from octavo.search.ranking import MOST_CANDIDATES, Term, has_few

QUERIES = load_queries("search")
# A word in fewer passages is counted faster than it matters.
REMEMBERED_FROM = 500
MOST_REMEMBERED = 20_000
# An owner's texts may have grown or shrunk by so much before a word is counted again.
DRIFT = 0.02

Word = tuple[UUID, str, str]


@dataclass(frozen=True, slots=True)
class Count:
    """Of one word in one language, when there were so many passages."""

    passages: int
    found_in: int
    often_in: int


class Remembered:
    """The counts that were needed last. Nothing is lost with them: whoever starts without them counts."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._counts: OrderedDict[Word, Count] = OrderedDict()

    def find(self, word: Word, passages: int) -> Count | None:
        count = self._counts.get(word)
        if count is None or abs(count.passages - passages) > DRIFT * passages:
            return None
        self._counts.move_to_end(word)
        return count

    def keep(self, word: Word, count: Count) -> None:
        if count.found_in < REMEMBERED_FROM:
            return
        self._counts[word] = count
        while len(self._counts) > self._most:
            self._counts.popitem(last=False)


_remembered = Remembered()


async def read_terms(connection: Connection, owner: UUID, words: Sequence[str]) -> list[Term]:
    """The words as the owner's languages read them; nothing is counted."""
    rows = await fetch_rows(connection, QUERIES.terms, {"owner": owner, "words": list(words)}, prepare=False)
    return [Term(**row, found_in=0, often_in=0) for row in rows]


async def count_terms(
    connection: Connection, owner: UUID, words: Sequence[str], remembered: Remembered = _remembered
) -> list[Term]:
    """The same, with what ranking has to know of each."""
    terms = await read_terms(connection, owner, words)
    known = {term: remembered.find((owner, term.config, term.query), term.passages) for term in terms}
    missing = [term for term, count in known.items() if count is None]
    counted = await _count(connection, owner, missing, few=has_few(terms)) if missing else {}
    for term in missing:
        found_in, often_in = counted.get((term.config, term.query), (0, 0))
        count = known[term] = Count(term.passages, found_in, often_in)
        remembered.keep((owner, term.config, term.query), count)
    return [_with(term, known[term]) for term in terms]


async def _count(
    connection: Connection, owner: UUID, terms: Sequence[Term], *, few: bool
) -> dict[tuple[str, str], tuple[int, int]]:
    """By language and word: in how many passages it is, and how many use it often."""
    queries = {term.query: term.often for term in terms}
    values: dict[str, Any] = {"owner": owner, "queries": list(queries)}
    if few:
        rows = await fetch_rows(connection, QUERIES.counts_of_few, values, prepare=False)
    else:
        values |= {"often": list(queries.values()), "common": MOST_CANDIDATES // 2}
        rows = await fetch_rows(connection, QUERIES.counts, values, prepare=False)
    return {(row["config"], row["query"]): (row["found_in"], row["often_in"]) for row in rows}


def _with(term: Term, count: Count | None) -> Term:
    return replace(term, found_in=count.found_in, often_in=count.often_in) if count else term
