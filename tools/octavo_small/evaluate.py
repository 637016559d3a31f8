# ruff: noqa: E501, PLR2004, S311
"""Measures an exported model on the calibration and validation parts.

    python -m octavo_small.evaluate MODEL.onnx TOKENIZER PREP SICK OUT.npz [--cores 14] [--limit N]
    python -m octavo_small.evaluate --report OUT.npz PREP SICK

The threshold is chosen on the calibration part alone. SICK is only measured.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import multiprocessing
import os
import re
import string
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnxruntime
from octavo_small.questions import negatives
from octavo_small.sources import (
    CONTRADICTS,
    ENTAILS,
    NEUTRAL,
    NOT_CONTRADICTION,
    Pair,
    Question,
    read_lines,
    read_pairs,
)
from tokenizers import Tokenizer

KINDS = ("wiki", "speeches", "policies", "news", "papers", "forum", "reviews")
LONGEST_ANSWER = 30
_session: Any = None
_tokenizer: Any = None


def open_model(model: Path, tokenizer: Path) -> None:
    global _session, _tokenizer  # noqa: PLW0603 - one per process of the pool
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    _session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    _tokenizer = Tokenizer.from_file(str(tokenizer))
    _tokenizer.no_padding()


def run_model(a: str, b: str, most: int, strategy: str) -> tuple[Any, list[np.ndarray]]:
    _tokenizer.enable_truncation(most, strategy=strategy)
    encoding = _tokenizer.encode(a, b)
    pieces, kinds = (np.array([values], np.int64) for values in (encoding.ids, encoding.type_ids))
    if "attention_mask" in {entry.name for entry in _session.get_inputs()}:  # the prototype
        inputs = {"input_ids": pieces, "attention_mask": np.ones_like(pieces), "token_type_ids": kinds}
        return encoding, _session.run(None, inputs)
    return encoding, _session.run(None, {"pieces": pieces, "kinds": kinds})


def judge(texts: tuple[str, str]) -> np.ndarray:
    logits = run_model(*texts, 160, "longest_first")[1][0][0]
    values = np.exp(logits - logits.max())
    return values / values.sum()


def answer(texts: tuple[str, str]) -> tuple[str, float, float, float]:
    """Return the best span, its score, the score of no answer, and the rank."""
    encoding, outputs = run_model(*texts, 320, "only_second")
    if len(outputs) == 1:
        return "", 0.0, 0.0, 0.0
    _, rank, span = outputs
    start, end = span[0, :, 0], span[0, :, 1]
    first, last = encoding.sequence_ids.index(1), len(encoding.ids) - 1
    scores = np.triu(np.tril(start[first:last, None] + end[None, first:last] + 1e3, LONGEST_ANSWER - 1))
    i, j = np.unravel_index(int(scores.argmax()), scores.shape)
    offsets = encoding.offsets
    text = texts[1][offsets[first + int(i)][0] : offsets[first + int(j)][1]]
    return text, float(scores[i, j] - 1e3), float(start[0] + end[0]), float(rank[0, 0])


def read_sick(path: Path) -> list[Pair]:
    labels = {"ENTAILMENT": ENTAILS, "NEUTRAL": NEUTRAL, "CONTRADICTION": CONTRADICTS}
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [Pair(r["sentence_A"], r["sentence_B"], labels[r["entailment_judgment"]], "sick") for r in rows]


def measured_pairs(prep: Path, sick: Path, limit: int) -> dict[str, list[Pair]]:
    parts = {part: read_pairs(prep / f"{part}.jsonl.xz") for part in ("calibration", "validation")}
    parts["sick"] = read_sick(sick)
    return {part: pairs[: limit or None] for part, pairs in parts.items()}


def measured_questions(prep: Path, part: str, limit: int) -> list[dict[str, Any]]:
    """Return each question with its paragraph, one that does not answer it, and the others of its article."""
    questions = [
        Question(row["g"], row["q"], row["c"], tuple(tuple(a) for a in row["a"]), row["s"])
        for row in read_lines(prep / f"questions-{part}.jsonl.xz")
    ]
    contexts: dict[str, list[str]] = {}
    for question in questions:
        contexts.setdefault(question.group, []).append(question.context)
    contexts = {group: list(dict.fromkeys(texts)) for group, texts in contexts.items()}
    rng = Random(5)
    asked = []
    for question in questions[: limit or None]:
        without = list(negatives(question, contexts[question.group], rng, 1))
        others = [text for text in contexts[question.group] if text != question.context]
        ranked = [question.context, *rng.sample(others, min(19, len(others)))] if rng.random() < 0.5 else []
        asked.append({"question": question, "without": without, "ranked": ranked})
    return asked


def score(options: argparse.Namespace) -> None:
    """Run the model on everything that is measured."""
    parts = measured_pairs(options.prep, options.sick, options.limit)
    results: dict[str, Any] = {}
    begin = time.time()
    with multiprocessing.get_context("spawn").Pool(
        options.cores, open_model, (options.model, options.tokenizer)
    ) as pool:
        for part, pairs in parts.items():
            both = [(p.a, p.b) for p in pairs] + [(p.b, p.a) for p in pairs]
            judged = np.array(pool.map(judge, both, chunksize=64), np.float32)
            results[part] = np.stack([judged[: len(pairs)], judged[len(pairs) :]], 1)
        for part in ("calibration", "validation"):
            asked = measured_questions(options.prep, part, options.limit)
            for kind, contexts_of in (("held", _held), ("without", _without), ("ranked", _ranked)):
                texts = [(row["question"].text, context) for row in asked for context in contexts_of(row)]
                results[f"{part}-{kind}"] = np.array(json.dumps(pool.map(answer, texts, chunksize=16)))
    print("scored in", round(time.time() - begin), "s", flush=True)
    np.savez_compressed(options.out, **results)


def _held(row: dict[str, Any]) -> list[str]:
    return [row["question"].context]


def _without(row: dict[str, Any]) -> list[str]:
    return row["without"]


def _ranked(row: dict[str, Any]) -> list[str]:
    return row["ranked"]


def strengths(judged: np.ndarray) -> np.ndarray:
    """A contradiction is as strong as its weaker direction."""
    return judged[:, :, CONTRADICTS].min(1)


def choose_threshold(pairs: list[Pair], judged: np.ndarray, worst: float = 1.0, mean: float = 0.5) -> float:
    """Return the lowest threshold with few false alarms in the worst kind of text and in the mean of the kinds."""
    strength = strengths(judged)
    kinds = [
        strength[[i for i, p in enumerate(pairs) if p.label == NOT_CONTRADICTION and p.source == k]] for k in KINDS
    ]
    kinds = [kind for kind in kinds if len(kind) >= 400] or kinds  # too few pairs say nothing
    for threshold in np.arange(0.5, 0.9995, 0.0005):
        alarms = [1000 * float((kind > threshold).sum()) / max(1, len(kind)) for kind in kinds]
        if max(alarms) <= worst and sum(alarms) / len(alarms) <= mean:
            return float(threshold)
    return 0.9995


def precision_recall(strength: np.ndarray, labels: np.ndarray, threshold: float) -> str:
    shown, true = strength > threshold, labels == CONTRADICTS
    right = (shown & true).sum()
    return f"{right / max(1, shown.sum()):.3f}/{right / max(1, true.sum()):.3f} ({int(shown.sum())} shown, {int(true.sum())} real)"


def report_pairs(parts: dict[str, list[Pair]], scores: Any, thresholds: list[float]) -> None:  # noqa: ANN401
    for threshold in thresholds:
        print(f"## threshold {threshold:.4f}")
        for part in ("calibration", "validation", "sick"):
            pairs, judged = parts[part], scores[part]
            strength, labels = strengths(judged), np.array([p.label for p in pairs])
            sources = np.array([p.source for p in pairs])
            alarms = {}
            for source in sorted(set(sources.tolist())):
                chosen = sources == source
                if (labels[chosen] == NOT_CONTRADICTION).all():
                    alarms[source] = round(1000 * float((strength[chosen] > threshold).mean()), 2)
                else:
                    right = (judged[chosen, 0].argmax(1) == labels[chosen]).mean()
                    print(
                        f"{part:12} {source:10} C {precision_recall(strength[chosen], labels[chosen], threshold)} accuracy {right:.3f}"
                    )
            fever = np.isin(sources, ["fever", "fever-dev"])
            if fever.any():
                print(f"{part:12} all FEVER  C {precision_recall(strength[fever], labels[fever], threshold)}")
            if alarms:
                print(f"{part:12} alarms per 1,000: {alarms} mean {sum(alarms.values()) / len(alarms):.2f}")


def _words(text: str) -> list[str]:
    plain = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def f1(found: str, expected: str) -> float:
    one, other = _words(found), _words(expected)
    if not one or not other:
        return float(one == other)
    same = sum((Counter(one) & Counter(other)).values())
    return 2 * same / (len(one) + len(other))


def bm25(question: str, texts: list[str]) -> list[float]:
    documents = [re.findall(r"\w+", text.lower()) for text in texts]
    mean = sum(map(len, documents)) / len(documents)
    holding = Counter(word for words in documents for word in set(words))
    total = len(documents)
    scores = []
    for words in documents:
        counts = Counter(words)
        scores.append(sum(
            math.log(1 + (total - holding[w] + 0.5) / (holding[w] + 0.5)) * counts[w] * 2.2
            / (counts[w] + 1.2 * (0.25 + 0.75 * len(words) / mean))
            for w in set(re.findall(r"\w+", question.lower())) if w in counts
        ))  # fmt: skip
    return scores


def report_questions(prep: Path, scores: Any, part: str, limit: int) -> None:  # noqa: ANN401
    asked = measured_questions(prep, part, limit)
    held, without, ranked = (json.loads(str(scores[f"{part}-{kind}"])) for kind in ("held", "without", "ranked"))
    if not held or not held[0][0]:
        return
    for source in ("newwiki", "policy"):
        own = [i for i, row in enumerate(asked) if row["question"].source == source]
        f1s = [max(f1(held[i][0], text) for text, _ in asked[i]["question"].answers) for i in own]
        answered = [held[i][1] > held[i][2] for i in own]
        places = np.cumsum([0, *(len(row["without"]) for row in asked)])
        refused = [w[2] >= w[1] for i in own for w in without[places[i] : places[i + 1]]]
        print(
            f"{part:12} {source:8} n {len(own)} span F1 {np.mean(f1s):.3f} answered {np.mean(answered):.3f} not here right {np.mean(refused):.3f}"
        )
        _report_ranks(asked, own, ranked, f"{part:12} {source:8}")


def _report_ranks(asked: list[dict[str, Any]], own: list[int], ranked: list[Any], title: str) -> None:
    places = np.cumsum([0, *(len(row["ranked"]) for row in asked)])
    firsts: dict[str, list[bool]] = {"span": [], "rank": [], "both": [], "bm25": []}
    for i in own:
        found = ranked[places[i] : places[i + 1]]
        if len(found) < 2:
            continue
        span, rank = np.array([f[1] - f[2] for f in found]), np.array([f[3] for f in found])
        words = np.array(bm25(asked[i]["question"].text, asked[i]["ranked"]))
        for name, values in (("span", span), ("rank", rank), ("both", span / 2 + rank), ("bm25", words)):
            firsts[name].append(bool(values.argmax() == 0))
    print(title, "first of", len(firsts["span"]), {name: round(float(np.mean(v)), 3) for name, v in firsts.items()})


def report(path: Path, prep: Path, sick: Path, limit: int) -> None:
    scores = np.load(path)
    parts = measured_pairs(prep, sick, limit)
    chosen = choose_threshold(parts["calibration"], scores["calibration"])
    report_pairs(parts, scores, [chosen, 0.95])
    for part in ("calibration", "validation"):
        report_questions(prep, scores, part, limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("paths", type=Path, nargs="+")
    options = parser.parse_args()
    if options.report is None:
        options.model, options.tokenizer, options.prep, options.sick, options.out = options.paths
        score(options)
        report(options.out, options.prep, options.sick, options.limit)
    else:
        report(options.report, *options.paths, options.limit)


if __name__ == "__main__":
    main()
