"""Files read by Octavo and by its peers, one after the other in one run: `python -m benchmarks.extraction FOLDER`.

FOLDER holds public test files by kind, as for `benchmarks.extraction.measure`. Long PDFs are read without their
bookmarks, and headings are judged by the bookmarks. Contestants take turns; speeds are per second of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.extraction import peers
from benchmarks.extraction.peer_sets import FileSet, make_sets
from benchmarks.extraction.rows import report

PATIENCE_SECONDS = 1800
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


@dataclass(slots=True)
class Score:
    """What one contestant made of one set. `seconds` has an entry for each round."""

    version: str = ""
    seconds: list[float] = field(default_factory=list[float])
    memory: int = 0
    texts: list[str] = field(default_factory=list[str])
    failed: int = 0
    failure: str = ""


def main() -> None:
    options = read_options()
    with tempfile.TemporaryDirectory() as folder:
        for one in make_sets(options.folder, Path(folder)):
            if options.sets and one.name not in options.sets:
                continue
            scores = {name: Score() for name in options.only if one.ending in peers.ENDINGS.get(name, (one.ending,))}
            for number in range(options.rounds):
                for name, score in scores.items():
                    report(f"{one.name}, round {number + 1}: {name}")
                    take_turn(name, score, one.files)
            print_scores(one, scores)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=peers.NAMES, default=peers.USUAL)
    parser.add_argument(
        "--sets", nargs="+", metavar="SET", help="such as 'Long PDFs', Tables, HTML, DOCX; default: all"
    )
    return parser.parse_args()


def take_turn(name: str, score: Score, files: Sequence[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(peers.install(name)), "-m", "benchmarks.extraction.contestant", name, folder, *map(str, files)],
            cwd=peers.PROJECT,
            env={**os.environ, **ONE_THREAD},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        if done.returncode:
            score.failure = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return
        first, *costs = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
        note(score, first["version"], costs)
        score.texts = [(Path(folder) / f"{index}.md").read_text() for index in range(len(files))]


def note(score: Score, version: str, costs: Sequence[dict[str, Any]]) -> None:
    score.version = version
    score.seconds.append(sum(cost["seconds"] for cost in costs))
    score.memory = max(score.memory, *(cost["memory"] for cost in costs))
    failures = [cost["failure"] for cost in costs if cost["failure"]]
    score.failed, score.failure = len(failures), failures[0] if failures else ""


def print_scores(one: FileSet, scores: dict[str, Score]) -> None:
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\n### {one.name}\n\n{one.about} {len(one.files)} files, {one.units} {one.unit}; load {load}.\n")
    judged = {name: one.judge(score.texts) for name, score in scores.items() if score.texts}
    figures = list(next(iter(judged.values()), {}))
    columns = ["", *figures, f"{one.unit}/s", "MiB", "Failed"]
    print("| " + " | ".join(columns) + " |\n|---" + "|---:" * (len(columns) - 1) + "|")
    for name, score in scores.items():
        if name not in judged:
            print(f"| {name} | failed: {score.failure[:80]} |" + " |" * (len(columns) - 2))
            continue
        speed = one.units / max(median(score.seconds), 1e-9)
        values = [f"{judged[name][figure]:.3f}" for figure in figures]
        cells = [f"{name} {score.version}", *values, f"{speed:.0f}", f"{score.memory >> 20}", str(score.failed)]
        print("| " + " | ".join(cells) + " |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
