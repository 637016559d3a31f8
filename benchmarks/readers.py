"""How long readers wait while many read and some upload: 50 readers, one request every 2 s each, and 3 uploaders.

`python -m benchmarks.readers [SECONDS] [DOCUMENTS]`; 60 s on 10,000 documents unless told otherwise. First one reader
alone, then all of them together with the uploaders, who add a text of 2,000 words each second, which a worker reads
meanwhile. The requests are those of people: the library, a list, a document, a search. The goal: p95 of the readers at
most ten times the p50 of the one, and no request cut or refused. Processor time is printed too, as a busy machine
changes it less.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx
import psutil
import psycopg

from benchmarks.search.library import Passage, Text, add_texts
from benchmarks.uploads import sign_in
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.language import NAME
from octavo.ops.instance import MOST_WEB_PROCESSES
from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder

SECONDS, DOCUMENTS = 60.0, 10_000
READERS, UPLOADERS, PAUSE_SECONDS, UPLOAD_PAUSE_SECONDS = 50, 3, 2.0, 1.0
IDLE_REQUESTS = 80
GOAL = 10.0
DIMENSIONS, WORDS = 384, 120
AT_ONCE = 2000
SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "pa", "ri", "so", "tu", "ve", "xa", "zo", "gri", "sta", "plo")
LOG_CHARACTERS = 3000


@dataclass(slots=True)
class Seen:
    """How long each answer took, in milliseconds, and what went wrong."""

    milliseconds: list[float] = field(default_factory=list[float])
    by_kind: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    failures: list[str] = field(default_factory=list[str])

    def show(self, name: str) -> None:
        p50, p95 = statistics.median(self.milliseconds), quantile(self.milliseconds, 0.95)
        for kind, values in sorted(self.by_kind.items()):
            print(f"    {kind:<36} p50 {statistics.median(values):8.1f} ms   p95 {quantile(values, 0.95):8.1f} ms")
        print(f"{name:<40} p50 {p50:8.1f} ms   p95 {p95:8.1f} ms   n={len(self.milliseconds)}")


def quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def word(chance: random.Random) -> str:
    """One of many thousands; some are far more common than others, as words are."""
    return "".join(chance.choices(SYLLABLES, k=chance.choice((2, 3, 3, 4, 4, 4))))


def text(chance: random.Random) -> Text:
    content = " ".join(word(chance) for _ in range(WORDS))
    return Text(
        " ".join(word(chance) for _ in range(4)), [Passage(content, [chance.random() for _ in range(DIMENSIONS)])]
    )


def fill(instance: Instance, documents: int) -> list[str]:
    """Documents of the local owner, without reading files; returns their ids."""
    chance = random.Random(1)
    info = EmbeddedPostgres(DataFolder(instance.data)).connection_info()
    with psycopg.connect(info, autocommit=True) as connection:
        (owner,) = connection.execute("SELECT id FROM owners WHERE kind = 'local'").fetchone() or (None,)
        assert owner
        for start in range(0, documents, AT_ONCE):
            add_texts(connection, owner, [text(chance) for _ in range(min(AT_ONCE, documents - start))], NAME)
        connection.execute("VACUUM ANALYZE")
        return [str(row[0]) for row in connection.execute("SELECT id FROM documents LIMIT 1000").fetchall()]


def path(chance: random.Random, ids: Sequence[str]) -> str:
    return chance.choice(
        (
            "/library",
            "/api/v1/documents?limit=50",
            f"/api/v1/documents/{chance.choice(ids)}",
            f"/api/v1/search?q={word(chance)}+{word(chance)}&mode=text",
        )
    )


async def read(client: httpx.AsyncClient, seen: Seen, wanted: str) -> None:
    started = time.perf_counter()
    try:
        answer = await client.get(wanted)
    except httpx.HTTPError as error:
        seen.failures.append(f"{wanted}: {error!r}")
        return
    seen.milliseconds.append(1000 * (time.perf_counter() - started))
    seen.by_kind.setdefault(wanted.partition("?")[0][:20], []).append(seen.milliseconds[-1])
    if answer.status_code != 200:
        seen.failures.append(f"{wanted}: {answer.status_code}")


async def reader(client: httpx.AsyncClient, ids: Sequence[str], seen: Seen, number: int, until: float) -> None:
    chance = random.Random(number)
    await asyncio.sleep(chance.random() * PAUSE_SECONDS)
    while time.perf_counter() < until:
        started = time.perf_counter()
        await read(client, seen, path(chance, ids))
        await asyncio.sleep(max(0.0, PAUSE_SECONDS - (time.perf_counter() - started)))


async def uploader(client: httpx.AsyncClient, seen: Seen, number: int, until: float) -> None:
    chance = random.Random(1000 + number)
    while time.perf_counter() < until:
        body = {"text": " ".join(word(chance) for _ in range(2000)), "title": word(chance)}
        started = time.perf_counter()
        try:
            answer = await client.post("/api/v1/documents", json=body)
        except httpx.HTTPError as error:
            seen.failures.append(repr(error))
            continue
        seen.milliseconds.append(1000 * (time.perf_counter() - started))
        if answer.status_code != 202:
            seen.failures.append(str(answer.status_code))
        await asyncio.sleep(max(0.0, UPLOAD_PAUSE_SECONDS - (time.perf_counter() - started)))


def open_client(address: str, session: str) -> httpx.AsyncClient:
    """One for all, with a connection for each: making a client takes long enough to be measured."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    cookies = {"octavo_session": session}
    return httpx.AsyncClient(base_url=address, cookies=cookies, limits=limits, timeout=60, trust_env=False)


