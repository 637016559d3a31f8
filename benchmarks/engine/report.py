"""The results as a page of Markdown: medians of all rounds, their spread, and ratios of ours to each peer."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator

from benchmarks.engine.contest import OURS, WORKERS, Entry
from benchmarks.engine.measurements import MEASUREMENTS, OFFERS, Drain, IdleStart, Result

Results = dict[tuple[str, str], list[Result]]
CANNOT = "cannot"

METHOD = f"""\
The contestants take turns, round after round, on one server; each run has a new database. A figure is the median of
the rounds, with the lowest and the highest in brackets. {WORKERS} worker processes each, connected before the clock
starts. A drain lasts from the first line of the first job (CLOCK_MONOTONIC, noted by the job itself) until the
database holds no unfinished job; its queue is filled, vacuumed and checkpointed before. The number of jobs is chosen
for each contestant by a pilot run, so that a drain lasts some seconds. An idle start is {OFFERS} single jobs a round;
`commit` is the return of the call that enqueues, so a worker that is notified may start before it (a negative
figure), and `call` is the moment before that call. `ours / peer` says how many times as fast ours is, as the median
of the ratios within each round; for latencies it is the peer's figure divided by ours.\
"""


def write(entries: list[Entry], results: Results, server: dict[str, str], rounds: int) -> str:
    blocks = [
        "# The job engine beside its peers",
        _describe_run(server, rounds),
        "\n".join(_table(entries, results)),
        "## Method",
        METHOD,
        "## Choices",
        "\n".join(_choices(entries)),
    ]
    return "\n\n".join(blocks) + "\n"


def _describe_run(server: dict[str, str], rounds: int) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in server.items())
    return f"{rounds} rounds, {os.cpu_count()} cores, Python {platform.python_version()}. PostgreSQL: {settings}."


def _table(entries: list[Entry], results: Results) -> Iterator[str]:
    peers = [entry.name for entry in entries if entry.name != OURS]
    if len(peers) == len(entries):
        peers = []  # ours did not take part, so there is nothing to compare
    heads = ["", *(f"{entry.name} {entry.version}" for entry in entries), *(f"ours / {peer}" for peer in peers)]
    yield _row(heads)
    yield _row(["---", *["---:"] * (len(heads) - 1)])
    for measurement in MEASUREMENTS:
        for figure in measurement.figures:
            columns = {entry.name: _values(results, measurement, entry, figure) for entry in entries}
            ratios = [_ratio(columns[OURS], columns[peer], measurement) for peer in peers]
            yield _row([f"{measurement.title}, {figure}", *map(_spread, columns.values()), *ratios])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _values(results: Results, measurement: Drain | IdleStart, entry: Entry, figure: str) -> list[float]:
    return [result[figure] for result in results.get((measurement.title, entry.name), [])]


def _spread(values: list[float]) -> str:
    if not values:
        return CANNOT
    middle, low, high = (_number(value) for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}"


def _ratio(ours: list[float], theirs: list[float], measurement: Drain | IdleStart) -> str:
    """The median of the rounds' ratios: what one round shares with the next is less than what its runs share."""
    if not ours or not theirs or min(*ours, *theirs) <= 0:
        return "-"
    pairs = zip(ours, theirs, strict=True)
    return (
        f"{statistics.median(our / their if measurement.more_is_better else their / our for our, their in pairs):.2f}"
    )


def _choices(entries: list[Entry]) -> Iterator[str]:
    for entry in entries:
        yield f"* **{entry.name} {entry.version}**"
        yield from (f"  * {choice}" for choice in entry.choices)
