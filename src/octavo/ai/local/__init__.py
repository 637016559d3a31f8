"""The provider that is always there: rules, counting and a small embedding model, all on this machine and for free.

No network, no database, no clock. What it makes is labelled `local`. It quotes and counts; it does not write.
"""

from octavo.ai.local.embedding import DIMENSIONS, NAME, Embedder

__all__ = ["DIMENSIONS", "NAME", "Embedder"]
