"""Counts the chunks that contain a word.

For common words, the count is estimated from a sample, because counting would take longer than everything else in a
search. These estimates are cached, because they hardly change.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from octavo.database import Connection, fetch_rows, load_queries
from octavo.search.ranking import FEW, MOST_CANDIDATES, Term

QUERIES = load_queries("search")
# Counting a word that is in fewer chunks is cheap.
CACHED_FROM = 500
MOST_CACHED = 20_000
# A cached count is used until the number of the owner's chunks has changed by this share.
DRIFT = 0.02
# Words in more chunks than this (of all owners) are estimated, unless that is only a small share of all chunks.
ESTIMATED_FROM, ESTIMATED_SHARE = 10_000, 0.01
SAMPLE = 400
# An estimate needs this many matches in the sample; below, the word is rare for this owner and is counted.
LEAST_MATCHES = 6

Word = tuple[UUID, str, str]
# The number of chunks by language and query.
Counts = dict[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class TermCount:
    """The counts of one word in one language.

    `chunks` is the number of the account's chunks when the word was counted.
    """

    chunks: int
    found_in: int
    often_in: int


class TermCountCache:
    """A least-recently-used cache of counts. It can be emptied at any time, because missing words are counted again."""

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

    def clear(self) -> None:
        self._counts.clear()


_cache = TermCountCache()


def forget_counts() -> None:
    """Empty the cache of this process. Benchmarks use this."""
    _cache.clear()


async def read_terms(connection: Connection, owner: UUID, words: Sequence[str]) -> list[Term]:
    """Convert words to search terms without counts, one for each language of the account's documents."""
    rows = await fetch_rows(connection, QUERIES.terms, {"owner": owner, "words": list(words)}, prepare=False)
    return [Term(**row, found_in=0, often_in=0) for row in rows]


async def count_terms(
    connection: Connection, owner: UUID, words: Sequence[str], cache: TermCountCache = _cache
) -> list[Term]:
    """Convert words to search terms with the counts that ranking needs."""
    terms = await read_terms(connection, owner, words)
    known = {term: cache.find((owner, term.config, term.query), term.chunks) for term in terms}
    missing = [term for term, count in known.items() if count is None and term.chunks]
    counter = TermCounter(connection, owner, sum({term.config: term.chunks for term in terms}.values()))
    counted = await counter.count(missing) if missing else {}
    for term in missing:
        count = known[term] = counted[term]
        cache.keep((owner, term.config, term.query), count)
    return [_with_count(term, known[term]) for term in terms]


@dataclass(frozen=True, slots=True)
class TermCounter:
    """Counts words in an account's chunks. `chunks` is the number of these chunks in all languages."""

    connection: Connection
    owner: UUID
    chunks: int

    async def count(self, terms: Sequence[Term]) -> dict[Term, TermCount]:
        """Count the chunks that contain each word and, for common words, the chunks that contain it often."""
        words = [term.query for term in terms]
        if self.chunks <= FEW:
            counts = await self._count(QUERIES.counts_of_few, words)
        else:
            counts = await self._estimate([*words, *(term.often for term in terms)])
            counts |= await self._count_others(words, counts)
            common = [one.often for one in terms if counts.get((one.config, one.query), 0) > MOST_CANDIDATES // 2]
            counts |= await self._count_others(common, counts)
        return {
            term: TermCount(term.chunks, found, min(counts.get((term.config, term.often), 0), found))
            for term in terms
            for found in [counts.get((term.config, term.query), 0)]
        }

    async def _count_others(self, queries: Sequence[str], counts: Counts) -> Counts:
        """Count the matches of those queries that are not in `counts` yet."""
        known = {query for _, query in counts}
        missing = [query for query in dict.fromkeys(queries) if query not in known]
        return await self._count(QUERIES.counts, missing) if missing else {}

    async def _estimate(self, queries: Sequence[str]) -> Counts:
        """Estimate how many chunks match each query. Queries that match few chunks are left out of the result."""
        if self.chunks < ESTIMATED_FROM:
            return {}
        wanted = {"queries": list(queries), "from_chunks": ESTIMATED_FROM, "from_share": ESTIMATED_SHARE}
        common = [row["query"] for row in await fetch_rows(self.connection, QUERIES.common_queries, wanted)]
        if not common:
            return {}
        step = max(self.chunks // SAMPLE, 1)
        counts = await self._count(QUERIES.estimated_counts, common, step=step)
        matches: Counter[str] = Counter()
        for (_, query), found in counts.items():
            matches[query] += found // step
        return {key: found for key, found in counts.items() if matches[key[1]] >= LEAST_MATCHES}

    async def _count(self, counts: bytes, queries: Sequence[str], **more: int) -> Counts:
        values = {"owner": self.owner, "queries": list(dict.fromkeys(queries)), **more}
        rows = await fetch_rows(self.connection, counts, values, prepare=False)
        return {(row["config"], row["query"]): row["found_in"] for row in rows}


def _with_count(term: Term, count: TermCount | None) -> Term:
    return replace(term, found_in=count.found_in, often_in=count.often_in) if count else term
