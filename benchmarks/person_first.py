"""How long a paste and a conversion take beside an import of the same owner, against the same on an idle machine.

`python -m benchmarks.person_first [FILES]`; 2,000 small notes unless told otherwise. The import runs as `octavo add`,
and pastes follow each other while its notes wait. Goals: a paste is readable within three times the idle time or
5 s, and a conversion is done within 15 s.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.uploads import Client, sign_in
from tests.support.instance import Instance, instance_in
from tests.support.invoices import make_invoice
from tests.support.postgres import open_folder

FILES = 2000
IDLE_ROUNDS = 5
PAUSE_SECONDS = 0.02
PATIENCE_SECONDS = 3600
JSON = "application/json"


def wait_for(work: Callable[[], bool]) -> float:
    started = time.perf_counter()
    while not work():
        if time.perf_counter() - started > PATIENCE_SECONDS:
            raise RuntimeError("it never came")
        time.sleep(PAUSE_SECONDS)
    return time.perf_counter() - started


def paste(client: Client, number: int) -> float:
    """Seconds from the request until the text can be read."""
    text = f'{{"text": "Ring harbour master {number} about the pilot boat before noon.", "title": "By hand {number}"}}'
    started = time.perf_counter()
    made = client.call("POST", "/api/v1/documents", [text.encode()], content_type=JSON)["document_id"]
    wait_for(lambda: client.call("GET", f"/api/v1/documents/{made}", [])["text_ready"])
    return time.perf_counter() - started


def convert(client: Client, seed: int) -> float:
    """Seconds from the upload of an invoice until its values are there."""
    started = time.perf_counter()
    boundary = "invoice-of-the-benchmark"
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="mapping"\r\n\r\npt_simon_invoice_v1\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="invoice-{seed}.pdf"\r\n'
        "Content-Type: application/pdf\r\n\r\n"
    )
    form = [head.encode(), make_invoice(seed).pdf, f"\r\n--{boundary}--\r\n".encode()]
    kind = f"multipart/form-data; boundary={boundary}"
    made = client.call("POST", "/api/v1/conversions", form, content_type=kind)
    wait_for(lambda: status_of(client, made["id"]) not in {"queued", "processing"})
    return time.perf_counter() - started


def status_of(client: Client, conversion: str) -> str:
    return client.call("GET", f"/api/v1/conversions/{conversion}", [])["status"]


def pending(client: Client) -> int:
    """Counted up to a hundred."""
    return len(client.call("GET", "/api/v1/documents?status=pending&limit=100", [])["items"])


def write_notes(folder: Path, count: int) -> None:
    folder.mkdir()
    for i in range(count):
        text = f"Note {i}. Boat {i * 7 % 97} was moored at berth {i % 31} and took on {i * 13 % 211} crates of nails."
        (folder / f"note-{i:05}.txt").write_text(text)


@contextmanager
def importing(instance: Instance, folder: Path) -> Generator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "octavo", "add", str(folder)]
    environment: Any = instance.environment
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def measure(instance: Instance, folder: Path, files: int) -> None:
    client = Client(instance, sign_in(instance))
    paste(client, -1)  # the first file starts the sandbox
    convert(client, 1)
    idle = [paste(client, 1000 + number) for number in range(IDLE_ROUNDS)]
    idle_conversion = convert(client, 2)
    wait_for(lambda: pending(client) == 0)
    write_notes(folder, files)
    started = time.perf_counter()
    with importing(instance, folder):
        wait_for(lambda: pending(client) >= min(100, files // 6))
        busy = [paste(client, 2000)]
        conversion = convert(client, 3)
        while pending(client) >= 20:
            busy.append(paste(client, 2000 + len(busy)))
            time.sleep(1)
        took = wait_for(lambda: pending(client) == 0) + time.perf_counter() - started
    report(files, idle, busy, (idle_conversion, conversion), took)


def report(files: int, idle: list[float], busy: list[float], conversions: tuple[float, float], took: float) -> None:
    quiet, loud, worst = statistics.median(idle), statistics.median(busy), max(busy)
    print(f"paste on an idle machine    median {quiet:6.2f} s   n={len(idle)}")
    print(f"paste beside {files:,} files    median {loud:6.2f} s   worst {worst:6.2f} s   n={len(busy)}")
    print(f"ratio of the medians        {loud / quiet:6.1f}   goal: 3, or 5 s")
    print(f"conversion       idle {conversions[0]:6.2f} s   beside the import {conversions[1]:6.2f} s, goal: 15 s")
    print(f"the import took             {took:6.0f} s, {files / took:.1f} files/s")


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    with open_folder() as root, instance_in(root) as instance:
        instance.start()
        measure(instance, root / "notes", files)


if __name__ == "__main__":
    main()
