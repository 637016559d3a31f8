"""`local` as the gateway uses it. Imported when it is first asked: who has paid models may never need it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from octavo.ai.vectors import Vectors
from octavo.language import NAME, Embedder
from octavo.language.once import once


@once
def embedder() -> Embedder:
    """One for all threads of a process."""
    return Embedder(threads=len(os.sched_getaffinity(0)))


def embed_here(texts: Sequence[str]) -> Vectors:
    return Vectors(NAME, embedder().embed(texts).tolist())
