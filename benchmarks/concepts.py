"""How well the concepts of a text are found, and how long everything takes that `local` tells of a text.

`python -m benchmarks.concepts FOLDER`: below FOLDER lies the Cranfield collection. Each abstract is read without its
title, and the phrases of the title that stand in the abstract too are what should be found among ten concepts: a title
is what its author thought the text was about. YAKE is asked the same, in an environment of its own that uv makes; the
phrases of titles are cut at YAKE's stop words, not at ours.

The whole collection is then read as one book of 230,000 words, and a half and a quarter of it: how the time grows.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import cranfield
from octavo.language import describe
from octavo.language.insights import ChunkText, DocumentSource
from octavo.language.vocabulary import stem

MOST = 10
LEAST_WORDS = 30
_WORD = re.compile(r"[a-z][a-z-]*|[^\sa-z]")
_YAKE = "yake==0.7.1"
_ASK_YAKE = """
import json, pathlib, sys, time, yake
words = (pathlib.Path(yake.__file__).parent / "core/StopwordsList/stopwords_en.txt").read_text().split()
extractor, texts, start = yake.KeywordExtractor(n=3, top=10), json.load(sys.stdin), time.process_time()
phrases = [[phrase for phrase, _ in extractor.extract_keywords(text)] for text in texts]
json.dump([words, phrases, time.process_time() - start], sys.stdout)
"""


def main(folder: Path) -> int:
    abstracts = [one for one in cranfield.read(folder).abstracts if len(one.body.split()) >= LEAST_WORDS]
    stop_words, theirs, seconds = ask_yake([abstract.body for abstract in abstracts])
    wanted = [wanted_phrases(abstract, frozenset(stop_words)) for abstract in abstracts]
    counts = [len(phrases) for phrases in wanted if phrases]
    print(f"{len(counts)} abstracts with {sum(counts) / len(counts):.1f} phrases of their title")
    report("YAKE", theirs, wanted, seconds)
    start = time.process_time()
    ours = [find_concepts(abstract.body) for abstract in abstracts]
    report("ours", ours, wanted, time.process_time() - start)
    grow([ChunkText(abstract.text) for abstract in abstracts])
    return 0


def ask_yake(texts: Sequence[str]) -> tuple[list[str], list[list[str]], float]:
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "run", "--quiet", "--no-project", "--with", _YAKE, "python", "-c", _ASK_YAKE]
    answer = subprocess.run(command, input=json.dumps(texts), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(answer.stdout)


def find_concepts(text: str) -> list[str]:
    (chunk,) = describe(DocumentSource([ChunkText(text)], language="en")).chunks
    return [concept.text for concept in chunk.concepts]


def report(name: str, found: Sequence[Sequence[str]], wanted: Sequence[set[str]], seconds: float) -> None:
    """The mean over the abstracts that have something to be found."""
    scores: list[float] = []
    recalls: list[float] = []
    for phrases, right in zip(found, wanted, strict=True):
        if right:
            hits = len({_key(phrase) for phrase in phrases[:MOST]} & right)
            precision, recall = hits / MOST, hits / len(right)
            scores.append(2 * precision * recall / (precision + recall) if hits else 0.0)
            recalls.append(recall)
    count = len(scores)
    print(
        f"{name} F1@10 {sum(scores) / count:.3f}, recall {sum(recalls) / count:.3f}, {seconds:.1f} s of processor time"
    )


def grow(passages: Sequence[ChunkText]) -> None:
    for part in (4, 2, 1):
        some = passages[: len(passages) // part]
        start = time.process_time()
        describe(DocumentSource(some))
        spent = time.process_time() - start
        words = sum(len(passage.content.split()) for passage in some)
        print(f"{len(some):5} passages, {words:7,} words: {spent:.2f} s, {words / spent:,.0f} words/s")


def wanted_phrases(abstract: cranfield.Abstract, grammar: frozenset[str]) -> set[str]:
    """Runs of words without grammar in the title that are a part of such a run in the abstract."""
    body = " | ".join(_phrases(abstract.body, grammar))
    return {phrase for phrase in _phrases(abstract.title, grammar) if f" {phrase} " in f" {body} "}


def _phrases(text: str, grammar: frozenset[str]) -> list[str]:
    words = _WORD.findall(text.lower())
    runs = " ".join(word if word[0].isalpha() and len(word) > 2 and word not in grammar else "|" for word in words)
    return [_key(run) for run in runs.split("|") if run.strip()]


def _key(phrase: str) -> str:
    return " ".join(stem(word) for word in phrase.replace("-", " ").split())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
