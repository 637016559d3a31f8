"""How the words of a document are counted: as everywhere else."""

from __future__ import annotations

from octavo.core.languages import count_words

__all__ = ["count_words"]
