"""How fast the library answers with many documents, and how large its page is.

`python -m benchmarks.library [documents] [rounds]`; 10,000 documents and 40 rounds unless told otherwise. The documents
are rows without files: lists, filters, saved views, and actions on all documents that match are measured, through the
running web server on this machine.
"""

from __future__ import annotations

import gzip
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import httpx
import numpy as np
import psutil
import psycopg

from octavo.core.types import new_id
from octavo.database.embedded.cluster import NEWEST
from octavo.language import DIMENSIONS, NAME
from tests.browser.library.test_first_look import modules_of
from tests.support.postgres import run_server
from tests.support.tree import SOURCE
from tests.support.web import running_web

DOCUMENTS, ROUNDS = 10_000, 40
GOAL_SECONDS, GOAL_HTML, GOAL_SCRIPTS = 0.1, 30_000, 45_000
WEB = SOURCE / "octavo/web"
KINDS = ("invoice", "letter", "contract", "article", "receipt")
SENDERS = ("Coolblue", "Harbour Board", "Free", "QualityHosting", "Crane Lease Ltd")
LANGUAGES = ("en", "de", "fr")
QUALITIES = ("full", "full", "full", "ocr", "partial")
# The process of the database server.
DATABASE: list[int] = []
PAGES = {
    "list": "/library",
    "list as cards": "/library?view=cards",
    "find words": "/library?q=crane+17",
    "find words that most have": "/library?q=crane",
    "kind": "/library?kind=invoice",
    "sender": "/library?sender=harbour",
    "date": "/library?after=2015&before=2016",
    "language": "/library?language=de",
    "collection": "/library?collection=Quay",
    "tag": "/library?tag=imported",
    "state": "/library?status=needs_you",
    "size": "/library?size_min=500+KB&size_max=1+MB",
    "kind, sender, date and amount": "/library?kind=invoice&sender=cool&after=2012&amount_min=100",
    "by title": "/library?sort=title",
    "by date": "/library?sort=-date",
    "by amount": "/library?sort=-amount",
    "by size": "/library?sort=-size",
    "API list": "/api/v1/documents?limit=50",
    "API filter": "/api/v1/documents?limit=50&kind=invoice&tag=imported",
    "search, a rare word": "/api/v1/search?q=4711",
    "search, a word that all have": "/api/v1/search?q=crane",
    "search, four such words": "/api/v1/search?q=crane+lease+notice+period",
    "search, four, only by words": "/api/v1/search?q=crane+lease+notice+period&mode=text",
    "search, a phrase that all have": "/api/v1/search?q=%22notice+period%22",
    "search, four, one kind": "/api/v1/search?q=crane+lease+notice+period+type:invoice",
    "search page, four such words": "/search?q=crane+lease+notice+period",
}


