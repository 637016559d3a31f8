"""A book of 500 pages through the running product, offline: against its parser and its embedding model alone.

`python -m benchmarks.book [PAGES]`. The book is made of sentences from this project's own documentation, in any order,
500 words a page. Bare is liteparse over the whole file and the embedding model over windows that were cut before, with
a thread for each processor, in the same run. The product reads, saves, splits, describes and indexes it, and stores all
of it. On a busy machine only the processor time of both says anything; that of the database is not in it.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import liteparse
import numpy as np
import psutil
import psycopg

from benchmarks.corpus import watched, worker_of
from benchmarks.uploads import Client, sign_in
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.language import Embedder
from tests.support.instance import instance_in
from tests.support.pdf import Bookmark, Pdf, Words, paragraph
from tests.support.postgres import open_folder

PAGES, WORDS_A_PAGE, WORDS_A_LINE, PAGES_A_CHAPTER = 500, 500, 12, 20
GOAL_RATIO, GOAL_SECONDS, GOAL_MEMORY = 1.5, 60, 1536
STAGES = """
    SELECT CASE WHEN part = '' THEN stage ELSE stage || ' (parts)' END AS name,
           sum(extract(epoch FROM finished_at - started_at))
    FROM job_stages GROUP BY name ORDER BY min(finished_at)"""
_liteparse: Any = liteparse  # has no types


def sentences() -> list[str]:
    texts = [path.read_text() for path in sorted(Path("docs").rglob("*.md"))]
    plain = (re.sub(r"[^\x20-\x7e]|[`*|#>\[\]]", " ", text.replace("\n", " ")) for text in texts)
    found = (" ".join(one.split()) for text in plain for one in re.split(r"(?<=[.!?])\s+", text))
    return [one for one in found if 6 <= len(one.split()) <= 40]


def write_book(pages: int) -> bytes:
    chance, known = random.Random(1), sentences()
    drawn = (word for _ in iter(int, 1) for word in chance.choice(known).split())
    made: list[list[Words]] = []
    for number in range(pages):
        words = [next(drawn) for _ in range(WORDS_A_PAGE)]
        lines = [" ".join(words[start : start + WORDS_A_LINE]) for start in range(0, len(words), WORDS_A_LINE)]
        head = (
            [Words(f"Chapter {number // PAGES_A_CHAPTER + 1}", top=70, size=20)] if not number % PAGES_A_CHAPTER else []
        )
        made.append([*head, *paragraph(lines, 110, size=10)])
    chapters = range(0, pages, PAGES_A_CHAPTER)
    return Pdf(made, [Bookmark(1, f"Chapter {number}", page) for number, page in enumerate(chapters, 1)]).write()


class Spent(NamedTuple):
    """Seconds by the clock, and of processors."""

    clock: float
    processors: float

    def __add__(self, other: Spent) -> Spent:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Spent(self.clock + other.clock, self.processors + other.processors)


def spent(work: Callable[[], object]) -> Spent:
    clock, processors = time.monotonic(), time.process_time()
    work()
    return Spent(time.monotonic() - clock, time.process_time() - processors)


def parse_bare(book: bytes) -> Spent:
    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        file.write(book)
        file.flush()
        options = {"ocr_enabled": False, "output_format": "markdown", "max_pages": 10**6, "quiet": True}
        parser = _liteparse.LiteParse(**options, extract_blocks=True)
        return spent(lambda: parser.parse(file.name))


def embed_bare(texts: list[str]) -> Spent:
    embedder = Embedder()
    windows = [np.array([window], np.int64) for text in texts for window in embedder.windows(text)]
    run = partial(embedder._session.run, None)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return spent(lambda: list(pool.map(run, ({"pieces": window} for window in windows))))


def processor_seconds(worker: int) -> float:
    """Of a worker and of all its children, living and dead."""
    first = psutil.Process(worker)
    return sum(sum(one.cpu_times()[:4]) for one in [first, *first.children(recursive=True)])


def main(pages: int = PAGES) -> int:
    book = write_book(pages)
    print(f"{pages} pages, {pages * WORDS_A_PAGE:,} words, {len(book) >> 10:,} KiB")
    with open_folder() as folder, instance_in(folder, workers=1) as instance:
        instance.start()
        client = Client(instance, sign_in(instance))
        with watched(instance) as peak:
            worker = worker_of(instance)
            began, before = time.monotonic(), processor_seconds(worker)
            made = client.call("POST", "/api/v1/documents", [book], x_upload_filename="book.pdf")
            ended = wait_for(client, str(made["document_id"]))
            ours = Spent(ended - began, processor_seconds(worker) - before)
        info = EmbeddedPostgres(DataFolder(instance.data)).connection_info()
        with psycopg.connect(info) as connection:
            texts = [row[0] for row in connection.execute("SELECT content FROM chunks ORDER BY index")]
            for stage, seconds in connection.execute(STAGES):
                print(f"  {stage:24} {seconds:7.1f} s")
    parsed, embedded = parse_bare(book), embed_bare(texts)
    bare = parsed + embedded
    ratio = ours.clock / bare.clock
    print(f"{'':28} {'clock':>9} {'processors':>11}")
    for name, seconds in (("liteparse", parsed), ("embedding", embedded), ("bare", bare), ("ours", ours)):
        print(f"{name:28} {seconds.clock:7.1f} s {seconds.processors:9.1f} s")
    print(f"{'ratio':28} {ratio:9.2f} {ours.processors / bare.processors:11.2f}")
    print(f"{len(texts)} chunks; the worker with its children had {peak.memory >> 20} MiB at most")
    return 0 if ratio <= GOAL_RATIO and ours.clock < GOAL_SECONDS and peak.memory >> 20 < GOAL_MEMORY else 1


def wait_for(client: Client, document: str) -> float:
    """When all of it was done."""
    while True:
        shown = client.call("GET", f"/api/v1/documents/{document}", [])
        if shown["status"] == "completed" and shown["embeddings_ready"]:
            return time.monotonic()
        if shown["status"] == "failed":
            raise RuntimeError(shown["error"])
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
