"""Count what a reader has to walk through to follow a command, by tracing it for real.

    .venv/bin/python tools/count_walks.py REPORT.pdf INVOICE.pdf

Starts Octavo in an empty data folder with a profile hook in every process, then follows two commands:

- `octavo add REPORT.pdf` until its row is on the library page: the command, and the web process that takes the file in,
  sends the event and renders the row;
- `octavo convert INVOICE.pdf` until the XML is there: the command, the web process and the worker. Its own code is what
  ran for it and did not run for the report: neither to take it in, nor to process it, nor to download it.

Printed for each: functions of Octavo that ran, their files and packages, and how often the walk changes the package,
counted in three ways: the different pairs of packages in which one calls the other; the functions that were first
called from another package; and how often the next function to run for the first time is in another package, which
counts every return to the caller too. Start-up, imports and comprehensions do not count, and neither do the tasks that
run without a request: those seen while nothing was requested for half a minute. Children of the sandbox cannot
write anywhere, so they are not traced.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

HOOK = """
import atexit, json, os, signal, sys, threading, time

FOLDER, SOURCE = os.environ["WALKS_FOLDER"], os.environ["WALKS_SOURCE"]
seen, background, trunk, main, importing = {}, set(), set(), os.getpid(), threading.local()

def callers(frame):
    found = []
    while (frame := frame.f_back) and frame.f_code not in trunk:
        if frame.f_code.co_filename.startswith(SOURCE) and frame.f_code.co_name[0] != "<":
            found.append(frame.f_code)
    return found

def note(frame, event, argument):
    code = frame.f_code
    if code.co_name == "<module>":
        imported = frame.f_back and frame.f_back.f_code.co_filename.startswith("<frozen importlib")
        if imported and event in ("call", "return"):
            importing.depth = max(0, getattr(importing, "depth", 0) + (1 if event == "call" else -1))
    elif event == "call" and code not in seen and code.co_filename.startswith(SOURCE) and code.co_name[0] != "<":
        if not getattr(importing, "depth", 0):
            above = callers(frame)
            root = above[-1] if above else code
            if root not in background:
                seen[code] = time.time_ns(), above[0].co_filename[len(SOURCE):] if above else "", root

def begin(number, frame):
    seen.clear()
    while frame:  # the functions that run the event loop
        trunk.add(frame.f_code)
        frame = frame.f_back

def leave_out(*ignored):
    # Requests all begin in the same function, and `octavo up` requests the state of the web server.
    background.update(root for _, _, root in seen.values() if root.co_name != "__call__")

def dump(*ignored):
    if os.getpid() == main:
        calls = [[at, code.co_filename[len(SOURCE):], by] for code, (at, by, _) in list(seen.items())]
        with open(f"{FOLDER}/{main}.part", "w") as file:
            json.dump({"command": sys.argv[1:2], "calls": calls}, file)
        os.rename(f"{FOLDER}/{main}.part", f"{FOLDER}/{main}.json")

