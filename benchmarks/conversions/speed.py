"""How many small invoices a second become XML: `python -m benchmarks.conversions.speed [INVOICES]`.

Through the running product, as `octavo up` starts it: each is sent to the web server, converted by the worker, and read
back. Two rates are shown: by the clock, which says little while others use the machine, and what two processors give
by the seconds that all processes of the installation used, whose sum is shown by part.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from http.client import HTTPConnection
from pathlib import Path

import psutil
import psycopg

from benchmarks.uploads import sign_in
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.storage import open_bucket
from tests.support.instance import Instance, instance_in
from tests.support.invoices import make_invoice
from tests.support.postgres import open_folder

INVOICES, CLIENTS, PROCESSORS = 1000, 4, 2
GOAL = 20
FIRST = 1_000_000  # whose layouts nobody looked at
WARM = 20
POLL_SECONDS = 0.25
MAPPING = "invoice_v1"
LEFT = b"SELECT count(*) FROM jobs WHERE kind = 'convert' AND status IN ('queued', 'processing')"
RESULTS = b"""
    SELECT j.status, c.revision, c.sha256, o.bytes FROM conversions c JOIN jobs j USING (id)
    LEFT JOIN conversion_files f ON f.conversion_id = c.id AND f.kind = 'result_xml'
    LEFT JOIN objects o ON o.key = f.key"""


def send(instance: Instance, session: str, bodies: Sequence[bytes]) -> None:
    """One client on one connection; each invoice is a call."""
    connection = HTTPConnection("127.0.0.1", int(instance.environment["OCTAVO_PORT"]), timeout=60)
    headers = {"Cookie": f"octavo_session={session}", "X-Upload-Filename": "invoice.pdf"}
    for body in bodies:
        connection.request("POST", f"/api/v1/conversions?mapping={MAPPING}", body, headers)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 202:
            raise RuntimeError(f"{answer.status} {said[:500]!r}")
    connection.close()


def send_all(instance: Instance, session: str, bodies: Sequence[bytes]) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        shares = [pool.submit(send, instance, session, bodies[number::CLIENTS]) for number in range(CLIENTS)]
        for one in shares:
            one.result()


def wait_for_all(info: str) -> None:
    with psycopg.connect(info, autocommit=True) as connection:
        while (row := connection.execute(LEFT).fetchone()) and row[0]:
            time.sleep(POLL_SECONDS)


def processor_seconds(instance: Instance) -> dict[str, float]:
    """By part, with what its ended children used."""
    own = {pid: name for name, pid in instance.process_ids().items() if pid}
    used: defaultdict[str, float] = defaultdict(float)
    database = psutil.Process(instance.process_ids()["database"] or 0).children(recursive=True)
    for process in {*instance.everything(), *database}:
        part = next((own[one.pid] for one in [process, *process.parents()] if one.pid in own), "keeper")
        if part.startswith("worker"):
            part = "sandbox" if "octavo.sandbox.parent" in process.cmdline() else "worker"
        used[part] += sum(process.cpu_times()[:4])
    return used


async def storage_seconds(folder: Path, bodies: Sequence[bytes], result: bytes) -> float:
    """Processor time of what a conversion stores and reads, measured apart: it is a part of web and worker."""
    async with aclosing(open_bucket((folder / "bucket").as_uri())) as bucket:
        began = time.process_time()
        for number, body in enumerate(bodies):
            await bucket.put(f"conversions/{number}/source", body)
            await bucket.read(f"conversions/{number}/source")
            await bucket.put(f"conversions/{number}/1/result.xml", result)
        return (time.process_time() - began) / len(bodies)


def check(info: str, bodies: Sequence[bytes]) -> None:
    with psycopg.connect(info) as connection:
        rows = connection.execute(RESULTS).fetchall()
    if len(rows) != len(bodies) or len({row[2] for row in rows}) != len(bodies):
        raise RuntimeError(f"{len(bodies)} were sent, {len(rows)} are there")
    if wrong := [row for row in rows if row[:2] != ("complete", 1) or not row[3]]:
        raise RuntimeError(f"{len(wrong)} are not converted, such as {wrong[0]}")


def report(used: dict[str, float], seconds: float, sending: float, count: int) -> bool:
    each = {part: 1000 * spent / count for part, spent in used.items()}
    whole = sum(each.values())
    rate = PROCESSORS * 1000 / whole
    print(f"{count} invoices in {seconds:.1f} s: {count / seconds:.1f} a second; all were sent after {sending:.1f} s")
    for part, spent in sorted(each.items(), key=lambda one: -one[1]):
        print(f"  {part:10} {spent:6.1f} ms of processor time for each")
    print(f"  {'all':10} {whole:6.1f} ms: {PROCESSORS} processors give {rate:.1f} a second (goal {GOAL})")
    return rate >= GOAL


def main(count: int = INVOICES) -> int:
    bodies = [make_invoice(FIRST + number).pdf for number in range(count + WARM)]
    with open_folder() as folder, instance_in(folder, requests_per_minute=1_000_000) as instance:
        instance.start()
        info = EmbeddedPostgres(DataFolder(instance.data)).connection_info()
        session = sign_in(instance)
        send_all(instance, session, bodies[:WARM])
        wait_for_all(info)
        before, began = processor_seconds(instance), time.perf_counter()
        send_all(instance, session, bodies[WARM:])
        sending = time.perf_counter() - began
        wait_for_all(info)
        seconds = time.perf_counter() - began
        used = {part: spent - before.get(part, 0) for part, spent in processor_seconds(instance).items()}
        check(info, bodies)
        reached = report(used, seconds, sending, count)
        apart = asyncio.run(storage_seconds(folder, bodies[:200], b"<x/>" * 500))
        print(f"  of which storage takes {1000 * apart:.1f} ms, measured apart")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