def fill(info: str, many: int) -> None:
    """Documents of the owner of this machine, each with facts, a tag, a collection and a first passage."""
    with psycopg.connect(info) as connection, connection.cursor() as cursor:
        row = connection.execute("SELECT id FROM owners WHERE kind = 'local'").fetchone()
        assert row, "the key of the machine was made first"
        owner: UUID = row[0]
        collection, tags = new_id(), [new_id(), new_id()]
        cursor.execute("INSERT INTO collections (id, owner_id, name) VALUES (%s, %s, 'Quay')", [collection, owner])
        for tag, name in zip(tags, ("imported", "crane"), strict=True):
            cursor.execute("INSERT INTO tags (id, owner_id, name) VALUES (%s, %s, %s)", [tag, owner, name])
        documents = [new_id() for _ in range(many)]
        with cursor.copy(
            "COPY documents (id, owner_id, process_id, status, title, filename, content_type, source_type, sha256, "
            "bytes, revision, last_revision, text_ready, language, kind, sender, document_date, amount, currency, "
            "quality, summary, page_count, word_count, collection_id, family_id) FROM STDIN"
        ) as copy:
            for number, document in enumerate(documents):
                copy.write_row(document_row(number, document, owner, collection if number % 4 == 0 else None))
        with cursor.copy("COPY document_tags (document_id, tag_id) FROM STDIN") as copy:
            for number, document in enumerate(documents):
                copy.write_row([document, tags[number % 3 == 0]])
        chunks = [new_id() for _ in documents]
        with cursor.copy(
            "COPY chunks (id, document_id, revision, index, content, char_start, char_end, word_count) FROM STDIN"
        ) as copy:
            for number, (chunk, document) in enumerate(zip(chunks, documents, strict=True)):
                text = f"The crane lease {number} has a notice period of {number % 90} days. " * 8
                copy.write_row([chunk, document, 1, 0, text, 0, len(text), 80])
        add_vectors(cursor, owner, documents, chunks)
    with psycopg.connect(info, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    DATABASE.append(int((Path(folder) / "postmaster.pid").read_text().split()[0]))


def add_vectors(cursor: psycopg.Cursor, owner: UUID, documents: Sequence[UUID], chunks: Sequence[UUID]) -> None:
    """Vectors of no meaning: they are compared with those of a query like any others."""
    chance = np.random.default_rng(8)
    cursor.execute("SELECT embedding_model(%s, %s)", [NAME, DIMENSIONS])
    (model,) = cursor.fetchone() or (0,)
    with cursor.copy("COPY chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector) FROM STDIN") as copy:
        for document, chunk in zip(documents, chunks, strict=True):
            vector = chance.normal(size=DIMENSIONS)
            copy.write_row([model, chunk, owner, document, str((vector / np.linalg.norm(vector)).round(5).tolist())])


def document_row(number: int, document: UUID, owner: UUID, collection: UUID | None) -> list[object]:
    day = f"{2000 + number % 25}-{1 + number % 12:02}-{1 + number % 28:02}"
    title = f"Crane lease {number}, signed by the harbour board"
    return [
        *(document, owner, new_id(), "completed", title, f"crane-{number}.pdf", "application/pdf", "pdf"),
        *(number.to_bytes(32, "big"), 1000 + number * 211 % 3_000_000, 1, 1, True),
        *(LANGUAGES[number % 3], KINDS[number % 5], SENDERS[number % 7 % 5], day, number % 5000 + 0.5, "EUR"),
        *(QUALITIES[number % 5], f"A lease of crane {number} with its deposit.", 1 + number % 40, 400 + number % 3000),
        *(collection, document),
    ]


def time_calls(call: Callable[[], httpx.Response], rounds: int) -> tuple[float, float, float]:
    """The median, the 95th percentile, and the processor time of server and database, after a call that does not count.

    Processor time is the same on a machine that does other work too.
    """
    call().raise_for_status()
    taken: list[float] = []
    used = processor_seconds()
    for _ in range(rounds):
        begun = time.perf_counter()
        call().raise_for_status()
        taken.append(time.perf_counter() - begun)
    spent = (processor_seconds() - used) / rounds
    return statistics.median(taken), statistics.quantiles(taken, n=20)[-1], spent


def processor_seconds() -> float:
    """Of the web server and the database, which this process started."""
    total = 0.0
    own = psutil.Process().children(recursive=True)
    # The database server has left this process's family; its own processes are named after it.
    for one in {*own, *(one for one in psutil.process_iter() if DATABASE and is_database(one))}:
        with suppress(psutil.Error):
            times = one.cpu_times()
            total += times.user + times.system
    return total


def is_database(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return DATABASE[0] in {process.pid, process.ppid()}
    return False


def time_pages(client: httpx.Client, rounds: int) -> list[str]:
    filters = {"kind": "invoice", "after": "2010", "tag": "imported"}
    view = client.post("/api/v1/views", json={"name": "Bills", "filter": filters, "sort": "-amount"}).json()["id"]
    late: list[str] = []
    for name, path in {**PAGES, "saved view": f"/views/{view}"}.items():
        median, slow, spent = time_calls(lambda path=path: client.get(path, follow_redirects=True), rounds)
        figures = f"median {median * 1000:6.1f} ms   p95 {slow * 1000:6.1f} ms   processor {spent * 1000:6.1f} ms"
        print(f"{name:32} {figures}")
        if slow > GOAL_SECONDS:
            late.append(name)
    return late


def time_changes(client: httpx.Client) -> None:
    everything: dict[str, object] = {"filter": {}}
    edits: dict[str, dict[str, object]] = {
        "edit of the collection": {"action": "edit", "edit": {"collection": "Harbour"}},
        "edit of date and kind": {"action": "edit", "edit": {"document_date": "2020-02-03", "kind": "letter"}},
        "edit of tags": {"action": "edit", "edit": {"add_tags": ["moved"], "remove_tags": ["crane"]}},
        "delete": {"action": "delete"},
    }
    for name, body in edits.items():
        used, begun = processor_seconds(), time.perf_counter()
        done = client.post("/api/v1/documents/bulk", json=everything | body).raise_for_status().json()
        between = time.perf_counter()
        undone = client.post(f"/api/v1/documents/bulk/{done['undo_id']}/undo").raise_for_status().json()
        ended = time.perf_counter()
        print(f"{name} of {done['changed']:,}: {between - begun:.2f} s, undo: {ended - between:.2f} s")
        print(f"  processor {processor_seconds() - used:.2f} s for both; {undone['changed']:,} restored")


def packed(content: bytes) -> int:
    return len(gzip.compress(content, 9))


def weigh(client: httpx.Client) -> tuple[int, int]:
    """The compressed bytes of a page of 50 rows, and of all scripts that it loads."""
    page = client.get("/library", headers={"accept-encoding": "identity"})
    found = re.findall(
        r'<script type="module" src="/[^"]*?((?:shell|rooms)/[\w/]+)(?:[.-][0-9a-f]{8,})?\.js', page.text
    )
    modules: set[Path] = set()
    for name in found:
        modules |= {path.resolve() for path in modules_of(WEB / f"{name}.js")}
    return packed(page.content), sum(packed(path.read_bytes()) for path in modules)


def main(many: int, rounds: int) -> None:
    calm = {"requests_per_minute": 10**9}
    with run_server(NEWEST) as server, running_web(server, anonymous=False, **calm) as web:
        key = {"authorization": f"Bearer {web.machine_key()}"}
        fill(web.database_info, many)
        with httpx.Client(base_url=web.address, headers=key, trust_env=False, timeout=600, verify=False) as client:
            print(f"{many:,} documents, {rounds} rounds")
            late = time_pages(client, rounds)
            html, scripts = weigh(client)
            print(f"page of 50 rows {html:,} bytes (goal {GOAL_HTML:,})")
            print(f"scripts {scripts:,} bytes (goal {GOAL_SCRIPTS:,})")
            time_changes(client)
    print(f"p95 over {GOAL_SECONDS * 1000:.0f} ms: {', '.join(late) or 'none'}")


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    main(*(given + [DOCUMENTS, ROUNDS][len(given) :]))
