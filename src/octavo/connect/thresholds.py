"""From which similarity of their vectors on two passages are taken for alike, and for being about the same."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.language.embedding import NAME as LOCAL_MODEL


@dataclass(frozen=True, slots=True)
class Thresholds:
    """`similar`: they say the same. `related`: they are about the same, so they may contradict each other.

    Below `apart` they are of different subjects, and what they share is a bridge.
    """

    similar: float
    related: float
    apart: float


# Measured: docs/decisions/0018-connections.md says how. Vectors of different models lie at different distances.
BY_MODEL = {LOCAL_MODEL: Thresholds(similar=0.65, related=0.35, apart=0.5)}
# For models that nobody measured: higher, so that little is missing rather than much is noise.
UNKNOWN = Thresholds(similar=0.75, related=0.5, apart=0.6)


def thresholds_of(model: str) -> Thresholds:
    return BY_MODEL.get(model, UNKNOWN)
