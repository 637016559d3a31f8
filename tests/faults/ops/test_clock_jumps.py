"""The wall clocks of the web process and of the worker jump by months. Only the database's clock decides anything."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pytest

from octavo.database import connect, read_clock
from octavo.ops.instance import bucket_of
from octavo.storage.bucket import UNFINISHED
from tests.support.clock import JUMPS
from tests.support.deliveries import Receiver, receiver
from tests.support.engine import Engine, engine_on, wait_for_end
from tests.support.preloaded import Process
from tests.support.processes import wait_until
from tests.support.site import Site, site_in

# Longer than a session, a key, a signed link, a lease and the age at which housekeeping removes what nobody needs.
JUMP = timedelta(days=100)
NEAR = timedelta(hours=1)
DAY_KEY = {"name": "for a day", "scope": "write", "expires_in_days": 1}


@dataclass(frozen=True, slots=True)
class Jumping:
    site: Site
    engine: Engine
    web: Process
    worker: Process
    client: httpx.Client
    hook: Receiver

    def clock_of_web(self) -> datetime:
        return parsedate_to_datetime(self.client.get("/healthz").headers["date"])

    def jump(self, number: signal.Signals, ahead: timedelta) -> None:
        """All clocks but the database's; returns when they are ahead by this much."""
        before = self.site.log.read_text().count("test clock jumped")
        for process in (self.web, self.worker):
            process.send_signal(number)
        wait_until(lambda: self.site.log.read_text().count("test clock jumped") >= before + 2, "both jumped")
        wait_until(lambda: abs(self.clock_of_web() - ahead - datetime.now(UTC)) < NEAR, "the web process shows it")

    def upload(self, count: int) -> None:
        for _ in range(count):
            number = self.engine.one("SELECT count(*) FROM documents")
            body = {"text": f"# Note {number}\n\nThe bridge number {number} carries {number + 7} thousand cars."}
            self.client.post("/api/v1/documents", json=body).raise_for_status()

    def run_housekeeping(self) -> None:
        ended = self.site.octavo("schedules", "run", "housekeeping")
        assert ended.returncode == 0, ended.stderr
        wait_for_end(self.engine, 60)
        assert self.engine.one("SELECT count(*) FROM jobs WHERE kind = 'housekeeping' AND status = 'complete'")


@pytest.fixture
def jumping(folder: Path, database_info: str) -> Iterator[Jumping]:
    with receiver() as hook, engine_on(database_info) as engine:
        settings = {"fetch_allow": hook.allowed, "lease_seconds": 5}
        with site_in(folder, database_info, **settings) as site:
            site.environment[JUMPS] = str(JUMP.total_seconds())
            web, worker = site.start_web(), site.start_worker()
            address, cookies = f"http://127.0.0.1:{site.port}", {"octavo_session": site.sign_in()}
            with httpx.Client(base_url=address, cookies=cookies, trust_env=False, timeout=60) as client:
                wait_until(lambda: client.get("/healthz").status_code == 200, "the web process answers")
                wait_until(lambda: engine.one("SELECT count(*) FROM workers"), "the worker is there")
                yield Jumping(site, engine, web, worker, client, hook)


def test_jumping_clocks_lose_no_lease_and_double_nothing(jumping: Jumping) -> None:
    hook = jumping.client.post("/api/v1/webhooks", json={"address": jumping.hook.url, "events": ["document.completed"]})
    for number, ahead in ((signal.SIGUSR1, JUMP), (signal.SIGUSR2, timedelta()), (signal.SIGUSR2, -JUMP)):
        jumping.upload(4)
        jumping.jump(number, ahead)
        jumping.upload(4)
    wait_for_end(jumping.engine, 120)
    wait_until(lambda: len(jumping.hook.received) >= 24, "every event is delivered")
    wait_for_end(jumping.engine, 60)
    engine = jumping.engine
    assert engine.one("SELECT count(*) FROM documents WHERE status = 'completed' AND embeddings_ready") == 24
    assert engine.rows("SELECT kind FROM jobs WHERE attempt > 1 OR failures > 0 OR status <> 'complete'") == []
    assert "lease lost" not in jumping.site.log.read_text()
    for delivered in jumping.hook.received:  # a receiver refuses a timestamp that is five minutes off
        delivered.verify(hook.json()["secret"])
    assert len(set(jumping.hook.ids())) == len(jumping.hook.ids()) == 24
    doctor = jumping.site.octavo("doctor")
    assert doctor.returncode == 0, doctor.stdout


def test_sessions_keys_and_links_expire_by_the_clock_of_the_database(jumping: Jumping) -> None:
    jumping.upload(1)
    wait_for_end(jumping.engine, 60)
    document = jumping.engine.one("SELECT id FROM documents")
    key = jumping.client.post("/api/v1/keys", json=DAY_KEY).raise_for_status().json()["key"]
    link = jumping.client.post(f"/api/v1/documents/{document}/link").raise_for_status().json()["url"]
    by_key = {"authorization": f"Bearer {key}", "cookie": ""}

    def statuses() -> list[int]:
        asked: list[tuple[str, dict[str, str]]] = [("/api/v1/documents", {}), ("/api/v1/documents", by_key), (link, {})]
        return [jumping.client.get(path, headers=headers).status_code for path, headers in asked]

    jumping.jump(signal.SIGUSR1, JUMP)
    assert statuses() == [200, 200, 200]
    jumping.jump(signal.SIGUSR2, timedelta())
    jumping.jump(signal.SIGUSR2, -JUMP)
    assert statuses() == [200, 200, 200]
    for table in ("sessions", "api_keys"):
        jumping.engine.run(f"UPDATE {table} SET expires_at = clock_timestamp() - interval '1 second'")
    link = asyncio.run(expired_link(jumping.site, str(jumping.engine.one("SELECT key FROM objects LIMIT 1"))))
    assert statuses()[1:] == [401, 403]
    assert jumping.client.get("/api/v1/documents").json().get("items", []) == []


async def expired_link(site: Site, key: str) -> str:
    async with await connect(site.database_url) as connection:
        now = await read_clock(connection)
    bucket = bucket_of(site.settings)
    try:
        then = now - timedelta(seconds=10)
        return await bucket.sign_get(key, now=then, seconds=5, filename="a.txt", content_type="text/plain")
    finally:
        await bucket.aclose()


def test_housekeeping_of_a_worker_whose_clock_is_ahead_removes_nothing_that_is_new(jumping: Jumping) -> None:
    """A file is stored before its row is committed, so a new one without a row belongs to work in progress."""
    jumping.upload(1)
    wait_for_end(jumping.engine, 60)
    objects = jumping.site.data / "objects"
    new = [objects / "artifacts/new", objects / UNFINISHED / "new"]
    for path in new:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"work in progress")
    jumping.jump(signal.SIGUSR1, JUMP)
    jumping.run_housekeeping()
    assert [path.exists() for path in new] == [True, True]
