"""Real processes for tests: started, watched, and never left behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import psutil

from tests.support import preloaded

# Only a test that fails waits so long: the limit is no promise, and a busy machine must not reach it.
PATIENCE_SECONDS = 300
STACKS_SECONDS = 5
# A prefix that changes nothing: the command starts as a person starts it, not as a fork.
THE_USUAL_WAY = ("env",)
Running: TypeAlias = preloaded.Process | subprocess.Popen[bytes]


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Poll for something another process does, less often the longer it takes."""
    start = time.monotonic()
    while not condition():
        waited = time.monotonic() - start
        if waited > seconds:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(min(max(waited / 20, 0.01), 0.1))


def takes_at_most(seconds: float, once: Callable[[], float], tries: int = 3) -> bool:
    """A promise about time. Other programs only make it slower, so one try that is quick enough shows that it holds."""
    return any(once() <= seconds for _ in range(tries))


def processes_mentioning(text: str) -> list[psutil.Process]:
    """Live processes with this text among their arguments, such as a test's own folder."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(text in part for part in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return [process for process in found if process.pid != os.getpid()]


def describe(process: psutil.Process) -> str:
    """One line: what it is, its state, and where in the kernel it waits."""
    with contextlib.suppress(psutil.Error, OSError):
        wait = Path(f"/proc/{process.pid}/wchan").read_text()
        command = " ".join(process.cmdline())[:100]
        threads, parent = process.num_threads(), process.ppid()
        return f"{process.pid} of {parent}, {process.status()}, {threads} threads, waits in {wait}: {command}"
    return f"{process.pid} has ended"


def report_on(processes: Sequence[psutil.Process], log: Path) -> str:
    """Why processes may hang: their states, and their log, to which those that are forks write their stacks."""

    def stacks() -> int:
        return log.read_text().count("Current thread")

    before, asked = stacks(), sum(preloaded.request_stacks(one.pid) for one in processes)
    with contextlib.suppress(AssertionError):  # one that is stopped does not write
        wait_until(lambda: stacks() >= before + asked, "stacks are written", STACKS_SECONDS)
    return "\n".join([*map(describe, processes), f"Log: {log.read_text()}"])


def octavo_environment(data_dir: Path, **settings: object) -> dict[str, str]:
    """The environment of a command under test: nothing of the shell's own settings, nor of the person's profiles."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OCTAVO_")}
    chosen = {f"OCTAVO_{name.upper()}": str(value) for name, value in settings.items()}
    own = {"OCTAVO_DATA_DIR": str(data_dir), "XDG_CONFIG_HOME": str(data_dir.with_name(f"{data_dir.name}-config"))}
    return {**clean, **own, **chosen}


def start_octavo(
    arguments: Sequence[str], environment: Mapping[str, str], output: int, *, prefix: Sequence[str] = ()
) -> Running:
    """A command that goes on beside the test; behind a prefix such as `ip netns exec` it starts the usual way."""
    if not prefix:
        return preloaded.start(arguments, environment, output)
    command = [*prefix, sys.executable, "-m", "octavo", *arguments]
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def run_octavo(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    cwd: Path | None = None,
    given: bytes = b"",
    seconds: float = PATIENCE_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """One command to its end; `given` is its standard input."""
    return preloaded.run(arguments, environment, cwd=cwd, given=given, seconds=seconds)


@contextmanager
def running_octavo(arguments: Sequence[str], environment: Mapping[str, str]) -> Generator[Running]:
    """A command whose output does not matter, gone when the test is."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
        process = start_octavo(arguments, environment, nowhere.fileno())
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Generator[subprocess.Popen[str]]:
    """A process that is gone when the test is."""
    process = subprocess.Popen(
        command,
        env=dict(environment) if environment is not None else None,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
