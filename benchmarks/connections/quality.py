"""Precision and recall of the contradictions found offline, and the time for a document of 100 chunks.

`python -m benchmarks.connections.quality [SICK [VERBOSE]]`: SICK is a folder with pairs of sentences as `sick*.tsv`.
The written pairs are those of `passages`. With any second argument, missed and false contradictions are listed. The
whole engine is measured: the choice of sentences and the judgement of octavo-small. No configured model is called.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from benchmarks.connections.passages import written_pairs
from octavo.connect.contradiction import find_candidates, judge_candidates
from octavo.connect.detection import MOST_COMPARED
from octavo.connect.evidence import ChunkPair, ComparableChunk, DetectedConnection, SentenceCache

GOALS = {"SICK": (0.80, 0.0), "written": (0.80, 0.0)}
GOAL_SECONDS, PASSAGES = 10.0, 100


@dataclass(slots=True)
class Score:
    right: int = 0
    false: list[str] = field(default_factory=list[str])
    missed: list[str] = field(default_factory=list[str])

    @property
    def precision(self) -> float:
        return self.right / max(self.right + len(self.false), 1)

    @property
    def recall(self) -> float:
        return self.right / max(self.right + len(self.missed), 1)


Case = tuple[str, str, bool, str]


def judge(cases: Iterable[Case]) -> Score:
    score = Score()
    for first, second, contradicts, name in cases:
        found = find([ChunkPair(as_chunk(first), as_chunk(second), 1.0)])
        if found and contradicts:
            score.right += 1
        elif found:
            score.false.append(f"{name}: {' / '.join(found[0].quotes)}")
        elif contradicts:
            score.missed.append(f"{name}: {first[:160]} / {second[:200]}")
    return score


def find(pairs: Iterable[ChunkPair]) -> list[DetectedConnection]:
    return judge_candidates(find_candidates(pairs, SentenceCache()))


def as_chunk(text: str) -> ComparableChunk:
    return ComparableChunk(uuid4(), uuid4(), text)


def sick(folder: Path) -> Iterator[Case]:
    for file in sorted(folder.rglob("sick*.tsv")):
        with file.open() as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                contradicts = row["entailment_judgment"] == "CONTRADICTION"
                yield f"{row['sentence_A']}.", f"{row['sentence_B']}.", contradicts, row["pair_ID"]


def written(*, tuned: bool) -> Iterator[Case]:
    for pair in written_pairs():
        if pair.tuned is tuned:
            yield pair.first, pair.second, pair.contradicts, f"{pair.topic}, {pair.kind}"


def seconds_for_a_document() -> float:
    """A hundred chunks of 300 words, each compared with as many others as the job compares it with."""
    texts = [f"{one.first} {one.second}" for one in written_pairs()]
    long = [" ".join(texts[(number + step) % len(texts)] for step in range(3)) for number in range(len(texts))]
    sources = [ComparableChunk(uuid4(), uuid4(), long[number % len(long)]) for number in range(PASSAGES)]
    others = [ComparableChunk(uuid4(), uuid4(), long[(7 * number) % len(long)]) for number in range(3 * PASSAGES)]
    pairs = [
        ChunkPair(source, others[(place * MOST_COMPARED + step) % len(others)], 0.6)
        for place, source in enumerate(sources)
        for step in range(MOST_COMPARED)
    ]
    find(pairs[:20])  # loads the model
    began = time.process_time()
    find(pairs)
    return time.process_time() - began


def main(folder: str | None = None, verbose: str = "") -> int:
    sets = {"written": written(tuned=False), "written, tuned with": written(tuned=True)}
    if folder:
        sets["SICK"] = sick(Path(folder))
    good = True
    for name, cases in sets.items():
        score = judge(cases)
        precision, recall = GOALS.get(name, (0.0, 0.0))
        good &= score.precision >= precision and score.recall >= recall
        told = f"{score.right} right, {len(score.false)} false, {len(score.missed)} missed"
        print(f"{name:<20} precision {score.precision:.3f}, recall {score.recall:.3f}: {told}")
        for line in (*(f"false  {one}" for one in score.false), *(f"missed {one}" for one in score.missed)):
            if verbose:
                print(f"    {line}")
    took = seconds_for_a_document()
    print(f"100 chunks, each with {MOST_COMPARED} others: {took:.2f} s of processor time")
    return 0 if good and took < GOAL_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
