"""How similar unrelated texts are: the least similarity that an answer by meaning must have.

`python -m benchmarks.search.nothing FOLDER`: below FOLDER are the Cranfield collection and the SICK sentences.
Queries without an answer are everyday sentences (SICK) in a library about aerodynamics (Cranfield), questions about
aerodynamics in a library of everyday sentences, and invented words in both. Queries with an answer are the Cranfield
questions, with the most similar abstract that was judged relevant, and pairs of sentences that people rated as related.
"""

from __future__ import annotations

import random
import string
import sys
from pathlib import Path

import numpy as np

from benchmarks import cranfield
from octavo.language import NAME, Embedder
from octavo.search.ranking import least_similarity

SIZES = (1, 3, 10, 30, 100, 300, 1000)
ROUNDS, INVENTED, ASKED = 5, 300, 500
# From this rating on, of 5, two sentences mean about the same.
RELATED = 4.0


def main(folder: Path) -> int:
    collection = cranfield.read(folder)
    pairs = read_pairs(folder)
    sentences = sorted({sentence for one, other, _ in pairs for sentence in (one, other)})
    embedder = Embedder(threads=2)
    abstracts = embedder.embed([abstract.text for abstract in collection.abstracts])
    questions, everyday = embedder.embed(collection.questions), embedder.embed(sentences)
    chance = np.random.default_rng(1)
    asked = everyday[chance.choice(len(everyday), ASKED, replace=False)]
    invented = embedder.embed(invent_queries())
    unanswered = [(asked, abstracts), (questions, everyday), (invented, abstracts), (invented, everyday)]
    print("nearest of chunks without an answer")
    print(" chunks   median    95 %    99 %   limit   shown")
    for size in SIZES:
        nearest = np.concatenate([nearest_of(queries @ library.T, size, chance) for queries, library in unanswered])
        middle, high, highest = np.quantile(nearest, [0.5, 0.95, 0.99])
        limit = least_similarity(NAME, size)
        print(f"{size:7} {middle:8.2f}{high:8.2f}{highest:8.2f}{limit:8.2f}{(nearest >= limit).mean():8.1%}")
    report_answers("relevant abstracts", relevant(collection, questions @ abstracts.T), len(abstracts))
    places = {sentence: place for place, sentence in enumerate(sentences)}
    related = [everyday[places[one]] @ everyday[places[other]] for one, other, rating in pairs if rating >= RELATED]
    report_answers("related sentences", np.array(related), len(sentences))
    return 0


def read_pairs(folder: Path) -> list[tuple[str, str, float]]:
    lines = next(folder.rglob("sick-*.tsv")).read_text().splitlines()[1:]
    return [(row[1], row[2], float(row[3])) for row in (line.split("\t") for line in lines)]


def invent_queries() -> list[str]:
    """Random letters, and one to four words that can be pronounced but mean nothing."""
    chance = random.Random(1)
    vowels, consonants = "aeiou", "bcdfghjklmnpqrstvwxz"

    def syllable() -> str:
        return chance.choice(consonants) + chance.choice(vowels) + chance.choice(["", *consonants])

    def word() -> str:
        return "".join(syllable() for _ in range(chance.randint(2, 3)))

    letters = ["".join(chance.choices(string.ascii_lowercase, k=chance.randint(5, 12))) for _ in range(INVENTED // 2)]
    return letters + [" ".join(word() for _ in range(chance.randint(1, 4))) for _ in range(INVENTED // 2)]


def nearest_of(similar: np.ndarray, size: int, chance: np.random.Generator) -> np.ndarray:
    """The similarity of the nearest of `size` chunks, for each query and several samples of the library."""
    samples = (chance.choice(similar.shape[1], size, replace=False) for _ in range(ROUNDS))
    return np.concatenate([similar[:, sample].max(axis=1) for sample in samples])


def relevant(collection: cranfield.Collection, similar: np.ndarray) -> np.ndarray:
    """For each question, the similarity of the most similar abstract that answers it."""
    answers = [[abstract for abstract, gain in gains.items() if gain] for gains in collection.judgements]
    return np.array([similar[question, answer].max() for question, answer in enumerate(answers) if answer])


def report_answers(name: str, similar: np.ndarray, chunks: int) -> None:
    limit = least_similarity(NAME, chunks)
    low, middle = np.quantile(similar, [0.05, 0.5])
    print(f"{name}: 5 % below {low:.2f}, median {middle:.2f}; {(similar >= limit).mean():.1%} reach {limit:.2f}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
