"""Searches an account's documents by keywords, by meaning or by both, and answers questions about them."""

from octavo.records.search import Degraded, Mode, Scores, SearchHit, SearchPage
from octavo.search.chunk_search import embed_query, find, find_page, search
from octavo.search.hits import QueryEmbedder
from octavo.search.query import DEFAULT_LIMIT, MOST_LIMIT, EmptyQuery, Filters, QueryTooLong, SearchQuery, parse_query

__all__ = [
    "DEFAULT_LIMIT",
    "MOST_LIMIT",
    "Degraded",
    "EmptyQuery",
    "Filters",
    "Mode",
    "QueryEmbedder",
    "QueryTooLong",
    "Scores",
    "SearchHit",
    "SearchPage",
    "SearchQuery",
    "embed_query",
    "find",
    "find_page",
    "parse_query",
    "search",
]
