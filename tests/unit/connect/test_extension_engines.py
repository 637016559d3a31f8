"""Connections that extensions find: what is invalid is left out, and an extension that fails stops nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import pytest

from octavo.connect import detection
from octavo.connect.detection import ConnectionEngine, FoundConnection, find_by_extensions
from octavo.connect.evidence import ChunkPair, ComparableChunk, SentenceCache
from octavo.core.extensions import ExtensionKind
from octavo.records.search import Engine


def chunk(number: int) -> ComparableChunk:
    return ComparableChunk(UUID(int=number), UUID(int=number + 100), "The order names forty bollards of cast iron.")


def pair(one: int, other: int) -> ChunkPair:
    return ChunkPair(chunk(one), chunk(other), 0.9)


def find_well(pairs: Sequence[ChunkPair]) -> Iterator[FoundConnection]:
    for one in pairs:
        yield FoundConnection(one, Engine.SIMILARITY, 0.8, "Both name  bollards.")


def find_wrong(pairs: Sequence[ChunkPair]) -> Iterator[FoundConnection]:
    yield FoundConnection(pairs[0], Engine.SIMILARITY, float("nan"), "No number.")
    yield FoundConnection(pairs[0], Engine.SIMILARITY, 2.0, "Too strong.")
    yield FoundConnection(pair(8, 9), Engine.SIMILARITY, 0.5, "Never compared.")


def fail(pairs: Sequence[ChunkPair]) -> list[FoundConnection]:
    raise RuntimeError(len(pairs))


def test_only_valid_connections_are_kept_and_a_failure_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(kind: ExtensionKind) -> dict[str, ConnectionEngine]:
        assert kind is ExtensionKind.ENGINE
        return {"fails": fail, "wrong": find_wrong, "well": find_well}

    monkeypatch.setattr(detection, "load_extensions", load)
    found = find_by_extensions([pair(1, 2), pair(1, 2), pair(1, 3)], SentenceCache())
    assert [(one.made_by, one.strength, one.explanation) for one in found] == [
        ("extension:well", 0.8, "Both name bollards.")
    ] * 2
