"""How well the fact sheet of a document is right: `python -m benchmarks.facts [options] FOLDER...`.

FOLDERs hold the labelled files (`labels.yaml`) anywhere below them; files that are not there are named and left out.
`--half` chooses "tuning" (the default), "held out" or "both"; the halves are split by the hash of the file name, and
rules were written with the results of the first half only. `--wrong` names the wrong values; `--cache FOLDER` keeps
what was read from the files for the next run; `--calibrate` writes the measured confidences from the chosen half.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.facts.documents import read_sources
from benchmarks.facts.judging import FIELDS, HELD_OUT, TUNING, Judged, judge, load_labels
from octavo.facts.confidence import REVIEW
from octavo.facts.sheet import find_facts

CALIBRATION = Path(__file__).parents[2] / "src/octavo/facts/data/described.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--half", default=TUNING, choices=[TUNING, HELD_OUT, "both"])
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--calibrate", action="store_true")
    given = parser.parse_args()
    judged = asyncio.run(_judge_all(given.folders, given.half, given.cache))
    _print_totals(judged)
    _print_kinds(judged)
    if given.wrong:
        _print_wrong(judged)
    if given.calibrate:
        _calibrate(judged)


async def _judge_all(folders: Sequence[Path], half: str, cache: Path | None) -> list[Judged]:
    labels = {one.name: one for one in load_labels() if half in {one.half, "both"}}
    paths = {path.name: path for folder in reversed(folders) for path in sorted(folder.rglob("*")) if path.is_file()}
    for name in labels.keys() - paths.keys():
        print(f"  {name}: not in these folders, left out")
    found = [paths[name] for name in labels if name in paths]
    judged: list[Judged] = []
    async for path, source in read_sources(found, cache):
        judged += judge(labels[path.name], find_facts(source))
    print(f"{len({one.labels.name for one in judged})} documents, half: {half}")
    return judged


def _print_totals(judged: Sequence[Judged]) -> None:
    print(f"{'':8}{'right of those with one':>26}{'wrong':>7}{'sure, wrong':>13}{'right of all':>14}")
    for field in FIELDS:
        own = [one for one in judged if one.field == field]
        valued = [one for one in own if one.has_value]
        right, wrong = (sum(one.verdict == verdict for one in own) for verdict in ("right", "wrong"))
        sure = sum(one.verdict == "wrong" and one.confidence >= REVIEW for one in own)
        share = sum(one.verdict == "right" for one in valued)
        part = f"{share} of {len(valued)} {share / max(len(valued), 1):4.0%}"
        print(f"{field:8}{part:>26}{wrong:>7}{sure:>13}{f'{right} of {len(own)} {right / max(len(own), 1):4.0%}':>14}")


def _print_kinds(judged: Sequence[Judged]) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in judged:
        counts[one.labels.kind][f"{one.field} {one.verdict == 'right'}"] += 1
    print("by kind:")
    for kind in sorted(counts):
        own = counts[kind]
        parts = [f"{field} {own[f'{field} True']}/{own[f'{field} True'] + own[f'{field} False']}" for field in FIELDS]
        print(f"  {kind:15}{'  '.join(parts)}")


def _calibrate(judged: Sequence[Judged]) -> None:
    """Count right and all values for each tier of evidence. The date of a file is right only if it is printed too."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in judged:
        if one.found is not None and one.evidence and not (one.labels.kind == "invoice" and one.field != "kind"):
            wanted = one.labels.values[one.field]
            is_right = one.verdict == "right" and (one.source != "metadata" or bool(wanted))
            row = counts[f"{one.field}: {one.evidence}"]
            row[0] += is_right
            row[1] += 1
    rows = (f' "{name}": [{right}, {count}]' for name, (right, count) in sorted(counts.items()))
    CALIBRATION.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    print(f"{len(counts)} tiers written to {CALIBRATION.name}")


def _print_wrong(judged: Sequence[Judged]) -> None:
    for one in judged:
        if one.verdict != "right":
            wanted = one.labels.values[one.field] or ("none",)
            shown = f"{one.found!r} ({one.confidence}, {one.source})"
            print(f"  {one.field:7}{one.verdict:8}{one.labels.name}: {shown}, wanted {wanted[0]!r}")


main()
