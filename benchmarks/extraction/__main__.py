"""PDFs read by ours and by its peers, one after the other in one run: `python -m benchmarks.extraction FOLDER`.

Every PDF with bookmarks is read without them. Headings are judged by the bookmarks, wherever they stand in the text;
words by those that PDFium finds. Contestants take turns; speeds are pages for each second of processor time.
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
from statistics import mean, median
from typing import Any

from benchmarks.extraction import peers
from benchmarks.extraction.judging import bookmarks_of, headings_in, recall, without_bookmarks, word_recall, words_of
from octavo.extract.pdf.facts import open_pdf

PATIENCE_SECONDS = 1800
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


@dataclass(slots=True)
class Score:
    """`seconds` are of all rounds, for all files."""

    name: str
    version: str = ""
    seconds: list[float] = field(default_factory=list[float])
    memory: int = 0
    texts: list[str] = field(default_factory=list[str])
    failure: str = ""


def main() -> None:
    options = read_options()
    files = [path for path in sorted(options.folder.glob("*.pdf")) if bookmarks_of(path)]
    if not files:
        sys.exit(f"There is no PDF with bookmarks in {options.folder}.")
    scores = {name: Score(name) for name in options.only}
    with tempfile.TemporaryDirectory() as folder:
        bare = [without_bookmarks(path, Path(folder)) for path in files]
        pythons = {name: peers.install(name) for name in scores}
        for number in range(options.rounds):
            for name, score in scores.items():
                print(f"round {number + 1}: {name}", file=sys.stderr)
                take_turn(score, pythons[name], bare)
        print_scores(list(scores.values()), files, bare)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=peers.NAMES, default=peers.NAMES)
    return parser.parse_args()


def take_turn(score: Score, python: Path, files: Sequence[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(python), "-m", "benchmarks.extraction.contestant", score.name, folder, *map(str, files)],
            cwd=peers.PROJECT,
            env={**os.environ, **ONE_THREAD},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        if done.returncode:
            score.failure = (done.stderr.strip().splitlines() or ["it did not say why"])[-1]
            return
        first, *costs = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
        note(score, first["version"], costs)
        score.texts = [(Path(folder) / f"{file.stem}.md").read_text() for file in files]


def note(score: Score, version: str, costs: Sequence[dict[str, Any]]) -> None:
    score.version = version
    score.seconds.append(sum(cost["seconds"] for cost in costs))
    score.memory = max(score.memory, *(cost["memory"] for cost in costs))


def print_scores(scores: Sequence[Score], files: Sequence[Path], bare: Sequence[Path]) -> None:
    pages = sum(open_pdf(path).page_count for path in files)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{len(files)} PDFs, {pages} pages; {os.cpu_count()} cores, load of the machine {load}\n")
    print("| | pages/s | times as fast as it ours is | MiB | headings | words |")
    print("|---|---:|---:|---:|---:|---:|")
    wanted = [(bookmarks_of(path), words_of(copy)) for path, copy in zip(files, bare, strict=True)]
    ours = next((pages / median(one.seconds) for one in scores if one.name == peers.OURS and one.seconds), None)
    for score in scores:
        if not score.texts:
            print(f"| {score.name} | failed: {score.failure} | | | | |")
            continue
        speed = pages / median(score.seconds)
        pairs = list(zip(wanted, score.texts, strict=True))
        headings = mean(recall(titles, headings_in(text)) for (titles, _), text in pairs)
        words = mean(word_recall(counts, text) for (_, counts), text in pairs)
        ratio = f"{ours / speed:.1f}" if ours and score.name != peers.OURS else ""
        row = (f"{score.name} {score.version}", f"{speed:.0f}", ratio, f"{score.memory >> 20}")
        print(f"| {' | '.join(row)} | {headings:.3f} | {words:.3f} |")


if __name__ == "__main__":
    main()
