# ruff: noqa: E501, PLR2004
"""Trains the teacher and the student, and lets the teacher label the student's data.

    python -m octavo_small.train teacher NAME PREP WEIGHTS OUT --seed 1
    python -m octavo_small.train label NAME PREP WEIGHTS OUT        # writes NAME.labels.npz
    python -m octavo_small.train student NAME PREP WEIGHTS OUT --teachers teacher1,teacher2

PREP is the folder that `pairs` and `questions` wrote, WEIGHTS the one of `weights`. One H200 needs about five minutes for
each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from octavo_small.model import (
    DEVICE,
    PAIR_PIECES,
    PASSAGE_PIECES,
    Network,
    RoundedWeights,
    Texts,
    batches,
    half_precision,
    in_order,
)
from octavo_small.sources import CONTRADICTS, NOT_CONTRADICTION, UNLABELLED, Pair, read_lines, read_pairs
from torch import Tensor
from torch.nn import functional

_HARD_SHARE = 0.3  # how much of a label comes from the data, where the teacher knows better
_DOUBT = 0.2  # how much of the teacher's contradictions remains where two true sentences were paired


@dataclass
class Task:
    """Rows of one kind, and the loss of a batch of them."""

    texts: Texts
    loss: Callable[[tuple[Tensor, Tensor, Tensor], Tensor], Tensor]
    batch_size: int


def training_pairs(prep: Path, limit: int) -> list[Pair]:
    """Return all pairs in both directions. Only contradictions and presumed neutral pairs keep their label turned round."""
    names = ("labelled", "made", "neutral", "unlabelled")
    forward = [pair for name in names for pair in read_pairs(prep / f"{name}.jsonl.xz")[: limit or None]]
    symmetric = (CONTRADICTS, NOT_CONTRADICTION)
    back = [Pair(p.b, p.a, p.label if p.label in symmetric else UNLABELLED, f"{p.source}<") for p in forward]
    return forward + back


def training_questions(prep: Path, limit: int, *, close: bool = True) -> list[dict[str, Any]]:
    """Return the questions. Those for close reading are the last ones, so that labels fit with and without them."""
    names = ("questions", "questions-made", *(("questions-close",) if close else ()))
    return [row for name in names for row in read_lines(prep / f"{name}.jsonl.xz")[: limit or None]]


def pair_task(kind: str, weights: Path, pairs: list[Pair], soft: np.ndarray | None, size: int) -> Task:
    texts = Texts(kind, weights, [(pair.a, pair.b) for pair in pairs], PAIR_PIECES, "longest_first")
    labels = np.array([pair.label for pair in pairs])
    target = np.zeros((len(pairs), 3), np.float32)
    for label in range(3):
        target[labels == label, label] = 1
    only_not = (labels == NOT_CONTRADICTION) & (soft is None)
    if soft is not None:
        target = mix_labels(target, labels, soft)
    targets, only = torch.from_numpy(target).to(DEVICE), torch.from_numpy(only_not).to(DEVICE)

    def loss(logits: tuple[Tensor, Tensor, Tensor], rows: Tensor) -> Tensor:
        logs = functional.log_softmax(logits[0], -1)
        plain, not_contradiction = -(targets[rows] * logs).sum(1), -torch.logsumexp(logs[:, :2], 1)
        return torch.where(only[rows], not_contradiction, plain).mean()

    return Task(texts, loss, size)


def mix_labels(target: np.ndarray, labels: np.ndarray, soft: np.ndarray) -> np.ndarray:
    """Mix the labels of the data with those of the teacher."""
    doubted = soft.copy()
    doubted[:, CONTRADICTS] *= _DOUBT
    doubted /= doubted.sum(1, keepdims=True)
    known = ((labels >= 0) & (labels != NOT_CONTRADICTION))[:, None]
    mixed = np.where(known, _HARD_SHARE * target + (1 - _HARD_SHARE) * soft, soft)
    return np.where((labels == NOT_CONTRADICTION)[:, None], doubted, mixed).astype(np.float32)


def question_task(
    kind: str, weights: Path, rows: list[dict[str, Any]], soft: dict[str, np.ndarray] | None, size: int
) -> Task:
    texts = Texts(kind, weights, [(row["q"], row["c"]) for row in rows], PASSAGE_PIECES, "only_second")
    spans = np.array([_span_of(row["a"], texts, place) for place, row in enumerate(rows)])
    usable = torch.from_numpy(spans[:, 0] >= 0).to(DEVICE)
    places = torch.from_numpy(np.maximum(spans, 0)).to(DEVICE)
    held = torch.from_numpy((spans[:, 0] != 0).astype(np.float32)).to(DEVICE)
    soft_spans = None if soft is None else torch.from_numpy(soft["spans"]).to(DEVICE)
    soft_rank = None if soft is None else torch.from_numpy(soft["rank"]).to(DEVICE)
    print(kind, "questions", len(rows), "usable", int(usable.sum()), "answered", int(held.sum()), flush=True)

    def loss(logits: tuple[Tensor, Tensor, Tensor], chosen: Tensor) -> Tensor:
        _, rank, spans = logits
        logs = functional.log_softmax(spans, 1)
        hard = -logs.gather(1, places[chosen][:, None, :])[:, 0].sum(-1)
        rank_target = held[chosen]
        if soft_spans is None or soft_rank is None:
            total = hard
        else:
            probabilities = soft_spans[chosen, : logs.shape[1]].float()
            total = 0.4 * hard - 0.6 * (probabilities * logs).sum((1, 2))
            rank_target = 0.4 * rank_target + 0.6 * soft_rank[chosen]
        ranked = functional.binary_cross_entropy_with_logits(rank, rank_target, reduction="none")
        kept = usable[chosen].float()
        return ((0.5 * total + 0.5 * ranked) * kept).sum() / kept.sum().clamp(min=1)

    return Task(texts, loss, size)


def _span_of(answer: list[Any] | None, texts: Texts, row: int) -> tuple[int, int]:
    """Return the first and last piece of the answer; 0 and 0 for no answer, -1 and -1 if it was cut off."""
    if answer is None:
        return 0, 0
    start, end = answer[1], answer[1] + len(answer[0])
    first, last = int(texts.second[row]), int(texts.lengths[row]) - 1
    offsets = texts.offsets[row][first:last]
    inside = np.flatnonzero((offsets[:, 1] > start) & (offsets[:, 0] < end))
    if len(inside) == 0 or offsets[-1, 1] < end - 1:
        return -1, -1
    return first + int(inside[0]), first + int(inside[-1])


def train(network: Network, tasks: list[Task], options: argparse.Namespace, *, rounded: bool) -> None:
    """Train on all tasks in turn, and leave the moving average of the weights in the network.

    If time runs out before the epochs do, the learning rate falls with the time instead of the steps.
    """
    rng, rate = np.random.default_rng(options.seed), options.rate
    torch.manual_seed(options.seed)
    parameters = list(network.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.01},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=DEVICE == "cuda")
    plan = []
    for _ in range(options.epochs):
        epoch = [(task, rows) for task in tasks for rows in batches(task.texts.lengths, task.batch_size, rng)]
        plan += [epoch[i] for i in rng.permutation(len(epoch))]
    average = [p.detach().clone() for p in parameters]
    rounding = RoundedWeights(network)
    begin, steps = time.time(), len(plan)
    network.train()
    for step, (task, rows) in enumerate(plan, 1):
        done = max(step / steps, (time.time() - begin) / options.seconds)
        factor = min(1, done / 0.06) * max(0.02, 1 - done)
        for group in optimizer.param_groups:
            group["lr"] = rate * factor
        with rounding if rounded and done > 0.6 else nullcontext():
            with half_precision():
                logits = network(*task.texts.batch(rows))
            loss = task.loss(logits, torch.as_tensor(rows, device=DEVICE))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, [p.detach() for p in parameters], max(0.002, 1 / (step + 1)))
        if step % 400 == 0 or step == steps or done >= 1:
            print(f"{options.name} {step}/{steps} loss {loss.item():.3f} {time.time() - begin:.0f} s", flush=True)
        if done >= 1:
            break
    with torch.no_grad():
        torch._foreach_copy_(parameters, average)


@torch.no_grad()
def label(network: Network, weights: Path, pairs: list[Pair], rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Return the teacher's probabilities for all pairs and questions."""
    network.eval()
    texts = Texts(network.kind, weights, [(pair.a, pair.b) for pair in pairs], PAIR_PIECES, "longest_first")
    judged = np.zeros((len(pairs), 3), np.float32)
    for chosen in in_order(texts, 1024):
        with half_precision():
            logits, _, _ = network(*texts.batch(chosen))
        judged[chosen] = functional.softmax(logits, -1).cpu().numpy()
    asked = Texts(network.kind, weights, [(row["q"], row["c"]) for row in rows], PASSAGE_PIECES + 1, "only_second")
    # The teacher puts one more separator between the texts than the student: its pieces are one place further on.
    spans, rank = np.zeros((len(rows), PASSAGE_PIECES, 2), np.float16), np.zeros(len(rows), np.float32)
    for chosen in in_order(asked, 512):
        with half_precision():
            _, ranked, found = network(*asked.batch(chosen))
        probabilities = functional.softmax(found, 1).half().cpu().numpy()
        most = min(PASSAGE_PIECES, probabilities.shape[1] - 1)
        spans[chosen, :most] = probabilities[:, 1 : most + 1]
        spans[chosen, 0] = probabilities[:, 0]
        rank[chosen] = torch.sigmoid(ranked).cpu().numpy()
    return {"judged": judged, "spans": spans, "rank": rank}


