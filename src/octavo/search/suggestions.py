"""Suggests spellings for query words that do not occur in the account's documents.

Only words from these documents are suggested.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from octavo.database import Connection, fetch_rows, load_queries
from octavo.search.ranking import Term
from octavo.search.term_counts import count_terms

QUERIES = load_queries("search")
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


async def suggest(connection: Connection, owner: UUID, query: str, terms: Sequence[Term]) -> str | None:
    """Replace unknown words in the query with similar words from the account's documents.

    Returns None if there are no such words. `terms` are the counted terms of the query.
    """
    unknown = await _unknown_words(connection, owner, query, terms)
    if not unknown:
        return None
    values = {"owner": owner, "words": unknown, "most": MOST_COMPARED}
    rows = await fetch_rows(connection, QUERIES.near_words, values, prepare=False)
    listed: dict[str, dict[str, int]] = {word: {} for word in unknown}
    for row in rows:
        listed[row["word"]][row["near"]] = row["listed"]
    similar = {word: rank_similar(word, nears) for word, nears in listed.items()}
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
    """Return the given words that occur in documents outside the trash."""
    wanted = sorted(words)
    counted = {term.word for term in await count_terms(connection, owner, wanted) if term.found_in}
    named = await fetch_rows(connection, QUERIES.named_words, {"owner": owner, "words": wanted}, prepare=False)
    return counted | {row["word"] for row in named}


def rank_similar(word: str, listed: Mapping[str, int]) -> list[str]:
    """Return the words that `word` may be a misspelling of, sorted by fewest changes and then by most documents."""
    limit = 2 if len(word) >= LONG else 1
    changes = {near: count_changes(word, near, limit) for near in listed}
    similar = [near for near, count in changes.items() if 0 < count <= limit]
    return sorted(similar, key=lambda near: (changes[near], near[0] != word[0], -listed[near], near))[:MOST_TRIED]


def count_changes(word: str, other: str, limit: int) -> int:
    """Count the single-letter edits (add, remove, replace, swap neighbours) that turn one word into the other.

    Returns `limit + 1` if there are more than `limit`.
    """
    if abs(len(word) - len(other)) > limit or len({*word} ^ {*other}) > 2 * limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        last, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


def replace_words(query: str, corrections: Mapping[str, str]) -> str | None:
    """Replace these words in the query, ignoring case. None if nothing changes."""
    if not corrections:
        return None
    return _LETTERS.sub(lambda found: corrections.get(found[0].lower(), found[0]), query)
