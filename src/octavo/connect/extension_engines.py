"""Connections that extensions find.

The entry point is a function that takes pairs of chunks and returns the connections that it finds between them. Octavo
quotes the most similar sentences of a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from uuid import UUID

import structlog

from octavo.connect.evidence import ChunkPair, DetectedConnection, SentenceCache, shared_quotes
from octavo.core.extensions import ExtensionKind, load_extensions
from octavo.records.search import Engine

log = structlog.get_logger()
MOST_EXPLANATION = 500


@dataclass(frozen=True, slots=True)
class FoundConnection:
    """A connection between the chunks of a pair: its type, its strength from 0 to 1, and an explanation."""

    pair: ChunkPair
    engine: Engine
    strength: float
    explanation: str


ConnectionEngine = Callable[[Sequence[ChunkPair]], Iterable[FoundConnection]]


def find_by_extensions(pairs: Iterable[ChunkPair], sentences: SentenceCache) -> list[DetectedConnection]:
    """Let each extension look at the pairs. If one fails, this is logged, and the others go on. Invalid
    connections are left out."""
    engines = load_extensions(ExtensionKind.ENGINE)
    if not engines:
        return []
    by_ids = {(pair.source.id, pair.target.id): pair for pair in pairs}
    found: list[DetectedConnection] = []
    for name, engine in engines.items():
        try:
            answers = cast("ConnectionEngine", engine)([*by_ids.values()])
            made = [_connect(one, name, sentences) for one in answers if _is_valid(one, by_ids)]
        except Exception:
            log.exception("extension failed", kind=str(ExtensionKind.ENGINE), name=name)
        else:
            found += made
    return found


def _is_valid(one: FoundConnection, by_ids: Mapping[tuple[UUID, UUID], ChunkPair]) -> bool:
    """Whether a connection can be stored: between chunks that were compared, with a strength from 0 to 1."""
    return (one.pair.source.id, one.pair.target.id) in by_ids and 0 <= one.strength <= 1


def _connect(one: FoundConnection, name: str, sentences: SentenceCache) -> DetectedConnection:
    quotes = shared_quotes(one.pair.source, one.pair.target, sentences)
    explanation = " ".join(one.explanation.split())[:MOST_EXPLANATION]
    return DetectedConnection(
        Engine(one.engine),
        one.pair,
        round(one.strength, 3),
        quotes.mine,
        quotes.theirs,
        explanation,
        made_by=f"extension:{name}",
    )
