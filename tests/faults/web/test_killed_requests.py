"""A web process that is killed in the middle of a request with an Idempotency-Key leaves nothing that is made twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest

from tests.support import preloaded
from tests.support.instance import fetch, free_port
from tests.support.postgres import Server, as_url, open_folder
from tests.support.processes import PATIENCE_SECONDS, octavo_environment, wait_until
from tests.support.web import WebProcess

NOTE = {"text": "The ferry to the island runs every hour.", "title": "Ferry"}


@contextmanager
def web_on(info: str, folder: Path) -> Generator[tuple[WebProcess, preloaded.Process]]:
    port = free_port()
    environment = octavo_environment(folder / "data", port=port, database_url=as_url(info))
    with (folder / "web.log").open("ab") as log:
        process = preloaded.start(["web"], environment, log.fileno())
    web = WebProcess(f"http://127.0.0.1:{port}", info, folder, environment)
    try:
        wait_until(lambda: answers(web.address), "the web server answers")
        yield web, process
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def answers(address: str) -> bool:
    try:
        return fetch(f"{address}/healthz")[0] == 200
    except OSError:
        return False


def post(web: WebProcess, headers: dict[str, str]) -> httpx.Response:
    return httpx.post(f"{web.address}/api/v1/documents", json=NOTE, headers=headers, timeout=60, trust_env=False)


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_a_killed_request_is_made_once_when_it_is_repeated(newest_server: Server, moment: str) -> None:
    """Before the commit, it waits for a lock on the answers; after it, its answer is stored but may be lost."""
    with open_folder() as folder, newest_server.database() as info, ThreadPoolExecutor() as threads:
        with web_on(info, folder) as (web, process):
            headers = {"authorization": f"Bearer {web.machine_key()}", "idempotency-key": str(uuid4())}
            with psycopg.connect(info) as lock, psycopg.connect(info, autocommit=True) as eye:
                if moment == "before the commit":
                    lock.execute("LOCK TABLE idempotency_keys IN SHARE MODE")
                first = threads.submit(post, web, headers)
                seen = WAITS if moment == "before the commit" else "SELECT count(*) FROM idempotency_keys"
                wait_until(lambda: (eye.execute(seen).fetchone() or (0,))[0], moment)
                os.kill(process.pid, signal.SIGKILL)
                process.wait(PATIENCE_SECONDS)
                assert first.exception() or moment == "after the commit"
        with web_on(info, folder) as (web, _):
            if moment == "before the commit":
                held = post(web, headers)
                assert (held.status_code, held.json()["code"]) == (409, "IDEMPOTENCY_KEY_IN_USE")
            with psycopg.connect(info, autocommit=True) as later:  # as if the dead process had been silent for a minute
                later.execute("UPDATE slots SET seen_at = seen_at - interval '1 minute'")
            answer = post(web, headers)
            assert answer.status_code == 202, answer.text
            assert post(web, headers).json() == answer.json()
        with psycopg.connect(info) as eye:
            assert eye.execute("SELECT array_agg(id::text) FROM documents").fetchone() == (
                [answer.json()["document_id"]],
            )


WAITS = """
    SELECT count(*) FROM pg_locks WHERE relation = 'idempotency_keys'::regclass AND NOT granted"""
