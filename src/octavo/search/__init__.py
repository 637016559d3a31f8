"""Finds what is written in an owner's documents: by words, by meaning, or both."""

from octavo.search.asking import Asked, read_query
from octavo.search.contract import DEFAULT_LIMIT, MOST_LIMIT, Degraded, Embeds, Filters, Found, Hit, Mode, Scores
from octavo.search.errors import NothingAsked, QueryTooLong
from octavo.search.paging import find_page
from octavo.search.steps import embed_query, find, search

__all__ = [
    "DEFAULT_LIMIT",
    "MOST_LIMIT",
    "Asked",
    "Degraded",
    "Embeds",
    "Filters",
    "Found",
    "Hit",
    "Mode",
    "NothingAsked",
    "QueryTooLong",
    "Scores",
    "embed_query",
    "find",
    "find_page",
    "read_query",
    "search",
]
