"""The least similarity of a hit by meaning, for each embedding model.

Every text is a little similar to every query, so the nearest chunk of a query without an answer must be recognised.
How similar unrelated texts are depends on the model, and the most similar of many unrelated chunks is more similar than
the most similar of a few. `benchmarks/search/nothing.py` measures both; decision 19 has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log10

from octavo.language.embedding import NAME


@dataclass(frozen=True, slots=True)
class SimilarityThreshold:
    """`one` is the least similarity in a library of one chunk. It grows by `tenfold` with each tenfold of chunks."""

    one: float
    tenfold: float
    most: float

    def least(self, chunks: int) -> float:
        """The least similarity that the nearest of this many chunks must have to be an answer."""
        return min(self.one + self.tenfold * log10(max(chunks, 1)), self.most)


MEASURED: Mapping[str, SimilarityThreshold] = {NAME: SimilarityThreshold(0.20, 0.06, 0.34)}
# Nothing is hidden by a figure that was never measured for the model: hits in other languages would be lost.
UNMEASURED = SimilarityThreshold(0.0, 0.0, 0.0)


def least_similarity(model: str, chunks: int) -> float:
    return MEASURED.get(model, UNMEASURED).least(chunks)
