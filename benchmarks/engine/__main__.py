"""The job engine beside its peers on one PostgreSQL in one run: `python -m benchmarks.engine --out results.md`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from benchmarks.engine import environment, report
from benchmarks.engine.contest import NAMES, Entry, has_file, introduce
from benchmarks.engine.measurements import MEASUREMENTS, Arena
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from tests.support.postgres import Server, open_folder

SHOWN_SETTINGS = ("server_version", "synchronous_commit", "fsync", "shared_buffers")


def main() -> None:
    options = read_options()
    environment.install()
    with open_arena() as arena:
        entries = [introduce(name, arena.log) for name in options.only if has_file(name)]
        results = compete(arena, entries, options.rounds)
        page = report.write(entries, results, server_settings(arena), options.rounds)
    print(page)
    if options.out:
        options.out.write_text(page)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--out", type=Path, help="also write the page to this file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="contestants to run")
    return parser.parse_args()


@contextmanager
def open_arena() -> Generator[Arena]:
    with open_folder() as root:
        postgres = EmbeddedPostgres(DataFolder(root / "data"))
        try:
            yield Arena(Server(postgres.start()), root / "contestants.log")
        finally:
            postgres.stop()


def compete(arena: Arena, entries: list[Entry], rounds: int) -> report.Results:
    """Contestants alternate within every measurement, so that a noisy minute hits all of them."""
    pairs = [(measurement, entry) for measurement in MEASUREMENTS for entry in entries if measurement.can(entry)]
    sizes = {(measurement, entry.name): measurement.pilot(arena, entry) for measurement, entry in pairs}
    results: report.Results = {}
    for number in range(rounds):
        for measurement, entry in pairs:
            result = measurement.measure(arena, entry, sizes[measurement, entry.name])
            results.setdefault((measurement.title, entry.name), []).append(result)
            figures = "  ".join(f"{name} {value:.2f}" for name, value in result.items())
            print(f"round {number + 1}  {measurement.title:<20} {entry.name:<14} {figures}", file=sys.stderr)
    return results


def server_settings(arena: Arena) -> dict[str, str]:
    with psycopg.connect(arena.server.template) as connection:
        rows = connection.execute(
            "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name", [list(SHOWN_SETTINGS)]
        ).fetchall()
    return {name: value.split()[0] for name, value in rows}


if __name__ == "__main__":
    main()
