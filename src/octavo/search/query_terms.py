"""Counts how many chunks contain each word of a query, and suggests spellings for words that no document contains.

For words that many chunks contain, the count is estimated from a sample, because counting would take longer than
everything else in a search. These estimates are cached, because they hardly change. Only words from the account's
documents are suggested.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from octavo.database import Connection, current_viewer, fetch_rows, load_queries
from octavo.search.ranking import FEW, MOST_CANDIDATES, Term

QUERIES = load_queries("search")
# Counting a word that is in fewer chunks is cheap.
CACHED_FROM = 500
MOST_CACHED = 20_000
# A cached count is used until the number of the owner's chunks has changed by this share.
DRIFT = 0.02
# If an owner has this many chunks, the counts of common words are estimated from a sample of the chunks.
ESTIMATED_FROM = 4000
SAMPLE = 400
# An estimate needs this many matches in the sample, and must be this high. Otherwise the word is counted.
LEAST_MATCHES, LEAST_ESTIMATE = 6, 1000
# The most words of a query that are corrected, and of the vocabulary that each is compared with.
MOST_UNKNOWN = 4
MOST_COMPARED = 4000
# The most similar words that are looked up, because a word may be only in the trash.
MOST_TRIED = 4
# Shorter words are similar to too many others.
SHORTEST = 4
# Words from this length on may differ by two letters.
LONG = 7
# The terms of a query have no quotation marks.
_QUOTES = '"“”„«»'
_LETTERS = re.compile(r"[^\W\d_]+")

# The account, the limited member who searches, the language and the query.
Word = tuple[UUID, UUID | None, str, str]
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
    """Convert each word to search terms for every language of the account's documents.

    A word can become several terms, or none if it is a stop word. `found_in` and `often_in` of the terms are 0;
    `count_terms` fills them in.
    """
    rows = await fetch_rows(connection, QUERIES.terms, {"owner": owner, "words": list(words)}, prepare=False)
    return [Term(**row, found_in=0, often_in=0) for row in rows]


async def count_terms(
    connection: Connection, owner: UUID, words: Sequence[str], cache: TermCountCache = _cache
) -> list[Term]:
    """Convert words to search terms with the counts that ranking needs."""
    terms = await read_terms(connection, owner, words)
    viewer = current_viewer()
    known = {term: cache.find((owner, viewer, term.config, term.query), term.chunks) for term in terms}
    missing = [term for term, count in known.items() if count is None and term.chunks]
    counter = TermCounter(connection, owner, sum({term.config: term.chunks for term in terms}.values()))
    counted = await counter.count(missing) if missing else {}
    for term in missing:
        count = known[term] = counted[term]
        cache.keep((owner, viewer, term.config, term.query), count)
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
            for found in [min(counts.get((term.config, term.query), 0), term.chunks)]
        }

    async def _count_others(self, queries: Sequence[str], counts: Counts) -> Counts:
        """Count the matches of the queries that are not in `counts` yet."""
        known = {query for _, query in counts}
        missing = [query for query in dict.fromkeys(queries) if query not in known]
        return await self._count(QUERIES.counts, missing) if missing else {}

    async def _estimate(self, queries: Sequence[str]) -> Counts:
        """Estimate how many chunks match each query. Queries that match few chunks are left out of the result."""
        if self.chunks < ESTIMATED_FROM:
            return {}
        values = {"owner": self.owner, "queries": list(dict.fromkeys(queries)), "most": SAMPLE}
        rows = await fetch_rows(self.connection, QUERIES.sampled_counts, values, prepare=False)
        matches: Counter[str] = Counter()
        for row in rows:
            matches[row["query"]] += row["matches"]
        step = self.chunks / rows[0]["sampled"] if rows else 1
        least = max(LEAST_MATCHES, LEAST_ESTIMATE / step)
        return {
            (row["config"], row["query"]): round(row["matches"] * step)
            for row in rows
            if matches[row["query"]] >= least
        }

    async def _count(self, counts: bytes, queries: Sequence[str]) -> Counts:
        values = {"owner": self.owner, "queries": list(dict.fromkeys(queries))}
        rows = await fetch_rows(self.connection, counts, values, prepare=False)
        return {(row["config"], row["query"]): row["found_in"] for row in rows}


def _with_count(term: Term, count: TermCount | None) -> Term:
    return replace(term, found_in=count.found_in, often_in=count.often_in) if count else term


# Spelling ----------------------------------------------------------------------------------------------------------


async def suggest(connection: Connection, owner: UUID, query: str, terms: Sequence[Term]) -> str | None:
    """Replace unknown words in the query with similar words from the account's documents.

    Returns None if there are no such words. `terms` are the counted terms of the query.
    """
    unknown = await _unknown_words(connection, owner, query, terms)
    if not unknown:
        return None
    values = {"owner": owner, "words": unknown, "edits": [most_edits(word) for word in unknown], "most": MOST_COMPARED}
    rows = await fetch_rows(connection, QUERIES.near_words, values, prepare=False)
    similar = {
        row["word"]: rank_similar(row["word"], dict(zip(row["nears"], row["listed"], strict=True))) for row in rows
    }
    found = await _found_words(connection, owner, {near for nears in similar.values() for near in nears})
    chosen = {word: next((near for near in nears if near in found), None) for word, nears in similar.items()}
    return replace_words(query, {word: near for word, near in chosen.items() if near})


async def _unknown_words(connection: Connection, owner: UUID, query: str, terms: Sequence[Term]) -> list[str]:
    known = {term.word for term in terms if term.found_in}
    missing = {term.word for term in terms} - known
    parts = [part for part in query.split() if part.strip(_QUOTES) in missing]
    letters = dict.fromkeys(word.lower() for part in parts for word in _LETTERS.findall(part))
    words = [word for word in letters if len(word) >= SHORTEST][:MOST_UNKNOWN]
    if not words:
        return []
    named = await fetch_rows(connection, QUERIES.named_words, {"owner": owner, "words": words}, prepare=False)
    return [word for word in words if word not in {row["word"] for row in named}]


async def _found_words(connection: Connection, owner: UUID, words: Iterable[str]) -> set[str]:
    """Return the words that occur in documents outside the trash."""
    wanted = sorted(words)
    counted = {term.word for term in await count_terms(connection, owner, wanted) if term.found_in}
    named = await fetch_rows(connection, QUERIES.named_words, {"owner": owner, "words": wanted}, prepare=False)
    return counted | {row["word"] for row in named}


def rank_similar(word: str, listed: Mapping[str, int]) -> list[str]:
    """Return the words that `word` may be a misspelling of, best first.

    Words that need fewer edits come first, then words with the same first letter, then words in more documents.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    # An edit adds, removes or replaces a letter, or swaps two neighbours.
    compared = process.extract(word, list(listed), scorer=OSA.distance, score_cutoff=most_edits(word), limit=None)
    edits = {near: count for near, count, _ in compared if count}
    return sorted(edits, key=lambda near: (edits[near], near[0] != word[0], -listed[near], near))[:MOST_TRIED]


def most_edits(word: str) -> int:
    """Return by how many edits a word of this length may differ from the word that was meant."""
    return 2 if len(word) >= LONG else 1


def replace_words(query: str, corrections: Mapping[str, str]) -> str | None:
    """Replace these words in the query, ignoring case. Returns None if there are no corrections."""
    if not corrections:
        return None
    return _LETTERS.sub(lambda found: corrections.get(found[0].lower(), found[0]), query)
