"""How fast files come in through the running web server, against plain hashing and writing, and what memory that takes.

`python -m benchmarks.uploads [MiB] [rounds]`; 1 GiB and five rounds unless told otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil

from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder

ROUNDS = 5
MEBIBYTES = 1024
BLOCK = os.urandom(1 << 20)
BOUNDARY = "----the-boundary-of-the-benchmark"
SMALL_FILES, SMALL_CLIENTS, SMALL_BYTES = 1000, 8, 4000
SAMPLE_SECONDS = 0.01
LOG_CHARACTERS = 3000
GOAL_RATIO, GOAL_MEMORY = 0.60, 150 << 20


@dataclass(slots=True)
class Client:
    """One connection that stays open, as browsers and programs keep theirs."""

    instance: Instance
    session: str
    connection: HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = HTTPConnection("127.0.0.1", int(self.instance.environment["OCTAVO_PORT"]), timeout=600)

    def call(self, method: str, path: str, blocks: list[bytes], **headers: str) -> Any:  # noqa: ANN401 - JSON
        self.connection.putrequest(method, path)
        self.connection.putheader("Cookie", f"octavo_session={self.session}")
        self.connection.putheader("Content-Length", str(sum(map(len, blocks))))
        for name, value in headers.items():
            self.connection.putheader(name.replace("_", "-"), value)
        self.connection.endheaders()
        for block in blocks:
            self.connection.send(block)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {body[:500]!r}")
        return json.loads(body) if body else None

    def put(self, blocks: list[bytes]) -> str:
        """In two steps with the bytes as a raw body."""
        announced = json.dumps({"filename": "a.bin"}).encode()
        ticket = self.call("POST", "/api/v1/uploads", [announced], content_type="application/json")
        self.call("PUT", ticket["put_url"], blocks)
        return self.call("POST", f"/api/v1/uploads/{ticket['upload_id']}/finalize", [])["document_id"]

    def post(self, blocks: list[bytes]) -> str:
        """In one call as a raw body."""
        return self.call("POST", "/api/v1/documents", blocks, x_upload_filename="a.bin")["document_id"]

    def post_form(self, blocks: list[bytes]) -> str:
        """In one call as a form, as browsers send it."""
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'.encode()
        form = [head, *blocks, f"\r\n--{BOUNDARY}--\r\n".encode()]
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        return self.call("POST", "/api/v1/documents", form, content_type=kind)["document_id"]

    def purge(self, document: str) -> None:
        self.call("DELETE", f"/api/v1/documents/{document}?purge=true", [])


def sign_in(instance: Instance) -> str:
    token = instance.sign_in_link().partition("token=")[2]
    connection = HTTPConnection("127.0.0.1", int(instance.environment["OCTAVO_PORT"]))
    kind = {"content-type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/sign-in", f"token={token}", kind)
    cookie = connection.getresponse().getheader("set-cookie") or ""
    connection.close()
    return cookie.partition("octavo_session=")[2].partition(";")[0]


def fresh(mebibytes: int) -> list[bytes]:
    """Never the same twice, so that nothing is a duplicate."""
    return [os.urandom(32) + BLOCK[32:], *([BLOCK] * (mebibytes - 1))]


def show(name: str, values: list[float], unit: str = "s", worst: Callable[[list[float]], float] = max) -> None:
    median = f"median {statistics.median(values):8.3f} {unit}"
    print(f"{name:<50} {median}   worst {worst(values):8.3f} {unit}   n={len(values)}")


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def plain_write(folder: Path, blocks: list[bytes]) -> None:
    """What has to be done in any case: hash, write, make durable."""
    digest = hashlib.sha256()
    path = folder / "plain"
    with path.open("wb") as stream:
        for block in blocks:
            digest.update(block)
            stream.write(block)
        stream.flush()
        os.fsync(stream.fileno())
    path.unlink()


def settle(folder: Path, mebibytes: int) -> None:
    """A write into memory that held no file before takes three times as long, and one beside others may too."""
    plain_write(folder, fresh(mebibytes))
    os.sync()


@dataclass(slots=True)
class Cost:
    """Of the web process: by how many bytes it grew at most, and the processor seconds that it took."""

    bytes: int = 0
    seconds: float = 0.0


@contextmanager
def cost_of(process: psutil.Process) -> Iterator[Cost]:
    cost, ended = Cost(), threading.Event()
    before, spent = process.memory_info().rss, sum(process.cpu_times()[:2])

    def watch() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            cost.bytes = max(cost.bytes, process.memory_info().rss - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield cost
    finally:
        ended.set()
        watcher.join()
        cost.seconds = sum(process.cpu_times()[:2]) - spent


def large_files(instance: Instance, client: Client, folder: Path, mebibytes: int, rounds: int) -> None:
    ways = {"raw PUT": client.put, "raw POST": client.post, "multipart": client.post_form}
    seconds = {name: list[float]() for name in (*ways, "plain")}
    costs = {name: list[Cost]() for name in ways}
    web = web_process(instance)
    for send in ways.values():  # whatever is loaded once is loaded now
        client.purge(send(fresh(8)))
    for _ in range(rounds):
        settle(folder, mebibytes)
        blocks = fresh(mebibytes)
        seconds["plain"].append(timed(lambda blocks=blocks: plain_write(folder, blocks)))
        for name, send in ways.items():
            settle(folder, mebibytes)
            client.connection.close()  # it was idle too long; the next call opens it
            blocks, made = fresh(mebibytes), list[str]()
            with cost_of(web) as cost:
                seconds[name].append(timed(lambda send=send, blocks=blocks, made=made: made.append(send(blocks))))
            costs[name].append(cost)
            client.purge(made[0])
    for name, values in seconds.items():
        show(f"{mebibytes} MiB, {name}", [mebibytes / value for value in values], "MiB/s", worst=min)
    for name in ways:
        ratios = [plain / ours for plain, ours in zip(seconds["plain"], seconds[name], strict=True)]
        growth = [cost.bytes / (1 << 20) for cost in costs[name]]
        show(f"{name}, speed by plain hash, write and fsync", ratios, "x", worst=min)
        show(f"{name}, processor time of the web process", [cost.seconds for cost in costs[name]])
        show(f"{name}, growth of the web process", growth, "MiB")
        verdict("speed", statistics.median(ratios) >= GOAL_RATIO, f"goal >= {GOAL_RATIO:.2f} x")
        verdict("memory", max(growth) < GOAL_MEMORY >> 20, f"goal < {GOAL_MEMORY >> 20} MiB")


def small_files(instance: Instance, session: str, folder: Path) -> None:
    def send(number: int) -> list[float]:
        client = Client(instance, session)
        bodies = [os.urandom(SMALL_BYTES) for _ in range(number, SMALL_FILES, SMALL_CLIENTS)]
        return [timed(lambda body=body: client.post([body])) for body in bodies]

    with ThreadPoolExecutor(SMALL_CLIENTS) as pool, cost_of(web_process(instance)) as cost:
        started = time.perf_counter()
        each = [one for some in pool.map(send, range(SMALL_CLIENTS)) for one in some]
        whole = time.perf_counter() - started
    plain = timed(lambda: [plain_write(folder, [os.urandom(SMALL_BYTES)]) for _ in range(SMALL_FILES)])
    show(f"{SMALL_FILES} small files by {SMALL_CLIENTS} clients", [whole])
    show("one of them, from call to answer", [one * 1000 for one in each], "ms")
    show("processor time of the web process for one", [cost.seconds * 1000 / SMALL_FILES], "ms")
    show(f"{SMALL_FILES} small files, plain, one after another", [plain])
    print(f"{SMALL_FILES / whole:.0f} files/s")


def web_process(instance: Instance) -> psutil.Process:
    return psutil.Process(instance.process_ids()["web"])


def verdict(what: str, good: bool, goal: str) -> None:  # noqa: FBT001
    print(f"    {what}: {'reached' if good else 'NOT REACHED'} ({goal})")


def main(mebibytes: int = MEBIBYTES, rounds: int = ROUNDS) -> None:
    limits = {"upload_bytes": 4 << 30, "requests_per_minute": 1_000_000}
    with open_folder() as folder, instance_in(folder, workers=0, **limits) as instance:
        instance.start()
        try:
            session = sign_in(instance)
            small_files(instance, session, folder)
            large_files(instance, Client(instance, session), folder, mebibytes, rounds)
        except BaseException:
            print(instance.log.read_text()[-LOG_CHARACTERS:])  # it goes with the folder
            raise


if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:]))