def teach(options: argparse.Namespace) -> None:
    pairs = [p for p in training_pairs(options.prep, options.limit) if p.label != UNLABELLED]
    rng = np.random.default_rng(options.seed)
    keep = rng.random(len(pairs))
    labelled = frozenset({"fever", "fever-dev", "fm2", "contract", "conj"})
    pairs = [
        p
        for p, chance in zip(pairs, keep, strict=True)
        if chance < (1.0 if p.source.rstrip("<") in labelled else options.share)
    ]
    network = Network("mpnet", options.weights).to(DEVICE)
    rows = training_questions(options.prep, options.limit, close=not options.without_close)
    rows = [row for row, chance in zip(rows, rng.random(len(rows)), strict=True) if chance < 0.7]
    tasks = [
        pair_task("mpnet", options.weights, pairs, None, options.batch),
        question_task("mpnet", options.weights, rows, None, max(8, options.batch // 4)),
    ]
    print(options.name, len(pairs), "pairs", len(rows), "questions", flush=True)
    train(network, tasks, options, rounded=False)
    network.save(options.out / f"{options.name}.safetensors")


def write_labels(options: argparse.Namespace) -> None:
    network = Network("mpnet", options.weights, options.out / f"{options.name}.safetensors").to(DEVICE)
    labels = label(network, options.weights, training_pairs(options.prep, options.limit), training_questions(options.prep, options.limit))  # fmt: skip
    np.savez(options.out / f"{options.name}.labels.npz", **labels)


def learn(options: argparse.Namespace) -> None:
    pairs = training_pairs(options.prep, options.limit)
    rows = training_questions(options.prep, options.limit, close=not options.without_close)
    soft = None
    if options.teachers:
        files = [np.load(options.out / f"{name}.labels.npz") for name in options.teachers.split(",")]
        soft = {
            key: np.mean([file[key].astype(np.float32) for file in files], 0) for key in ("judged", "spans", "rank")
        }
        soft |= {"spans": soft["spans"][: len(rows)].astype(np.float16), "rank": soft["rank"][: len(rows)]}
    else:
        pairs = [pair for pair in pairs if pair.label != UNLABELLED]
    network = Network("minilm", options.weights).to(DEVICE)
    tasks = [
        pair_task("minilm", options.weights, pairs, None if soft is None else soft["judged"], options.batch),
        question_task("minilm", options.weights, rows, soft, max(8, options.batch // 4)),
    ]
    print(options.name, len(pairs), "pairs", len(rows), "questions", flush=True)
    train(network, tasks, options, rounded=True)
    network.save(options.out / f"{options.name}.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("teacher", "label", "student"))
    parser.add_argument("name")
    for folder in ("prep", "weights", "out"):
        parser.add_argument(folder, type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=3e-5)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--share", type=float, default=0.5, help="share of the made and neutral pairs a teacher sees")
    parser.add_argument("--teachers", default="")
    parser.add_argument("--seconds", type=float, default=3600, help="time after which training ends")
    parser.add_argument("--without-close", action="store_true", help="train without the close readings")
    parser.add_argument("--limit", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    begin = time.time()
    {"teacher": teach, "label": write_labels, "student": learn}[options.step](options)
    print(options.name, options.step, f"took {time.time() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
