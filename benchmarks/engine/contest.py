"""The rules of the contest, and the runner's side of the lines that it exchanges with a contestant's processes.

A contestant is a module `benchmarks.engine.contestants.<name>_contestant`, run with `python -m` from the project's
root in its own environment, with `CONTEST_DATABASE_URL` set to an empty database. It imports its library, the
standard library and `benchmarks.engine.contestants.protocol`, implements `protocol.Contestant` and ends with

    if __name__ == "__main__":
        serve(ItsClass)

Of each contestant one process keeps the queue and two processes work. The class must provide

* `library`: the name of the installed distribution, for its version;
* `can_checkpoint`: whether a job can run in steps whose ends are committed one by one;
* `choices`: sentences about how it was set up, which are printed with the results;
* `prepare(batch)`: create the schema in the empty database and stay connected. `batch` (1 or 10) is known here
  already, because some libraries keep it in the database;
* `enqueue(kind, count)`: put `count` jobs into the queue as fast as the library can, untimed and before any worker
  runs. A `"plain"` job does nothing; a `"staged"` job runs five steps that do nothing, each of them committed before
  the next begins, and is only asked for when `can_checkpoint` is true;
* `offer()`: enqueue one plain job in the usual way and return when it is committed;
* `unfinished()`: how many jobs are not finished durably. The clock of a drain stops when this is 0;
* `work(batch, tally, wait_for_start)`: open the connections, call `wait_for_start()` (it returns when all workers are
  there), then work on both kinds of jobs without ever returning. The first line of every job is `tally.record()`.
  `batch` is how many jobs one fetch may take, or where there are no batches how many may run at the same time.

`prepare`, `enqueue`, `offer` and `unfinished` run in the process that keeps the queue; `work` runs in the others, in
which nothing else has been called.

The same for all: one server, `synchronous_commit=on`, two worker processes, a new database for every single run,
VACUUM ANALYZE and CHECKPOINT between enqueueing and the start, no debug or info logging.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from benchmarks.engine import environment

OURS = "octavo"
NAMES = (OURS, "procrastinate", "pgqueuer", "dbos")
WORKERS = 2
# Longer than any untimed part; whoever is silent for so long hangs.
PATIENCE_SECONDS = 180
LEAVING_SECONDS = 5
LOG_TAIL = 2000


class ContestantFailed(Exception):
    """A contestant's process ended or fell silent."""


@dataclass(frozen=True)
class Entry:
    """A contestant that takes part, with what it says about itself."""

    name: str
    version: str
    can_checkpoint: bool
    choices: Sequence[str]


class Process:
    """One process of a contestant; every question but `go` is answered with one line."""

    def __init__(self, name: str, database_url: str, log: TextIO) -> None:
        python = sys.executable if name == OURS else str(environment.PYTHON)
        self._name, self._log = name, log
        self._process = subprocess.Popen(
            [python, "-m", f"benchmarks.engine.contestants.{name}_contestant"],
            cwd=environment.PROJECT,
            env={**os.environ, "CONTEST_DATABASE_URL": database_url},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            bufsize=1,
        )

    def tell(self, *words: object) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
        except BrokenPipeError:
            raise self._failure("ended") from None

    def hear(self) -> dict[str, Any]:
        assert self._process.stdout
        if not select.select([self._process.stdout], [], [], PATIENCE_SECONDS)[0]:
            raise self._failure("fell silent")
        line = self._process.stdout.readline()
        if not line:
            raise self._failure("ended")
        return json.loads(line)

    def ask(self, *words: object) -> dict[str, Any]:
        self.tell(*words)
        return self.hear()

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(LEAVING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            stream.close()

    def _failure(self, what: str) -> ContestantFailed:
        self._log.flush()
        return ContestantFailed(f"{self._name} {what}:\n{Path(self._log.name).read_text()[-LOG_TAIL:]}")


@contextmanager
def processes(name: str, database_url: str, log: Path, count: int) -> Generator[list[Process]]:
    """Processes of a contestant that are gone afterwards, whatever happens."""
    with ExitStack() as stack:
        stream = stack.enter_context(log.open("a"))
        started: list[Process] = []
        for _ in range(count):
            started.append(Process(name, database_url, stream))
            stack.callback(started[-1].end)
        yield started


def has_file(name: str) -> bool:
    return Path(__file__).with_name("contestants").joinpath(f"{name}_contestant.py").exists()


def introduce(name: str, log: Path) -> Entry:
    """Ask a contestant what it is; this needs no database."""
    with processes(name, "", log, 1) as (process,):
        return Entry(name, **process.ask("describe"))
