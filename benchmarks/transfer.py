"""Exports a filled library, kills the export and the import on the way, and compares the two libraries.

    python -m benchmarks.transfer --documents 1000 [--corpus FOLDER]

Starts two installations in temporary folders. The first gets mixed documents: short texts in six formats, and the files
of a corpus, if one is named. The time to process them is not part of the measurement.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder
from tools.compare_libraries import compare, open_library

WORDS = (
    *("harbour", "keeper", "lamp", "boat", "fee", "quay", "rope", "anchor", "pilot"),
    *("tide", "chart", "crane", "lease", "pier", "ferry", "cargo", "signal", "fog"),
)
FORMATS: dict[str, Callable[[str, str], str]] = {
    "md": lambda title, text: f"# {title}\n\n{text}\n",
    "txt": lambda title, text: f"{title}\n\n{text}\n",
    "html": lambda title, text: (
        f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>"
    ),
    "csv": lambda title, text: "name,words\n" + "\n".join(f"{title} {n},{one}" for n, one in enumerate(text.split())),
    "json": lambda title, text: json.dumps({"title": title, "text": text}),
    "eml": lambda title, text: (
        f"From: a@example.org\nTo: b@example.org\nSubject: {title}\nDate: Tue, 3 Mar 2026 09:00:00 +0000\n\n{text}\n"
    ),
}


def write_documents(folder: Path, number: int, corpus: Path | None) -> None:
    chance = random.Random(7)
    found = (
        [
            one
            for one in sorted(corpus.rglob("*"))
            if one.is_file() and "bombs" not in one.parts and one.stat().st_size < 1 << 19
        ]
        if corpus
        else []
    )
    for place, source in enumerate(found[: number // 5]):
        (folder / f"{place:04d}-{source.name}").write_bytes(source.read_bytes())
    for place in range(number - len(found[: number // 5])):
        ending = list(FORMATS)[place % len(FORMATS)]
        text = ". ".join(" ".join(chance.choices(WORDS, k=9)).capitalize() for _ in range(chance.randint(5, 15)))
        (folder / f"note-{place:04d}.{ending}").write_text(FORMATS[ending](f"Note {place}", text))


def run_killed(instance: Instance, arguments: list[str], kills: Iterator[float]) -> float:
    """Run a command, kill it with SIGKILL after each of these times, and run it to its end. Returns the seconds."""
    took = 0.0
    for seconds in kills:
        began = time.monotonic()
        process = start(instance, arguments)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            print(f"killed after {seconds:.1f} s: octavo {arguments[0]}")
        took += time.monotonic() - began
    began = time.monotonic()
    process = start(instance, arguments)
    most = 0
    while process.poll() is None:
        most = max(most, memory_of(process.pid))
        time.sleep(0.05)
    if process.returncode:
        sys.exit(f"octavo {arguments[0]} failed")
    print(f"most memory of octavo {arguments[0]}: {most >> 20} MB")
    return took + time.monotonic() - began


def start(instance: Instance, arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "octavo", *arguments], env=instance.environment)


def memory_of(process: int) -> int:
    try:
        return psutil.Process(process).memory_info().rss
    except psutil.Error:
        return 0


def make_key(instance: Instance) -> str:
    made = instance.octavo("keys", "add", "transfer", "--scope", "write", "--json")
    return str(json.loads(made.stdout)["key"])


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--documents", type=int, default=1000)
    options.add_argument("--corpus", type=Path)
    options.add_argument("--kill-after", type=float, nargs=2, default=[4.0, 6.0], help="Seconds until each kill.")
    given = options.parse_args()
    with open_folder() as folder, instance_in(folder / "one") as one, instance_in(folder / "other") as other:
        (folder / "files").mkdir()
        write_documents(folder / "files", given.documents, given.corpus)
        one.start()
        other.start()
        one.octavo("add", str(folder / "files"), "--wait")
        out = str(folder / "export")
        exported = run_killed(one, ["export", out], iter(given.kill_after))
        imported = run_killed(other, ["import", out], iter(given.kill_after))
        again = run_killed(other, ["import", out], iter(()))
        libraries = [open_library(each.address, make_key(each)) for each in (one, other)]
        found = list(compare(*libraries))
        print("\n".join(found[:20]))
        times = f"export {exported:.1f} s, import {imported:.1f} s, again {again:.1f} s"
        print(f"{len(libraries[0].documents())} documents: {times}")
        print(f"{len(found)} differences")
        return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
