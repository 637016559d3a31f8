"""Counts the chunks that contain a word.

Counts of common words are cached: counting them takes longest, and they hardly change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from octavo.database import Connection, fetch_rows, load_queries
from octavo.search.ranking import MOST_CANDIDATES, Term, has_few

QUERIES = load_queries("search")
# Counting a word that is in fewer chunks is cheap.
CACHED_FROM = 500
MOST_CACHED = 20_000
# A cached count is used until the number of the owner's chunks has changed by this share.
DRIFT = 0.02

Word = tuple[UUID, str, str]


@dataclass(frozen=True, slots=True)
class TermCount:
    """The counts of one word in one language, taken when the owner had `chunks` chunks."""

    chunks: int
    found_in: int
    often_in: int


class TermCountCache:
    """A least-recently-used cache of counts. Losing its content is harmless: missing words are counted again."""

    def __init__(self, most: int = MOST_CACHED) -> None:
        self._most = most
        self._counts: OrderedDict[Word, TermCount] = OrderedDict()

    def find(self, word: Word, chunks: int) -> TermCount | None:
        count = self._counts.get(word)
        if count is None or abs(count.chunks - chunks) > DRIFT * chunks:
            return None
        self._counts.move_to_end(word)
        return count

    def keep(self, word: Word, count: TermCount) -> None:
        if count.found_in < CACHED_FROM:
            return
        self._counts[word] = count
        while len(self._counts) > self._most:
            self._counts.popitem(last=False)


_cache = TermCountCache()


async def read_terms(connection: Connection, owner: UUID, words: Sequence[str]) -> list[Term]:
    """Convert words to search terms, one for each of the owner's languages. The terms have no counts."""
    rows = await fetch_rows(connection, QUERIES.terms, {"owner": owner, "words": list(words)}, prepare=False)
    return [Term(**row, found_in=0, often_in=0) for row in rows]


async def count_terms(
    connection: Connection, owner: UUID, words: Sequence[str], cache: TermCountCache = _cache
) -> list[Term]:
    """Like `read_terms`, but with the counts that ranking needs."""
    terms = await read_terms(connection, owner, words)
    known = {term: cache.find((owner, term.config, term.query), term.chunks) for term in terms}
    missing = [term for term, count in known.items() if count is None and term.chunks]
    counted = await _count(connection, owner, missing, few=has_few(terms)) if missing else {}
    for term in missing:
        found_in, often_in = counted.get((term.config, term.query), (0, 0))
        count = known[term] = TermCount(term.chunks, found_in, often_in)
        cache.keep((owner, term.config, term.query), count)
    return [_with_count(term, known[term]) for term in terms]


async def _count(
    connection: Connection, owner: UUID, terms: Sequence[Term], *, few: bool
) -> dict[tuple[str, str], tuple[int, int]]:
    """Count, for each language and word, the chunks that contain the word and the chunks that use it often."""
    queries = {term.query: term.often for term in terms}
    values: dict[str, Any] = {"owner": owner, "queries": list(queries)}
    if few:
        rows = await fetch_rows(connection, QUERIES.counts_of_few, values, prepare=False)
    else:
        values |= {"often": list(queries.values()), "common": MOST_CANDIDATES // 2}
        rows = await fetch_rows(connection, QUERIES.counts, values, prepare=False)
    return {(row["config"], row["query"]): (row["found_in"], row["often_in"]) for row in rows}


def _with_count(term: Term, count: TermCount | None) -> Term:
    return replace(term, found_in=count.found_in, often_in=count.often_in) if count else term
