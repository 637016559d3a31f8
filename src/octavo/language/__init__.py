"""The offline provider: rules, word counts and a small embedding model. All of it runs on this machine, free of charge.

It uses no network, database or clock. Its results are labelled `local`. It quotes text and never generates any. `ai`
imports this package, because tasks fall back to it if no model is configured.
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
