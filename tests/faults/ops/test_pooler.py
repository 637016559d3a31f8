"""A whole installation behind PgBouncer in transaction mode, where nothing can depend on the session of a connection.

Needs `pgbouncer` on the PATH, which Debian and most other systems have as a package. POOLER_WORKERS changes the
number of workers.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from octavo.database.migrator import known_migrations
from octavo.jobs.worker import CHANNEL
from tests.support.instance import Instance, instance_in
from tests.support.passwords import PASSWORD
from tests.support.pooler import SERVER_CONNECTIONS, Pooler, find_pgbouncer, pooler_for
from tests.support.postgres import Server, as_url
from tests.support.processes import PATIENCE_SECONDS, running_octavo, wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_pgbouncer() is None, reason="pgbouncer is not on the PATH; install the package pgbouncer"),
]
WORKERS, DOCUMENTS = int(os.environ.get("POOLER_WORKERS", "8")), 24
SUPERVISED = min(WORKERS, 8)
COUNT_WORKERS = b"SELECT count(*) FROM workers"
UNFINISHED = b"SELECT count(*) FROM jobs WHERE status NOT IN ('complete', 'cancelled')"
OPEN = b"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
MEMBER = "dora@example.org"
SEEN, HIDDEN = "Reading", "Vault"


@dataclass(slots=True)
class Installation:
    instance: Instance
    direct: psycopg.Connection[Any]
    owner: httpx.Client
    member: httpx.Client
    most_open: int = 0
    documents: list[str] = field(default_factory=list[str])

    def one(self, statement: bytes) -> Any:  # noqa: ANN401
        row = self.direct.execute(statement).fetchone()
        return row[0] if row else None

    def add_documents(self) -> None:
        for number in range(DOCUMENTS):
            collection = SEEN if number % 2 else HIDDEN
            text = f"The harbour of Northwick{number} has {number + 3} lanterns.\n\nGulls fly over the harbour at dawn."
            added = self.owner.post(
                "/api/v1/documents", json={"text": text, "title": f"{collection} {number}", "collection": collection}
            )
            assert added.status_code == 202, added.text
            self.documents.append(added.json()["document_id"])

    def is_done(self) -> bool:
        self.most_open = max(self.most_open, self.one(OPEN))
        return self.one(UNFINISHED) == 0

    def get(self, path: str, client: httpx.Client | None = None, **query: Any) -> Any:  # noqa: ANN401
        answer = (client or self.owner).get(f"/api/v1{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


def person(instance: Instance, email: str) -> httpx.Client:
    client = httpx.Client(base_url=instance.address, trust_env=False, timeout=PATIENCE_SECONDS)
    answer = client.post("/api/v1/account", json={"email": email, "password": PASSWORD})
    assert answer.status_code == 201, answer.text
    return client


@contextmanager
def installed(server: Server, folder: Path, *, direct: bool) -> Generator[tuple[Installation, Pooler]]:
    with server.database(migrated=False) as info, pooler_for(info, folder) as pooler:
        more = {"database_direct_url": as_url(info)} if direct else {}
        settings = {"database_url": pooler.url, "prepared_statements": False, "workers": SUPERVISED, "web": 2, **more}
        with (
            instance_in(folder, **settings) as instance,
            psycopg.connect(info, autocommit=True) as connection,
            ExitStack() as stack,
        ):
            instance.start()
            for _ in range(WORKERS - SUPERVISED):
                stack.enter_context(running_octavo(["worker"], instance.environment))
            wait_until(lambda: connection.execute(COUNT_WORKERS).fetchone() == (WORKERS,), "all workers start")
            with closing(person(instance, "ada@example.org")) as owner, closing(person(instance, MEMBER)) as member:
                yield Installation(instance, connection, owner, member), pooler


def limit_member(place: Installation) -> None:
    body = {"email": MEMBER, "role": "reader", "limited": True}
    user = place.owner.post("/api/v1/members", json=body).json()["user_id"]
    place.member.post("/api/v1/session/owner", json={"owner_id": place.get("/session")["owner_id"]})
    ids = {one["name"]: one["id"] for one in place.get("/collections")["items"]}
    granted = place.owner.post("/api/v1/grants", json={"collection_id": ids[SEEN], "user_id": user})
    assert granted.status_code == 201, granted.text


@contextmanager
def live_events(client: httpx.Client) -> Generator[list[str]]:
    """The documents whose job completed, as an open page sees them."""
    seen, ready = list[str](), threading.Event()

    def read(lines: httpx.Response) -> None:
        for line in lines.iter_lines():
            ready.set()
            if line.startswith("data:"):
                told = json.loads(line.removeprefix("data:"))
                seen.extend([told["document_id"]] if told.get("state_after") == "complete" else [])

    def follow() -> None:
        try:
            with client.stream("GET", "/api/v1/events") as answer:
                read(answer)
        except httpx.HTTPError:  # the test is over
            return

    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    wait_until(ready.is_set, "the stream begins")
    try:
        yield seen
    finally:
        client.close()


@pytest.mark.parametrize("direct", [True, False], ids=["with a direct address", "pooler only"])
def test_an_installation_works_behind_a_pooler_in_transaction_mode(
    newest_server: Server, folder: Path, *, direct: bool
) -> None:
    with installed(newest_server, folder, direct=direct) as (place, pooler):
        assert place.one(b"SELECT count(*) FROM schema_migrations") == len(known_migrations())
        with live_events(
            httpx.Client(base_url=place.instance.address, cookies=place.owner.cookies, timeout=600)
        ) as seen:
            place.add_documents()
            os.kill(place.instance.process_ids()["worker 3"] or 0, signal.SIGKILL)
            wait_until(place.is_done, "all jobs end")
            wait_until(lambda: set(place.documents) <= set(seen), "an open page sees every document")
        check_results(place)
        limit_member(place)
        check_member(place)
        check_commands(place, folder)
        # Workers that listen have one connection each. Those of the pooler are shared by all processes.
        assert SERVER_CONNECTIONS // 2 <= place.most_open <= SERVER_CONNECTIONS + (WORKERS + 1 if direct else 0)
        listening = place.one(b"SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN %s'" % CHANNEL.encode())
        assert listening == (WORKERS if direct else 0)
        with psycopg.connect(pooler.info, autocommit=True) as shared:
            row = shared.execute("SELECT count(*) FROM pg_listening_channels()").fetchone()
            assert row == (0,)
        assert "Traceback" not in place.instance.log.read_text()


def check_results(place: Installation) -> None:
    """Every document is there once, found by its words and its vectors, connected, and quoted in an answer."""
    documents = place.get("/documents", limit=100)["items"]
    assert sorted(one["id"] for one in documents) == sorted(place.documents)
    assert {one["status"] for one in documents} == {"completed"}
    found = place.get("/search", q="lanterns of Northwick7")["items"]
    assert found[0]["title"] == f"{SEEN} 7"
    assert place.get(f"/documents/{place.documents[7]}/connections")["items"]
    answer = place.owner.post("/api/v1/ask", json={"question": "How many lanterns has Northwick7?"})
    assert answer.status_code == 200, answer.text
    assert "10 lanterns" in answer.text
    twice = b"SELECT count(*) FROM (SELECT job_id, stage FROM job_stages GROUP BY 1, 2, part HAVING count(*) > 1) AS t"
    assert place.one(twice) == 0


def check_member(place: Installation) -> None:
    """The limits of one member never apply to the next request on the same connection of the server, or the reverse."""
    for _ in range(20):
        mine = place.get("/documents", place.member, limit=100)["items"]
        assert {one["title"].split()[0] for one in mine} == {SEEN}
        assert len(place.get("/documents", limit=100)["items"]) == DOCUMENTS
        assert {one["title"].split()[0] for one in place.get("/search", place.member, q="lanterns")["items"]} == {SEEN}


def check_commands(place: Installation, folder: Path) -> None:
    assert "Problems" not in place.instance.octavo("doctor").stdout
    done = place.instance.octavo("backup", str(folder / "backup"))
    assert done.returncode == 0, done.stderr
    assert place.one(b"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0
