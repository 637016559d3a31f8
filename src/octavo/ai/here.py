"""`local` as the gateway uses it. Imported when it is first asked: who has paid models may never need it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

from octavo.ai.local import NAME, Embedder
from octavo.ai.vectors import Vectors


@cache
def _embedder() -> Embedder:
    return Embedder(threads=len(os.sched_getaffinity(0)))


def embed_here(texts: Sequence[str]) -> Vectors:
    return Vectors(NAME, _embedder().embed(texts).tolist())
