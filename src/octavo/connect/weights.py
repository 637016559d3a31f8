"""How much the engines matter to an owner: the order of connections follows at once, and nothing is compared again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from uuid import UUID

from octavo.connect.contract import Engine
from octavo.database import Connection, fetch_rows, load_queries

QUERIES = load_queries("connection_views")


@dataclass(frozen=True, slots=True)
class Weights:
    """Each from 0 to 100. Usually what contradicts comes before what agrees."""

    semantic_similarity: int = 60
    contradiction_detection: int = 80
    thematic_bridge: int = 40


USUAL = {engine.value: int(asdict(Weights())[engine.value]) for engine in Engine}


async def read_weights(connection: Connection, owner: UUID) -> Weights:
    rows = await fetch_rows(connection, QUERIES.weights, {"owner": owner})
    return Weights(**rows[0]) if rows else Weights()


async def set_weights(connection: Connection, owner: UUID, weights: Weights) -> None:
    await connection.execute(QUERIES.set_weights, {"owner": owner, **asdict(weights)})