signal.signal(signal.SIGUSR1, begin)
signal.signal(signal.SIGHUP, leave_out)
signal.signal(signal.SIGUSR2, dump)
atexit.register(dump)
threading.setprofile(note)
sys.setprofile(note)
"""
READY_SECONDS, IDLE_SECONDS, WALK_SECONDS = 120, 30, 180


@dataclass(frozen=True, slots=True)
class Walk:
    """The functions of Octavo that ran in one process, in the order of their first call: their files and callers."""

    command: str
    files: tuple[str, ...]
    callers: tuple[str, ...]

    @property
    def crossings(self) -> list[tuple[str, str]]:
        """First calls of a function from another package. What the event loop calls has no caller."""
        calls = ((package_of(caller), package_of(file)) for caller, file in zip(self.callers, self.files, strict=True))
        return [(one, other) for one, other in calls if one and one != other]

    @property
    def changes(self) -> int:
        packages = [package_of(file) for file in self.files]
        return sum(one != other for one, other in itertools.pairwise(packages))


def package_of(file: str) -> str:
    first, _, rest = file.lstrip("/").partition("/")
    return first if rest else first.removesuffix(".py")


class Instance:
    """A running Octavo whose processes record the functions they call."""

    def __init__(self, folder: Path, program: Path, source: Path) -> None:
        self._program = program
        self._walks = folder / "walks"
        self._walks.mkdir()
        (folder / "hook").mkdir()
        (folder / "hook" / "sitecustomize.py").write_text(HOOK)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self._environment = {
            **os.environ,
            "OCTAVO_DATA_DIR": str(folder / "data"),
            "OCTAVO_PORT": str(port),
            "WALKS_FOLDER": str(self._walks),
            "WALKS_SOURCE": str(source),
            "PYTHONPATH": str(folder / "hook"),
        }
        self._jar = urllib.request.HTTPCookieProcessor(CookieJar())
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({}), self._jar).open

    @contextmanager
    def running(self) -> Iterator[None]:
        with subprocess.Popen(
            [self._program, "up"], env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as up:
            try:
                self._sign_in(up)
                threading.Thread(target=drain, args=[up], daemon=True).start()
                yield
            finally:
                up.send_signal(signal.SIGTERM)

    def _sign_in(self, up: subprocess.Popen[str]) -> None:
        printed = ""
        for line in up.stdout or ():
            printed += line
            if link := re.search(r"(http://\S+/sign-in)\?(token=\S+)", line):
                self._open(link[1], data=link[2].encode(), timeout=30).read()
                return
        raise RuntimeError(f"Octavo did not start: {printed}")

    def get(self, path: str) -> str:
        with self._open(self.address + path, timeout=30) as answer:
            return answer.read().decode()

    def follow_events(self) -> Any:  # noqa: ANN401 - urllib has no public type for a response
        return self._open(self.address + "/api/v1/events", timeout=WALK_SECONDS)

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            [self._program, *arguments], env=self._environment, check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"octavo {arguments[0]}: {done.stderr or done.stdout}")
        return done.stdout

    def processes(self) -> list[int]:
        up = json.loads((Path(self._environment["OCTAVO_DATA_DIR"]) / "run/up.json").read_text())
        return [process["pid"] for process in up["processes"] if process.get("pid")]

    def leave_out_background(self) -> None:
        """Watch the processes while nothing is requested: what they do then is left out of all walks."""
        self._signal(signal.SIGUSR1)
        time.sleep(IDLE_SECONDS)
        self._signal(signal.SIGHUP)

    def begin_walk(self) -> None:
        for old in self._walks.glob("*.json"):
            old.unlink()
        self._signal(signal.SIGUSR1)

    def _signal(self, number: signal.Signals) -> None:
        for process in self.processes():
            os.kill(process, number)

    def end_walk(self) -> list[Walk]:
        for process in self.processes():
            record = self._walks / f"{process}.json"
            record.unlink(missing_ok=True)
            os.kill(process, signal.SIGUSR2)
            wait_for(record.exists)
        return [read_walk(path) for path in sorted(self._walks.glob("*.json"))]


def drain(up: subprocess.Popen[str]) -> None:
    """Read everything that is printed, because a full pipe would block the process."""
    with contextlib.suppress(ValueError):  # closed at the end
        for _ in up.stdout or ():
            pass


def read_walk(path: Path) -> Walk:
    record = json.loads(path.read_text())
    calls = sorted(record["calls"])
    files, callers = tuple(file for _, file, _ in calls), tuple(caller for _, _, caller in calls)
    return Walk(" ".join(record["command"]), files, callers)


def wait_for(ready: Any) -> None:  # noqa: ANN401
    until = time.monotonic() + WALK_SECONDS
    while not ready():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.05)


def walk_of_add(octavo: Instance, report: Path) -> list[Walk]:
    octavo.get("/")
    octavo.leave_out_background()
    events = octavo.follow_events()
    octavo.begin_walk()
    octavo.command("add", str(report))
    while b"document" not in events.readline():
        pass
    wait_for(lambda: "data-document=" in octavo.get("/"))
    return [walk for walk in octavo.end_walk() if walk.command in {"add", "web"}]


def walk_of_processing(octavo: Instance) -> list[Walk]:
    """Everything that follows from the report, until no job is left."""

    def done() -> bool:
        jobs = json.loads(octavo.command("jobs", "ls", "--json", "--limit", "100"))["items"]
        return all(job["status"] not in {"queued", "processing"} for job in jobs)

    wait_for(done)
    (document,) = json.loads(octavo.get("/api/v1/documents"))["items"]
    octavo.get(f"/api/v1/documents/{document['id']}/markdown?download=true")
    return octavo.end_walk()


def walk_of_convert(octavo: Instance, invoice: Path, folder: Path) -> list[Walk]:
    octavo.begin_walk()
    octavo.command("convert", str(invoice), "--mapping", "invoice_v1", "--out", str(folder))
    return [walk for walk in octavo.end_walk() if walk.command in {"convert", "web", "worker"}]


def files_of(walks: list[Walk]) -> set[str]:
    return {file for walk in walks for file in walk.files}


def pairs_of(walks: list[Walk]) -> set[str]:
    return {
        f"{package_of(caller)} -> {package_of(file)}: {caller} -> {file}"
        for walk in walks
        for caller, file in zip(walk.callers, walk.files, strict=True)
        if caller and package_of(caller) != package_of(file)
    }


def describe(name: str, walks: list[Walk]) -> str:
    calls = [file for walk in walks for file in walk.files]
    packages = sorted({package_of(file) for file in calls})
    crossings = [crossing for walk in walks for crossing in walk.crossings]
    changes = sum(walk.changes for walk in walks)
    return (
        f"{name}: {len(calls)} functions, {len(set(calls))} files, {len(packages)} packages ({', '.join(packages)}), "
        f"{len(set(crossings))} pairs of packages, {len(crossings)} calls across, {changes} changes with returns"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("invoice", type=Path)
    parser.add_argument("--project", type=Path, default=Path(__file__).parents[1], help="the checkout to trace")
    parser.add_argument("--files", action="store_true", help="list the files and the pairs of packages too")
    options = parser.parse_args()
    project = options.project.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        octavo = Instance(folder, project / ".venv/bin/octavo", project / "src/octavo")
        with octavo.running():
            added = walk_of_add(octavo, options.report)
            processed = walk_of_processing(octavo)
            converted = walk_of_convert(octavo, options.invoice, folder / "xml")
    own = sorted(files_of(converted) - files_of(added) - files_of(processed))
    print(describe("octavo add", added))
    print(describe("octavo convert", converted))
    print("own code of octavo convert:", ", ".join(sorted(set(map(package_of, own)))))
    if options.files:
        print("", *sorted(files_of(added)), "", *own, sep="\n")
        print("", *sorted(pairs_of(added)), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
