"""How the work of a person and of the installation gets slower as the library grows from 1,000 to 1,000,000 documents.

`python -m benchmarks.scale.library [DOCUMENTS ...]`. A whole installation (`octavo up`) is filled with synthetic
documents of two chunks (`benchmarks.scale.filling`): half of them belong to one large account, 500 to an account that
does not grow, and the others to accounts of 2,000 documents. All requests go through the web server, for the large and
for the fixed account. So the figures of the fixed account show what the documents of others cost.

For each size: p50 and p95 by the clock, the mean processor time of the database and of the web server and workers, and
the p95 of both together, which a busy machine changes less. 1,000,000 documents take 25 GB of disk and half an hour to
fill. The data is written below OCTAVO_SCALE_FOLDER, or the folder for temporary files, and deleted at the end.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

import httpx
import psutil
import psycopg

from benchmarks.backup import client_of
from benchmarks.scale.filling import Filling
from benchmarks.search.speed import Library
from octavo.core.types import new_id
from octavo.database import connect
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.owners import Caller
from octavo.owners.callers import make_key
from tests.support.instance import Instance, instance_in
from tests.support.processes import THE_USUAL_WAY, wait_until

SIZES = (1_000, 10_000, 100_000, 1_000_000)
FIXED, ROUNDS, WARM, LONGEST_SECONDS, NOTES, SENTENCES = 500, 20, 2, 8, 5, 16
GOAL_MS = 100
MOST_BACKED_UP = 100_000
# `{number}` is of a document of the account, another one in each round. `{common}` are words that many chunks have.
LISTS = {
    "library page": "/library",
    "library page, by title": "/library?sort=title",
    "library page, by date": "/library?sort=-date",
    "library page, by amount": "/library?sort=-amount",
    "library page, words of a title": "/library?q={name}",
    "library page, kind": "/library?kind=invoice",
    "library page, sender": "/library?sender={sender}",
    "library page, tag": "/library?tag={tag}",
    "library page, collection": "/library?collection=Quay",
    "library page, language": "/library?language=de",
    "library page, dates": "/library?after=2015&before=2016",
    "library page, needs you": "/library?status=needs_you",
    "library page, kind, sender and amount": "/library?kind=invoice&sender={sender}&amount_min=100",
    "API list": "/api/v1/documents?limit=50",
    "API list, kind and tag": "/api/v1/documents?limit=50&kind=invoice&tag={tag}",
}
SEARCHES = {
    "search page, common words": "/search?q={common}",
    "words: a rare word": "/api/v1/search?mode=text&q=n{number}",
    "words: a common word": "/api/v1/search?mode=text&q={one}",
    "words: three common words": "/api/v1/search?mode=text&q={common}",
    "words: a phrase": '/api/v1/search?mode=text&q="notice+period"',
    "words: three common words of one kind": "/api/v1/search?mode=text&q={common}+type:invoice",
    "meaning": "/api/v1/search?mode=semantic&q={common}+n{number}",
    "both: a rare word": "/api/v1/search?q=n{number}",
    "both: three common words": "/api/v1/search?q={common}",
    "both: a phrase": '/api/v1/search?q="notice+period"',
}


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    client: httpx.Client
    first: int


@dataclass(slots=True)
class Figures:
    """Milliseconds: of each call by the clock and by the processors, and of processor time of all calls."""

    took: list[float] = field(default_factory=list[float])
    spent: list[float] = field(default_factory=list[float])
    database: float = 0.0
    octavo: float = 0.0

    def line(self) -> str:
        many = len(self.took)
        spent = _high(self.spent) if self.spent else 0
        late = " (!)" if spent > GOAL_MS else ""
        return (
            f"{statistics.median(self.took):,.0f} | {_high(self.took):,.0f} | {self.database / many:,.1f} | "
            f"{self.octavo / many:,.1f} | {f'{spent:,.0f}{late}' if spent else ''}"
        )


def _high(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]


class Processors:
    """The processor time of an installation: of the database, and of the web server and workers."""

    def __init__(self, instance: Instance) -> None:
        pids = instance.process_ids()
        self._database = pids.get("database")
        self._octavo = [pid for name, pid in pids.items() if name != "database"]
        self._clocks = list[int]()

    def read(self) -> tuple[float, float]:
        return _spent(self._database), sum(map(_spent, self._octavo))

    @contextmanager
    def counting(self, figures: Figures) -> Generator[None]:
        database, octavo = self.read()
        yield
        after = self.read()
        figures.database += (after[0] - database) * 1000
        figures.octavo += (after[1] - octavo) * 1000

    def watch(self) -> None:
        """Find the processes whose time `exact` adds up."""
        self._clocks = list[int]()
        for pid in (self._database, *self._octavo):
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                # The number of the clock of another process, as the kernel makes it.
                self._clocks += [~one.pid << 3 | 2 for one in [process, *process.children(recursive=True)]]

    def exact(self) -> float:
        """Milliseconds, to the microsecond: of the processes that ran when `watch` was called."""
        total = 0
        for clock in self._clocks:
            with suppress(OSError):
                total += time.clock_gettime_ns(clock)
        return total / 1e6


def _spent(pid: int | None) -> float:
    """Seconds of a process, its children and those of them that have ended."""
    total = 0.0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in [process, *process.children(recursive=True)]:
            with suppress(psutil.Error):
                times = one.cpu_times()
                total += sum(times[:4])
    return total


class Measuring:
    def __init__(self, instance: Instance, documents: int) -> None:
        self.instance, self.documents = instance, documents
        self.processors, self.draw = Processors(instance), Library().draw
        print(f"\n{documents:,} documents; p95 by the clock and of processor time, in milliseconds\n")
        print(
            "| | account | p50 | p95 | database | web, workers | p95, processor |\n|---|---|---:|---:|---:|---:|---:|"
        )

    def pages(self, account: Account) -> None:
        for name, path in {**LISTS, **SEARCHES}.items():
            figures = Figures()
            self._repeat(figures, lambda number, path=path: _get(account, _fill_in(path, account.first + number)))
            self._print(name, account.name, figures)

    def asks(self, account: Account) -> None:
        figures = Figures()

        def ask(number: int) -> None:
            question = f"What is the notice period of number n{account.first + number}?"
            account.client.post("/api/v1/ask", json={"question": question}).raise_for_status()

        self._repeat(figures, ask, rounds=8)
        self._print("ask", account.name, figures)

    def notes(self, account: Account, info: str) -> None:
        """From the call that adds a note until its text is found, and the job that connects it."""
        adding, connecting = Figures(), Figures()
        for number in range(NOTES):
            word = f"w{new_id().hex[-12:]}"
            with self.processors.counting(adding):
                begun = time.perf_counter()
                body = f"{write_note(self.draw)} Reference {word}.".encode()
                answer = account.client.post(
                    "/api/v1/documents", content=body, headers={"x-upload-filename": f"{word}.md"}
                )
                document = answer.raise_for_status().json()["document_id"]
                while not account.client.get(f"/api/v1/search?mode=text&q={word}").raise_for_status().json()["items"]:
                    time.sleep(0.02)
                adding.took.append((time.perf_counter() - begun) * 1000)
            with psycopg.connect(info, autocommit=True) as connection:
                wait_until(partial(_comparison, connection, document), "the note is connected")
                connecting.took.append((_comparison(connection, document) or 0) * 1000)
            if number == 0:
                adding, connecting = Figures(), Figures()  # imports of the workers
        self._print("add a note until it is found", account.name, adding)
        self._print("connect a note (the job)", account.name, connecting)

    def command(self, name: str, *arguments: str) -> None:
        figures = Figures()
        with self.processors.counting(figures):
            begun, before = time.perf_counter(), _spent_by_children()
            done = self.instance.octavo(*arguments)
            figures.took.append((time.perf_counter() - begun) * 1000)
        figures.octavo += (_spent_by_children() - before) * 1000
        if done.returncode:
            print(done.stdout[-3000:], done.stderr[-1000:])
        self._print(name, "", figures)

    def sizes(self, info: str) -> None:
        with psycopg.connect(info) as connection:
            row = connection.execute("SELECT pg_database_size(current_database()) / 1e6").fetchone()
            largest = connection.execute(
                "SELECT relname, pg_total_relation_size(oid) / 1e6, pg_indexes_size(oid) / 1e6 FROM pg_class "
                "WHERE relkind = 'r' ORDER BY 2 DESC LIMIT 12"
            ).fetchall()
        memory = {name: _memory(pid) / 1e6 for name, pid in self.instance.process_ids().items()}
        tables = ", ".join(f"{name} {size:,.0f} (indexes {indexes:,.0f})" for name, size, indexes in largest)
        print(f"\ndatabase {row[0] if row else 0:,.0f} MB; of it {tables}")
        print("memory (PSS), MB: " + ", ".join(f"{name} {size:,.0f}" for name, size in memory.items()), flush=True)

    def _repeat(self, figures: Figures, call: Callable[[int], object], rounds: int = ROUNDS) -> None:
        for number in range(WARM):
            call(number)
        ended = time.monotonic() + LONGEST_SECONDS
        self.processors.watch()
        with self.processors.counting(figures):
            for number in range(WARM, WARM + rounds):
                begun, before = time.perf_counter(), self.processors.exact()
                call(number)
                figures.took.append((time.perf_counter() - begun) * 1000)
                figures.spent.append(self.processors.exact() - before)
                if time.monotonic() > ended and number > WARM + 4:
                    break

    def _print(self, name: str, account: str, figures: Figures) -> None:
        print(f"| {name} | {account} | {figures.line()} |", flush=True)


def _spent_by_children() -> float:
    """Of the commands that this process ran, and of the process that forks them."""
    times = psutil.Process().cpu_times()
    return (
        times.children_user
        + times.children_system
        + sum(sum(one.cpu_times()[:4]) for one in psutil.Process().children() if "preloaded" in " ".join(one.cmdline()))
    )


def write_note(draw: Callable[[int], list[str]]) -> str:
    """Two chunks of invented words, in sentences."""
    sentences = [" ".join(draw(SENTENCES)).capitalize() + "." for _ in range(2 * SENTENCES)]
    return (
        "# "
        + sentences[0]
        + "\n\n"
        + "\n\n".join(" ".join(sentences[at : at + 4]) for at in range(0, len(sentences), 4))
    )


def _get(account: Account, path: str) -> None:
    account.client.get(path, follow_redirects=True).raise_for_status()


def _fill_in(path: str, number: int) -> str:
    words = WORDS
    values = {"number": number, "name": words[100 + number * 7919 % 50_000], "tag": words[2000 + number % 40]}
    ranks = [20 + number % 20, 45 + number % 20, 70 + number % 20]
    common = "+".join(words[rank] for rank in ranks)
    return path.format(sender=words[1000 + number % 500], one=words[ranks[0]], common=common, **values)


def _comparison(connection: psycopg.Connection, document: str) -> float | None:
    row = connection.execute(
        "SELECT extract(epoch FROM completed_at - started_at)::float8 FROM jobs "
        "WHERE document_id = %s AND kind = 'detect_connections' AND status = 'complete'",
        [document],
    ).fetchone()
    return row[0] if row else None


def _memory(pid: int | None) -> float:
    total = 0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in [process, *process.children(recursive=True)]:
            with suppress(psutil.Error):
                total += one.memory_full_info().pss
    return total


def add_fixed_account(info: str) -> tuple[UUID, str]:
    """The account that does not grow, and a key of it."""
    owner, user = new_id(), new_id()
    with psycopg.connect(info, autocommit=True) as connection:
        connection.execute("INSERT INTO owners (id, kind) VALUES (%s, 'user')", [owner])
        connection.execute(
            "INSERT INTO users (id, email, owner_id) VALUES (%s, 'fixed@example.org', %s)", [user, owner]
        )
        connection.execute("INSERT INTO memberships (owner_id, user_id, role) VALUES (%s, %s, 'owner')", [owner, user])

    async def make() -> str:
        async with await connect(info) as connection:
            caller = Caller(owner, "user", user, "owner", "admin", "session")
            return (await make_key(connection, caller, name="fixed", scope="admin")).key

    return owner, asyncio.run(make())


def main(sizes: tuple[int, ...]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="octavo-scale-", dir=os.environ.get("OCTAVO_SCALE_FOLDER")))
    folder.chmod(0o755)
    try:
        with instance_in(folder, requests_per_minute=10**9) as instance:
            measure(instance, folder, sizes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(instance: Instance, folder: Path, sizes: tuple[int, ...]) -> None:
    instance.start()
    database = EmbeddedPostgres(DataFolder(instance.data))
    with client_of(instance) as large:
        answer = large.post(
            "/api/v1/documents", content=write_note(Library().draw).encode(), headers={"x-upload-filename": "crane.md"}
        )
        pattern = answer.raise_for_status().json()["document_id"]
        info = database.connection_info()
        with psycopg.connect(info, autocommit=True) as connection:
            wait_until(lambda: _comparison(connection, pattern), "the pattern is processed")
        owner, key = add_fixed_account(info)
        headers = {"authorization": f"Bearer {key}"}
        filling = Filling(info, UUID(pattern), owner)
        filling.prepare()
        WORDS.extend(filling.words)
        with httpx.Client(base_url=instance.address, headers=headers, trust_env=False, timeout=600) as fixed:
            large.timeout = httpx.Timeout(600)
            accounts = [Account("large", large, FIXED), Account("fixed", fixed, 0)]
            for size in sizes:
                instance.stop()
                info = database.start()
                begun = time.perf_counter()
                filling.grow(size, FIXED)
                print(f"\nfilled in {time.perf_counter() - begun:,.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
                database.stop()
                begun = time.perf_counter()
                instance.start(prefix=THE_USUAL_WAY)
                started = time.perf_counter() - begun
                measuring = Measuring(instance, size)
                print(f"| start of octavo up | | {started * 1000:,.0f} | | | | |", flush=True)
                for account in accounts:
                    measuring.pages(account)
                    measuring.asks(account)
                    measuring.notes(account, info)
                measuring.command("doctor", "doctor", "--json")
                if size <= MOST_BACKED_UP:
                    measuring.command("backup", "backup", str(folder / f"backup-{size}"), "--json")
                    shutil.rmtree(folder / f"backup-{size}")
                measuring.sizes(info)
                print(f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors", flush=True)


WORDS = list[str]()

if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
