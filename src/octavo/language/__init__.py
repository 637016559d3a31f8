"""The provider that is always there: rules, counting and a small embedding model, all on this machine and for free.

No network, no database, no clock. What it makes is labelled `local`. It quotes and counts; it does not write.
"""

from octavo.language.description import MADE_BY, Description, describe, prepare
from octavo.language.embedding import DIMENSIONS, NAME, Embedder, offline_embedder
from octavo.language.quotes import answer, asks_summary, digest

__all__ = [
    "DIMENSIONS",
    "MADE_BY",
    "NAME",
    "Description",
    "Embedder",
    "answer",
    "asks_summary",
    "describe",
    "digest",
    "offline_embedder",
    "prepare",
]
