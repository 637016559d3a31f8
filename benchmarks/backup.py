"""How long a backup of many documents takes beside uploads and processing, how large it is, and whether it restores.

`python -m benchmarks.backup [documents]`; 1,000 documents unless told otherwise. Checks the hash of every document
that was acknowledged before the backup, the next event, and the doctor.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder

DOCUMENTS, CLIENTS, WORDS = 1000, 6, 500
WORD_LIST = Path(__file__).read_text().split()


def text_of(number: int) -> bytes:
    chance = random.Random(number)
    return f"# Document {number}\n\n{' '.join(chance.choices(WORD_LIST, k=WORDS))}\n".encode()


def client_of(instance: Instance) -> httpx.Client:
    made = instance.octavo("keys", "add", "benchmark", "--scope", "write", "--json")
    headers = {"authorization": f"Bearer {json.loads(made.stdout)['key']}"}
    return httpx.Client(base_url=instance.address, headers=headers, trust_env=False, timeout=60)


def upload(client: httpx.Client, number: int) -> tuple[str, str]:
    """Returns the id of the document and its hash."""
    body = text_of(number)
    while True:
        answer = client.post("/api/v1/documents", content=body, headers={"x-upload-filename": f"{number}.md"})
        if answer.status_code != HTTPStatus.TOO_MANY_REQUESTS:
            break
        time.sleep(float(answer.headers.get("retry-after", 1)))
    return answer.raise_for_status().json()["document_id"], hashlib.sha256(body).hexdigest()


def run(instance: Instance, *arguments: str) -> dict[str, Any]:
    done = instance.octavo(*arguments, "--json")
    if done.returncode:
        raise RuntimeError(f"octavo {arguments[0]}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def back_up_under_load(instance: Instance, path: Path, documents: int) -> dict[str, str]:
    """Two backups, the second of which copies only what is new. Returns the documents acknowledged before the last."""
    ended = threading.Event()
    with client_of(instance) as client, ThreadPoolExecutor(CLIENTS) as pool:
        added = dict(pool.map(partial(upload, client), range(documents)))

        def go_on(first: int) -> None:
            number = first
            while not ended.is_set():
                upload(client, number)
                number += CLIENTS

        uploading = [pool.submit(go_on, documents + one) for one in range(2)]
        for name in ("first backup", "second backup"):
            made = run(instance, "backup", str(path))
            print(
                f"{name}: {made['seconds']} s, {made['rows']:,} rows in {made['database_bytes'] / 1e6:.1f} MB, "
                f"{made['files']:,} files with {made['file_bytes'] / 1e6:.1f} MB, {made['copied']:,} copied"
            )
        ended.set()
        for one in uploading:
            one.result()
    return added


def check(instance: Instance, added: dict[str, str]) -> None:
    with client_of(instance) as client:
        cursor = client.get("/api/v1/events", params={"format": "json"}).json()["cursor"]
        for document, digest in added.items():
            source = client.get(f"/api/v1/documents/{document}/source").raise_for_status().content
            if hashlib.sha256(source).hexdigest() != digest:
                raise RuntimeError(f"{document} has other bytes")
        document, _ = upload(client, -1)
        events = list[Any]()
        while not any(one["document_id"] == document and one["kind"] == "created" for one in events):
            page = client.get("/api/v1/events", params={"format": "json", "after": cursor}).json()
            events, cursor = events + page["items"], page["cursor"]
        if len({one["id"] for one in events}) != len(events):
            raise RuntimeError("an event was delivered twice")
    doctor = "clean" if run(instance, "doctor")["healthy"] else "NOT clean"
    print(f"{len(added):,} documents with the same hash, the next event delivered, doctor {doctor}")


def main(documents: int) -> None:
    with open_folder() as folder:
        for name in ("one", "two"):
            (folder / name).mkdir(mode=0o755)
        with instance_in(folder / "one") as instance:
            instance.start()
            added = back_up_under_load(instance, folder / "backup", documents)
        with instance_in(folder / "two") as instance:
            print(f"restore: {run(instance, 'restore', str(folder / 'backup'))['seconds']} s")
            instance.start()
            check(instance, added)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTS)
