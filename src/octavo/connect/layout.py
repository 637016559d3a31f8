"""Where documents lie on the map of connections: computed, not stored, and the same for the same connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEED = 8
ROUNDS = 200
WIDTH, HEIGHT = 1000.0, 700.0
MARGIN = 60.0
LEAST_DISTANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Spot:
    x: float
    y: float


def lay_out(nodes: int, edges: Sequence[tuple[int, int, float]]) -> list[Spot]:
    """Connected ones attract, all repel each other, and the steps grow shorter (Fruchterman and Reingold)."""
    import numpy as np

    if nodes <= 1:
        return [Spot(WIDTH / 2, HEIGHT / 2)] * nodes
    places = np.random.default_rng(SEED).uniform(-1, 1, (nodes, 2))
    pull = np.zeros((nodes, nodes))
    for one, other, strength in edges:
        pull[one, other] = pull[other, one] = max(pull[one, other], strength)
    ideal = 2.0 / np.sqrt(nodes)
    for step in np.linspace(0.2, 0.002, ROUNDS):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.linalg.norm(apart, axis=2), LEAST_DISTANCE)
        force = ideal**2 / distance**2 - pull * distance / ideal - 0.02 * distance
        moved = (apart * force[:, :, None]).sum(axis=1)
        length = np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), LEAST_DISTANCE)
        places = places + moved / length * np.minimum(length, step)
    return _fit(places)


def _fit(places: NDArray[np.float64]) -> list[Spot]:
    import numpy as np

    low, high = places.min(axis=0), places.max(axis=0)
    room = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
    fitted = MARGIN + (places - low) / np.maximum(high - low, LEAST_DISTANCE) * room
    return [Spot(round(x, 1), round(y, 1)) for x, y in fitted.tolist()]