def processor_seconds(instance: Instance) -> dict[str, float]:
    """Of each kind of process of the installation."""
    named = {pid: name for name, pid in instance.process_ids().items()}
    spent: dict[str, float] = defaultdict(float)
    database = psutil.Process(instance.process_ids()["database"])
    for process in (*instance.everything(), *database.children()):
        with contextlib.suppress(psutil.Error):
            kind = named.get(process.pid, process.name()).rstrip(" 0123456789")
            spent[kind] += sum(process.cpu_times()[:2])
    return spent


async def measure(instance: Instance, session: str, ids: Sequence[str], seconds: float) -> bool:
    alone, together, uploads = Seen(), Seen(), Seen()
    async with open_client(instance.address, session) as client:
        chance = random.Random(0)
        for _ in range(IDLE_REQUESTS):
            await read(client, alone, path(chance, ids))
        before, started = processor_seconds(instance), time.perf_counter()
        until = started + seconds
        await asyncio.gather(
            *(reader(client, ids, together, number, until) for number in range(READERS)),
            *(uploader(client, uploads, number, until) for number in range(UPLOADERS)),
        )
    alone.show("one reader alone")
    together.show(f"{READERS} readers beside {UPLOADERS} uploaders")
    uploads.show("an upload meanwhile")
    took = time.perf_counter() - started
    for kind, value in sorted(processor_seconds(instance).items()):
        print(f"    processors in use by {kind:<19} {(value - before.get(kind, 0.0)) / took:8.2f}")
    ratio = quantile(together.milliseconds, 0.95) / statistics.median(alone.milliseconds)
    failures = alone.failures + together.failures + uploads.failures
    print(
        f"p95 of the readers by p50 alone: {ratio:.1f} (goal <= {GOAL:.0f}); requests cut or refused: {len(failures)}"
    )
    for failure in failures[:5]:
        print(f"    {failure}")
    return ratio <= GOAL and not failures


def main(seconds: float = SECONDS, documents: int = DOCUMENTS) -> int:
    web = min(MOST_WEB_PROCESSES, os.cpu_count() or 1)
    with open_folder() as folder, instance_in(folder, web=web) as instance:
        instance.start()
        try:
            session, ids = sign_in(instance), fill(instance, documents)
            good = asyncio.run(measure(instance, session, ids, seconds))
        except BaseException:
            print(instance.log.read_text()[-LOG_CHARACTERS:])  # it goes with the folder
            raise
    print(f"{web} web processes, {documents:,} documents: {'reached' if good else 'NOT REACHED'}")
    return 0 if good else 1


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(float(given[0]) if given else SECONDS, int(given[1]) if given[1:] else DOCUMENTS))
