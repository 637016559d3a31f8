"""Finds bridges: important chunks of documents on different subjects that share some concepts.

These pairs are only candidates. Shared concepts do not prove that two texts have an idea in common, so a bridge is kept
only if a model confirms it. Without a model there are no bridges. The subject ("domain") of a document is given by its
generated topics and its mean vector.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from octavo.connect.evidence import ChunkPair, ComparableChunk, DetectedConnection, SentenceCache, shared_quotes
from octavo.connect.neighbours import EmbeddingModel
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.records.search import Engine

QUERIES = load_queries("connections")
LEAST_IMPORTANCE = 0.6
LEAST_OVERLAP, MOST_OVERLAP = 0.2, 0.7
MOST_CANDIDATES = 15
# The topics of a document are the most frequent themes of its chunks.
MOST_TOPICS = 8
# Two documents are in the same domain if they share more than this fraction of the topics of either document.
MOST_SHARED_TOPICS = 0.5

# A pair and its concept overlap.
Candidate: TypeAlias = tuple[ChunkPair, float]


def find_candidates(pairs: Iterable[ChunkPair], apart: float) -> list[Candidate]:
    """Find pairs of important chunks on different subjects that share some concepts.

    Returns each pair with a score for the overlap of the chunks' concepts.
    """
    return [
        (pair, overlap)
        for pair in pairs
        if min(pair.source.importance, pair.target.importance) > LEAST_IMPORTANCE
        and pair.similarity < apart
        and LEAST_OVERLAP < (overlap := concept_overlap(pair.source, pair.target)) < MOST_OVERLAP
    ]


def choose_candidates(
    candidates: Iterable[Candidate], domains: Mapping[UUID, DocumentDomain], same_domain: float
) -> list[Candidate]:
    """Choose the best candidates for each source chunk. Only documents on different subjects are considered."""
    by_source: dict[UUID, list[Candidate]] = defaultdict(list)
    for pair, overlap in candidates:
        one, other = (domains.get(chunk.document_id, UNKNOWN) for chunk in (pair.source, pair.target))
        if are_different(one, other, same_domain):
            by_source[pair.source.id].append((pair, overlap))
    return [one for found in by_source.values() for one in best_first(found)[:MOST_CANDIDATES]]


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort candidates, strongest first. Candidates of equal strength are sorted by chunk id, so the order is stable."""
    return sorted(candidates, key=lambda one: (-strength_of(*one), one[0].source.id, one[0].target.id))


def connect(
    candidate: Candidate, sentences: SentenceCache, explanation: str, strength: float, made_by: str
) -> DetectedConnection:
    """Build the connection for a bridge (a shared idea of two documents) that a model confirmed, with the model's
    explanation and strength.
    """
    pair, _ = candidate
    quotes = shared_quotes(pair.source, pair.target, sentences)
    return DetectedConnection(
        Engine.BRIDGE, pair, round(strength, 3), quotes.mine, quotes.theirs, explanation, made_by=made_by
    )


def strength_of(pair: ChunkPair, overlap: float) -> float:
    """Return the strength of a bridge, from 0 to 1.

    It is higher if both chunks are important and share many concepts.
    """
    return round(min((pair.source.importance * pair.target.importance) ** 0.5 * (0.5 + overlap), 1.0), 3)


def concept_overlap(one: ComparableChunk, other: ComparableChunk) -> float:
    """Return how much the concepts of two chunks overlap, from 0 to 1.

    This is the total weight of the shared concepts, divided by the total weight of all concepts in the chunk with the
    smaller total.
    """
    mine, theirs = ({name.lower(): weight for name, weight in chunk.concepts.items()} for chunk in (one, other))
    if not mine or not theirs:
        return 0.0
    shared = sum(min(mine[name], theirs[name]) for name in mine.keys() & theirs.keys())
    return shared / max(min(sum(mine.values()), sum(theirs.values())), 1e-9)


@dataclass(frozen=True, slots=True, eq=False)
class DocumentDomain:
    """The subject of a document: its topics, and the mean of its vectors.

    `mean` is scaled to length 1, and is None if there are no vectors.
    """

    topics: frozenset[str] = frozenset()
    mean: NDArray[np.float32] | None = None


UNKNOWN = DocumentDomain()


async def load_domains(
    connection: Connection, owner: UUID, model: EmbeddingModel, documents: Iterable[UUID]
) -> dict[UUID, DocumentDomain]:
    values = {"owner": owner, "model": model.id, "documents": list(documents), "most": MOST_TOPICS}
    return {row["id"]: _read(row) for row in await fetch_rows(connection, QUERIES.domains, values)}


def are_different(one: DocumentDomain, other: DocumentDomain, same_domain: float) -> bool:
    """Whether two documents are on different subjects: both their topics and their mean vectors must differ.

    Mean vectors with a similarity of at least `same_domain` count as equal. Unknown topics and vectors count as
    different.
    """
    fewer = min(len(one.topics), len(other.topics))
    if fewer and len(one.topics & other.topics) > MOST_SHARED_TOPICS * fewer:
        return False
    return one.mean is None or other.mean is None or float(one.mean @ other.mean) < same_domain


def _read(row: Row) -> DocumentDomain:
    mean = None
    if row["mean"]:
        mean = np.array(json.loads(row["mean"]), dtype=np.float32)
        mean /= max(float(np.linalg.norm(mean)), 1e-9)
    return DocumentDomain(frozenset(row["topics"]), mean)
