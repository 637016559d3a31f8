"""The `local` provider, which works offline with rules, word counts and small bundled models.

It runs on this machine, costs nothing, and uses no network, database or clock. It only quotes text and never writes new
text. The `ai` package uses it if no model is configured.
"""

from octavo.language.description import MADE_BY, Description, describe, prepare
from octavo.language.embedding import DIMENSIONS, NAME, Embedder, offline_embedder
from octavo.language.extraction import extract, find_subject
from octavo.language.quotes import answer, asks_summary, summarise_in_quotes

__all__ = [
    "DIMENSIONS",
    "MADE_BY",
    "NAME",
    "Description",
    "Embedder",
    "answer",
    "asks_summary",
    "describe",
    "extract",
    "find_subject",
    "offline_embedder",
    "prepare",
    "summarise_in_quotes",
]
