"""Connects passages that name the same reference number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from octavo.extensions import ChunkPair, ConnectionType, FoundConnection

_REFERENCE = re.compile(r"\b[A-Z]{2,6}-\d{4}-\d{3,8}\b")


def find_shared_references(pairs: Sequence[ChunkPair]) -> Iterator[FoundConnection]:
    for pair in pairs:
        shared = sorted(set(_REFERENCE.findall(pair.source.content)) & set(_REFERENCE.findall(pair.target.content)))
        if shared:
            yield FoundConnection(pair, ConnectionType.SIMILARITY, 1.0, f"Both passages mention {', '.join(shared)}.")
