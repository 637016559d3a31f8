"""The Cranfield collection: 1,400 abstracts, 225 questions, and which abstracts answer which."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import log2
from pathlib import Path

# How well an abstract answers: 1 is a complete answer, 4 of little interest, anything else none.
GAINS = {1: 4, 2: 3, 3: 2, 4: 1}


@dataclass(frozen=True, slots=True)
class Abstract:
    title: str
    body: str

    @property
    def text(self) -> str:
        return f"{self.title} {self.body}"


@dataclass(frozen=True, slots=True)
class Collection:
    """`judgements[question][abstract]` is the gain, both numbered from 0."""

    abstracts: list[Abstract]
    questions: list[str]
    judgements: list[dict[int, int]]

    def ndcg(self, rankings: list[list[int]]) -> float:
        """The mean over all questions, of the first ten."""
        return sum(map(_ndcg, rankings, self.judgements)) / len(self.questions)


def read(folder: Path) -> Collection:
    """Finds the three files below the folder."""
    abstracts, questions, judgements = (
        next(folder.rglob(name)).read_text() for name in ("cran.all.1400", "cran.qry", "cranqrel")
    )
    asked = re.findall(r"^\.W\n(.*?)(?=^\.I|\Z)", questions, re.DOTALL | re.MULTILINE)
    gains: list[dict[int, int]] = [{} for _ in asked]
    for line in judgements.splitlines():
        question, abstract, grade = map(int, line.split()[:3])
        gains[question - 1][abstract - 1] = GAINS.get(grade, 0)
    return Collection(
        [_abstract(one) for one in abstracts.split("\n.I ")], [" ".join(one.split()) for one in asked], gains
    )


def _abstract(entry: str) -> Abstract:
    fields = re.split(r"^\.([TABW])(?:\n|\Z)", entry, flags=re.MULTILINE)
    title, body = (" ".join(fields[fields.index(name) + 1].split()) for name in "TW")
    return Abstract(title, body.removeprefix(title).strip())


def _ndcg(ranking: list[int], gains: dict[int, int]) -> float:
    ideal = _discounted(sorted(gains.values(), reverse=True)[:10])
    return _discounted([gains.get(abstract, 0) for abstract in ranking[:10]]) / ideal if ideal else 0.0


def _discounted(gains: list[int]) -> float:
    return sum(gain / log2(place + 2) for place, gain in enumerate(gains))
