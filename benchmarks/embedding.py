"""How good and how fast the local vectors are.

`python -m benchmarks.embedding FOLDER [EXACT]`: below FOLDER lie the Cranfield collection and, if wanted, pairs of SICK
as `sick*.tsv`. EXACT is the model with the weights as they were published (`tools/make_embedding_model.py --exact`), to
compare with. Bare is onnxruntime with one thread, given windows that were cut before. Speeds of one thread are by
processor time, those of two by the clock, and say little on a busy machine.
"""

from __future__ import annotations

import csv
import resource
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import cranfield
from octavo.language import embedding
from octavo.language.embedding import Embedder

GOAL_NDCG = 0.37
SAMPLE = 200


class Exact(Embedder):
    """The same with the weights as they were published."""

    def __init__(self, model: Path) -> None:
        super().__init__()
        self._session = embedding._open_session(model.read_bytes())  # noqa: SLF001


def main(folder: Path, exact: Path | None = None) -> int:
    collection = cranfield.read(folder)
    before = _memory()
    ours = Embedder()
    found = retrieval(ours, collection)
    print(f"Cranfield nDCG@10       {found:.4f}")
    pairs = next(folder.rglob("sick*.tsv"), None)
    if pairs:
        print(f"SICK Spearman           {relatedness(ours, pairs):.4f}")
    texts = [abstract.text for abstract in collection.abstracts[:SAMPLE]]
    speeds(ours, texts)
    print(f"memory                  {_memory() - before} MiB more than before it was loaded")
    if exact:
        compare(ours, Exact(exact), collection, pairs)
    return 0 if found >= GOAL_NDCG else 1


def retrieval(embedder: Embedder, collection: cranfield.Collection) -> float:
    abstracts = embedder.embed([abstract.text for abstract in collection.abstracts])
    questions = embedder.embed(collection.questions)
    return collection.ndcg(np.argsort(-questions @ abstracts.T, axis=1)[:, :10].tolist())


def relatedness(embedder: Embedder, path: Path) -> float:
    """How well similarities stand in the order in which people put the pairs."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    first, second = (embedder.embed([row[name] for row in rows]) for name in ("sentence_A", "sentence_B"))
    scores = np.array([float(row["relatedness_score"]) for row in rows])
    return float(np.corrcoef(_ranks((first * second).sum(axis=1)), _ranks(scores))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def speeds(embedder: Embedder, texts: Sequence[str]) -> None:
    windows = [np.array([window], np.int64) for text in texts for window in embedder.windows(text)]
    session = embedder._session  # noqa: SLF001
    bare = _spent(lambda: [session.run(None, {"pieces": window}) for window in windows], time.process_time)
    ours = _spent(lambda: embedder.embed(texts), time.process_time)
    print(f"{len(texts)} texts, {sum(window.size for window in windows) / len(texts):.0f} pieces each")
    print(f"  bare                  {len(texts) / bare:6.1f} texts/s of processor time")
    print(f"  one thread            {len(texts) / ours:6.1f}, {bare / ours:.2f} of bare")
    for threads in (1, 2):
        spent = _spent(partial(Embedder(threads).embed, texts), time.monotonic)
        print(f"  {threads} by the clock        {len(texts) / spent:6.1f}")


def _spent(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """The better of two rounds."""

    def once() -> float:
        start = clock()
        work()
        return clock() - start

    return min(once(), once())


def compare(ours: Embedder, exact: Exact, collection: cranfield.Collection, pairs: Path | None) -> None:
    texts = [abstract.text for abstract in collection.abstracts]
    similarity = (ours.embed(texts) * exact.embed(texts)).sum(axis=1)
    spent = _spent(lambda: exact.embed(texts[:SAMPLE]), time.process_time)
    print("published weights")
    print(f"  Cranfield nDCG@10     {retrieval(exact, collection):.4f}")
    if pairs:
        print(f"  SICK Spearman         {relatedness(exact, pairs):.4f}")
    print(f"  one thread            {SAMPLE / spent:6.1f} texts/s of processor time")
    print(f"  similarity with ours  mean {similarity.mean():.4f}, least {similarity.min():.4f}")


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
