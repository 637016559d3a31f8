"""The domain of a document: its generated topics and its mean vector. Bridges join documents of different domains.

Tags do not count. People use them for anything ("to read", "2024"), and when they edit tags, generated ones disappear.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from octavo.connect.neighbours import EmbeddingModel
from octavo.database import Connection, Row, fetch_rows, load_queries

QUERIES = load_queries("connections")
# The topics of a document are the most frequent themes of its chunks.
MOST_TOPICS = 8
# Documents that share more than this part of the topics of one of them are in the same domain.
MOST_SHARED_TOPICS = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class DocumentDomain:
    """`mean` is the mean of the document's vectors, with a length of 1; None without vectors."""

    topics: frozenset[str] = frozenset()
    mean: NDArray[np.float32] | None = None


UNKNOWN = DocumentDomain()


async def load_domains(
    connection: Connection, owner: UUID, model: EmbeddingModel, documents: Iterable[UUID]
) -> dict[UUID, DocumentDomain]:
    values = {"owner": owner, "model": model.id, "documents": list(documents), "most": MOST_TOPICS}
    return {row["id"]: _read(row) for row in await fetch_rows(connection, QUERIES.domains, values)}


def are_different(one: DocumentDomain, other: DocumentDomain, same_domain: float) -> bool:
    """Whether two documents have mostly different topics and lie apart as a whole.

    `same_domain` is the similarity of mean vectors from which documents are in the same domain.
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
