"""Web and worker processes are killed at any byte of an upload: what was acknowledged is there, and nothing else is."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.intake.upload_rows import sweep_abandoned
from octavo.ops.instance import bucket_of
from octavo.storage.bucket import UNFINISHED
from tests.support.engine import Engine, engine_on, wait_for_end
from tests.support.library import open_desk, sweep_objects
from tests.support.preloaded import Process
from tests.support.processes import PATIENCE_SECONDS
from tests.support.site import Caller, Site, site_in

AT_ONCE = 6
TRIES = 4
# A job whose worker died ten times without getting on is given up, so more kills wait until nothing is left to do.
MOST_WORKER_KILLS = 3
TEXT_SIZES = (1, 2, 40, 900, 9_000, 60_000)
BINARY_SIZES = (1, 300, 70_000, 1_000_000, 3_000_000)
WORDS = ("alpha", "beta", "größer", "東京", "\n\n# Head\n\n", "\n\n")
BOUNDARY = "----a-boundary-that-is-not-in-the-file"
WAYS = {
    "raw": ("byte", "byte", "sent", "done"),
    "form": ("byte", "byte", "sent", "done"),
    "two steps": ("begun", "byte", "byte", "sent", "received", "finalizing", "done"),
}


@dataclass(slots=True)
class Plan:
    """One file on its way: how far it has come when the kill comes, and whether somebody tries again after it."""

    number: int
    content: bytes
    name: str
    way: str
    stop: str
    stop_byte: int
    stubborn: bool
    upload: str | None = None
    answer: dict[str, Any] | None = None
    whole: bool = False
    trouble: list[str] = field(default_factory=list[str])

    @property
    def digest(self) -> str:
        return sha256(self.content).hexdigest()


def make_plan(chance: random.Random, number: int) -> Plan:
    if chance.random() < 0.6:
        size = chance.choice(TEXT_SIZES)
        words = [chance.choice(WORDS) for _ in range(size // 5)]
        text = f"{number} {' '.join(words)}".encode()[:size].decode("utf-8", "ignore")
        content, name = text.encode(), "a.md"
    else:
        content, name = b"\x00\xff" + chance.randbytes(chance.choice(BINARY_SIZES)), "a.bin"
    way = chance.choice(list(WAYS))
    return Plan(
        number, content, name, way, chance.choice(WAYS[way]), chance.randrange(len(content)), chance.random() < 0.4
    )


class Sender:
    """Sends one file; stands still at its point until everybody else has come to theirs and the kill has happened."""

    def __init__(self, site: Site, session: str, plan: Plan, gate: threading.Barrier) -> None:
        self.plan = plan
        self.caller = Caller(site, session)
        self.gate: threading.Barrier | None = gate

    def run(self) -> None:
        for _ in range(TRIES if self.plan.stubborn else 1):
            try:
                self.attempt()
            except (OSError, HTTPException) as error:
                self.plan.trouble.append(repr(error))
            finally:
                self.caller.close()
                self.pass_gate()
            if self.plan.answer:
                return

    def pass_gate(self) -> None:
        gate, self.gate = self.gate, None
        if gate:
            gate.wait()  # all have come as far as they should
            gate.wait()  # and the process is dead

    def reach(self, point: str) -> None:
        if self.plan.stop == point:
            self.pass_gate()

    @property
    def is_cut(self) -> bool:
        """Whether the receiving process is to be killed in the middle of this body."""
        return self.plan.stop == "byte" and self.gate is not None

    def attempt(self) -> None:
        plan = self.plan
        if plan.way != "two steps":
            self.send_whole()
            return
        if plan.upload is None:
            plan.upload = self.expect(201, *self.caller.ask("POST", "/api/v1/uploads", {"filename": plan.name}))[
                "upload_id"
            ]
        self.reach("begun")
        path = f"/api/v1/uploads/{plan.upload}"
        if not plan.whole:
            self.send_body("PUT", f"{path}/content", {}, b"", b"")
            self.reach("sent")
            self.expect(200, *self.caller.answer())
            plan.whole = True
        self.reach("received")
        self.caller.send("POST", f"{path}/finalize", {}, 0, [])
        self.reach("finalizing")
        plan.answer = self.expect(200, *self.caller.answer())
        self.reach("done")

    def send_whole(self) -> None:
        plan = self.plan
        headers, head, tail = {"X-Upload-Filename": plan.name}, b"", b""
        if plan.way == "form":
            headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
            part = f'Content-Disposition: form-data; name="file"; filename="{plan.name}"'
            head, tail = f"--{BOUNDARY}\r\n{part}\r\n\r\n".encode(), f"\r\n--{BOUNDARY}--\r\n".encode()
        self.send_body("POST", "/api/v1/documents", headers, head, tail)
        plan.whole = True
        self.reach("sent")
        plan.answer = self.expect(202, *self.caller.answer())
        self.reach("done")

    def send_body(self, method: str, path: str, headers: dict[str, str], head: bytes, tail: bytes) -> None:
        content = self.plan.content
        length = len(head) + len(content) + len(tail)
        if self.is_cut:
            headers = {**headers, "Expect": "100-continue"}
        self.caller.send(method, path, headers, length, self.pieces(head, content, tail))

    def pieces(self, head: bytes, content: bytes, tail: bytes) -> Iterator[bytes]:
        yield head
        stop = self.plan.stop_byte
        for start in range(0, stop, 50_000):
            yield content[start : min(start + 50_000, stop)]
        if self.is_cut:
            # A connection that nobody accepted yet waits for the next process, which then receives everything.
            self.caller.wait_for_continue()
            self.pass_gate()
        yield content[stop:]
        yield tail

    def expect(self, wanted: int, status: int, body: dict[str, Any]) -> dict[str, Any]:
        assert status == wanted, body
        return body


@pytest.fixture
def site(folder: Path, database_info: str) -> Generator[Site]:
    with site_in(folder, database_info, lease_seconds=5, requests_per_minute=100_000) as one:
        yield one


@pytest.fixture
def engine(database_info: str) -> Generator[Engine]:
    with engine_on(database_info) as one:
        yield one


def send_while_killing(site: Site, engine: Engine, plans: list[Plan], chance: random.Random) -> None:
    """In rounds: some files are sent at once, each stops somewhere, and then those who receive them are killed."""
    session = site.sign_in()
    web, worker = site.start_web(), site.start_worker()
    killed_workers = 0
    for first in range(0, len(plans), AT_ONCE):
        assert Caller(site, session).ask("GET", "/healthz")[0] == 200  # who is killed has begun to receive
        some = plans[first : first + AT_ONCE]
        gate = threading.Barrier(len(some) + 1)
        threads = [threading.Thread(target=Sender(site, session, plan, gate).run) for plan in some]
        for thread in threads:
            thread.start()
        gate.wait(PATIENCE_SECONDS)
        web = replace(web, site.start_web)
        if chance.random() < 0.5:
            if killed_workers == MOST_WORKER_KILLS:
                wait_for_end(engine)
                killed_workers = 0
            killed, worker = worker, replace(worker, site.start_worker)
            engine.bury(killed)
            killed_workers += 1
        gate.wait(PATIENCE_SECONDS)
        for thread in threads:
            thread.join(90)
        assert not any(thread.is_alive() for thread in threads)


def replace(process: Process, start: Callable[[], Process]) -> Process:
    assert process.poll() is None
    process.kill()
    process.wait()
    return start()


async def sweep(site: Site, info: str) -> None:
    """What the daily sweeps will do, at once; after it the books balance and no half-written file is left."""
    async with aclosing(bucket_of(site.settings)) as bucket, open_desk(info, bucket) as desk:
        await sweep_abandoned(desk.database, bucket, 0)
        await bucket.sweep_unfinished(0)
        await sweep_objects(desk.database, bucket, 0)
        await desk.check_books()
    assert list((site.data / "objects" / UNFINISHED).iterdir()) == []


def check_document(caller: Caller, engine: Engine, plan: Plan, row: dict[str, Any]) -> None:
    """Finished, with the same bytes, and its text in pieces once."""
    assert (row["status"], row["bytes"]) == ("completed", len(plan.content))
    status, body = caller.ask("GET", f"/api/v1/documents/{row['id']}/source")
    assert (status, sha256(body).hexdigest()) == (200, plan.digest)
    chunks = engine.rows("SELECT index, content FROM chunks WHERE document_id = %s ORDER BY index", row["id"])
    assert [chunk["index"] for chunk in chunks] == list(range(len(chunks)))
    if plan.name == "a.bin":
        assert chunks == []
        return
    status, text = caller.ask("GET", f"/api/v1/documents/{row['id']}/markdown")
    assert status == 200
    assert "".join("".join(chunk["content"].split()) for chunk in chunks) == "".join(text.decode().split())


SIZES = [13, *(pytest.param(many, marks=pytest.mark.long) for many in (20, 50, 200))]


@pytest.mark.parametrize("files", SIZES)
def test_acknowledged_uploads_survive_any_kill(site: Site, engine: Engine, database_info: str, files: int) -> None:
    chance = random.Random(files)
    plans = [make_plan(chance, number) for number in range(files)]
    send_while_killing(site, engine, plans, chance)
    wait_for_end(engine)
    asyncio.run(sweep(site, database_info))
    doctor = site.octavo("doctor")
    assert doctor.returncode == 0, doctor.stdout

    found = {row["digest"]: row for row in engine.rows(DOCUMENTS)}
    by_digest = {plan.digest: plan for plan in plans}
    caller = Caller(site, site.sign_in())
    for digest, row in found.items():
        check_document(caller, engine, by_digest[digest], row)
    for plan in plans:
        if plan.answer:
            assert found[plan.digest]["id"] == UUID(plan.answer["document_id"])
    # Without an answer it may still have been kept, but only if all of it had been sent.
    assert set(found) <= {plan.digest for plan in plans if plan.answer or plan.whole}
    # Those were killed in the middle of their body; the others may have been answered just before.
    cut = [plan for plan in plans if plan.stop == "byte"]
    assert len(cut) > files / 3
    assert all(plan.trouble for plan in cut)
    assert [plan for plan in cut if plan.answer]
    assert [plan for plan in cut if not plan.answer]


DOCUMENTS = "SELECT id, status, bytes, encode(sha256, 'hex') AS digest FROM documents"
