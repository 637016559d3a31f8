"""`octavo export` and `octavo import`: everything arrives, nothing arrives twice, and a killed command goes on."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import httpx
import pytest

from octavo.cli import transfers
from octavo.client import SyncClient
from octavo.convert.mappings.stored_mappings import DEFAULT_MAPPING
from tests.integration.cli.test_documents_commands import Console, console, instance, key, working
from tests.support import preloaded
from tests.support.analyses import write_book
from tests.support.instance import Instance
from tests.support.invoices import make_invoice
from tests.support.passwords import PASSWORD
from tests.support.processes import PATIENCE_SECONDS, running_octavo, wait_until
from tools.compare_libraries import Library, compare, open_library

__all__ = ["console", "instance", "key"]
NOTE = "# Keeper's log\n\nThe keeper lit the vermilion lamp at dusk. The harbour fee is 20 euros.\n"


class Person:
    """Somebody else on the same installation, who imports."""

    def __init__(self, instance: Instance, email: str) -> None:
        with httpx.Client(base_url=instance.address) as browser:
            made = browser.post("/api/v1/account", json={"email": email, "password": PASSWORD})
            assert made.status_code == 201, made.text
            made = browser.post("/api/v1/keys", json={"name": "import", "scope": "write"})
            assert made.status_code == 201, made.text
        self.key = str(made.json()["key"])
        self.library = open_library(instance.address, self.key)


@pytest.fixture(scope="module")
def filled(instance: Instance, key: str) -> Library:
    """A library with something of each kind."""
    library = open_library(instance.address, key)
    http = library.http

    def add(name: str, body: bytes, **query: str) -> str:
        made = http.post("/api/v1/documents", params=query, content=body, headers={"x-upload-filename": name})
        assert made.status_code == 202, made.text
        return str(made.json()["document_id"])

    def send(method: str, path: str, body: object) -> Any:  # noqa: ANN401 - any JSON
        done = http.request(method, f"/api/v1{path}", json=body)
        assert done.status_code < 300, done.text
        return done.json() if done.content else None

    def settled() -> bool:
        found = list(library.items("/documents", versions="true"))
        jobs = library.get("/jobs", limit=100)["items"]
        return all(one["status"] == "completed" for one in found) and all(
            one["status"] in {"complete", "cancelled"} for one in jobs
        )

    with working(instance):
        log = add("keeper.md", NOTE.encode())
        add("note.txt", b"The harbour fee is 30 euros since May. The keeper lit no lamp.\n")
        box = Path(instance.data) / "box.zip"
        with zipfile.ZipFile(box, "w") as archive:
            archive.writestr("inside/ferry.html", "<h1>Ferry</h1><p>The ferry runs every hour.</p>")
        add("box.zip", box.read_bytes())
        invoice = add("invoice.pdf", make_invoice(3).pdf)
        add("bytes.bin", b"\x00\x01\x02 nothing to read")
        wait_until(settled, "everything is processed")
        add("keeper.md", NOTE.replace("20", "40").encode(), version_of=log)
        add("copy.txt", b"The harbour fee is 30 euros since May. The keeper lit no lamp.\n", duplicates="new")
        edit = {"title": "Log of the cape", "tags": ["lamps", "boats by night"], "collection": "Quay"}
        send("PATCH", f"/documents/{log}", edit)
        send("PATCH", f"/documents/{invoice}/facts", {"sender": "Anna's Ropes", "due_date": None})
        send("POST", f"/documents/{log}/retry", {})
        send(
            "POST", f"/documents/{log}/highlights", {"quote": "vermilion lamp", "note": "Ask Anna.", "colour": "green"}
        )
        send("POST", "/fields", {"name": "Project", "type": "text"})
        send("PATCH", f"/documents/{log}", {"fields": {"Project": "Coast"}})
        lamps = {"name": "Lamps", "when": {"text": "vermilion lamp"}, "then": {"fields": {"Project": "Coast"}}}
        send("POST", "/rules", {**lamps, "enabled": False})
        send("POST", "/prompts", {"title": "Fees", "content": "Which fees are named?"})
        send("POST", "/views", {"name": "Logs", "filter": {"tag": "lamps"}, "sort": "-date"})
        send("POST", f"/documents/{invoice}/convert", {})
        alone = {"file": ("bill.pdf", make_invoice(4).pdf, "application/pdf")}
        assert http.post("/api/v1/conversions", files=alone, data={"mapping": DEFAULT_MAPPING}).status_code == 202
        book = add("book.pdf", write_book(3))
        wait_until(settled, "everything is processed")
        send("POST", "/analyses", {"document_id": book})
        asked = http.post("/api/v1/ask", json={"question": "How much is the harbour fee?"})
        assert asked.status_code == 200, asked.text
        wait_until(settled, "everything is processed")

    def confirm() -> bool:
        """A comparison that ends meanwhile replaces the connection that was found."""
        (one, *_) = library.items(f"/documents/{log}/connections")
        return http.post(f"/api/v1/connections/{one['id']}/confirm", json={}).is_success

    wait_until(confirm, "a connection is confirmed")
    return library


def test_everything_arrives_and_a_second_import_changes_nothing(
    console: Console, filled: Library, instance: Instance
) -> None:
    assert console.read("export", "taken")["documents"] == len(filled.documents()) == 9
    assert not subprocess.run("sha256sum --quiet --check */*.sha256", shell=True, cwd="taken", check=False).returncode
    page = Path("taken/documents/00001.html").read_text()
    assert "Log of the cape" in page
    links = [one.partition('"')[0] for one in page.split('href="')[1:]]
    assert len(links) > len(filled.documents())
    assert all(Path("taken/documents", unquote(one)).is_file() for one in links)
    anna = Person(instance, "anna@example.org")
    done = console.read("import", "taken", "--key", anna.key)
    assert (done["restored"], done["failed"]) == (9, [])
    assert list(compare(filled, anna.library)) == []
    assert filled.other_records()["threads"]
    assert filled.other_records()["rules"]
    assert {bool(one["document_id"]) for one in filled.items("/conversions")} == {True, False}
    before = anna.library.get("/documents", versions="true")
    again = console.read("import", "taken", "--key", anna.key)
    assert (again["exists"], again["records"], again["failed"]) == (9, 0, [])
    assert anna.library.get("/documents", versions="true") == before
    # What is in the trash stays there, and is reported.
    console.read("rm", before["items"][0]["id"], "--key", anna.key)
    trashed = console.read("import", "taken", "--key", anna.key)
    assert (trashed["exists"], trashed["trashed"]) == (9, 1)
    # In the library that it came from, nothing changes either.
    assert console.read("import", "taken")["exists"] == 9
    assert console.read("export", "taken")["documents"] == 9  # it is complete


def test_a_collection_is_taken_alone(console: Console, filled: Library, instance: Instance) -> None:
    assert console.read("export", "quay", "--collection", "Quay")["documents"] == 1
    berta = Person(instance, "berta@example.org")
    console.read("import", "quay", "--key", berta.key)
    (found,) = berta.library.items("/documents")
    assert (found["title"], found["tags"], found["collection"]) == (
        "Log of the cape",
        ["boats by night", "lamps"],
        "Quay",
    )
    assert not list(berta.library.items("/threads"))
    assert "other documents" in console.run("export", "quay").stderr


def test_a_killed_import_is_finished_by_the_next_one(console: Console, filled: Library, instance: Instance) -> None:
    console.read("export", "taken")
    carl = Person(instance, "carl@example.org")
    for number in (1, 4):
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
            process = preloaded.start(["import", "taken", "--key", carl.key], instance.environment, nowhere.fileno())
        try:
            wait_until(lambda number=number: len(carl.library.documents()) >= number, "some documents have arrived")
        finally:
            process.kill()
            process.wait(PATIENCE_SECONDS)
    assert console.read("import", "taken", "--key", carl.key)["failed"] == []
    assert list(compare(filled, carl.library)) == []


def test_an_interrupted_export_continues_after_its_last_complete_batch(console: Console, filled: Library) -> None:
    console.read("export", "whole")
    shutil.copytree("whole", "part")
    for one in ("complete.json", "index.html"):
        Path("part", one).unlink()
    for kind in ("threads", "analyses", "conversions"):
        shutil.rmtree(Path("part", kind), ignore_errors=True)
    kept = Path("part/documents/00001.jsonl").stat().st_mtime_ns
    assert (transfers.last_batch(Path("part")) or "").startswith("prompts:1:")
    assert console.read("export", "part")["documents"] == 9
    assert Path("part/documents/00001.jsonl").stat().st_mtime_ns == kept
    names = sorted(one.relative_to("whole") for one in Path("whole").rglob("*") if one.is_file())
    assert names == sorted(one.relative_to("part") for one in Path("part").rglob("*") if one.is_file())


def prepare_export(library: Library, **wanted: object) -> str:
    made = library.http.post("/api/v1/exports", json=wanted)
    assert made.status_code == 202, made.text
    return f"/exports/{made.json()['id']}"


def is_complete(library: Library, path: str) -> bool:
    found = library.get(path)
    assert found["status"] in {"queued", "processing", "complete"}, found
    return found["status"] == "complete"


def test_a_prepared_export_survives_killed_workers_and_its_download_is_resumed(
    console: Console, filled: Library, instance: Instance, key: str, tmp_path: Path
) -> None:
    path, content = (made := prepare_export(filled)), f"/api/v1{made}/content"
    assert filled.http.get(content).json()["code"] == "NOT_READY"
    assert filled.http.post("/api/v1/exports", json={}).json()["code"] == "EXPORT_RUNNING"
    for fault in ("stage.commit.before@4=kill", "stage.commit.after@2=kill"):
        environment = {**instance.environment, "OCTAVO_FAULTS": fault, "OCTAVO_LEASE_SECONDS": "2"}
        with running_octavo(["worker"], environment) as worker:
            worker.wait(PATIENCE_SECONDS)
        assert filled.get(path)["status"] in {"queued", "processing"}
    with working(instance):
        wait_until(lambda: is_complete(filled, path), "the export is prepared")
    whole = filled.http.get(content)
    assert whole.headers["accept-ranges"] == "bytes"
    assert len(whole.content) == filled.get(path)["bytes"]
    half = {"range": f"bytes={len(whole.content) // 2}-", "if-range": whole.headers["etag"]}
    rest = filled.http.get(content, headers=half)
    assert rest.status_code == 206
    assert whole.content[: len(whole.content) // 2] + rest.content == whole.content
    assert filled.http.get(content, headers={**half, "if-range": '"another"'}).content == whole.content
    assert filled.http.get(content, headers={"if-none-match": whole.headers["etag"]}).status_code == 304
    with SyncClient(instance.address, key=key) as client:
        made = client.prepared_export(UUID(path[-36:]))
        assert client.prepared_exports().items[0].documents == made.total == len(filled.documents())
        assert client.download_prepared_export(UUID(path[-36:]), tmp_path / "library.tar") == len(whole.content)
    job = filled.get(f"/jobs/{path[-36:]}")
    assert job["progress"] == {"done": made.total, "total": made.total, "unit": "documents"}
    unpack_bytes((tmp_path / "library.tar").read_bytes(), tmp_path / "prepared")
    greta = Person(instance, "greta@example.org")
    assert greta.library.get(path) is None
    assert greta.library.http.get(content).status_code == 404
    assert console.read("import", str(tmp_path / "prepared"), "--key", greta.key)["failed"] == []
    assert list(compare(filled, greta.library)) == []


def unpack_bytes(body: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        archive.extractall(folder, filter="data")


def test_a_prepared_export_is_replaced_by_the_next_one(filled: Library, instance: Instance, tmp_path: Path) -> None:
    with working(instance):
        first = prepare_export(filled, collection="Quay", figures=False)
        wait_until(lambda: is_complete(filled, first), "the export is prepared")
        unpack_bytes(filled.http.get(f"/api/v1{first}/content").content, tmp_path / "quay")
        assert len(list((tmp_path / "quay").glob("documents/00001/*/layout.json"))) == 1
        parts = list(instance.data.glob(f"objects{first}/*.tar"))
        assert parts
        second = prepare_export(filled)
        wait_until(lambda: is_complete(filled, second), "the export is prepared")
    assert filled.http.get(f"/api/v1{first}/content").status_code == 404
    assert [f"/exports/{one['id']}" for one in filled.get("/exports")["items"]] == [second]
    assert not any(one.exists() for one in parts)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda: Path("taken/documents/00001.jsonl").write_bytes(b"{}\n"), "differs"),
        (lambda: Path("taken/complete.json").unlink(), "not a complete Octavo export"),
        (lambda: Path("taken/documents/00001.jsonl").rename("taken/documents/00002.jsonl"), "missing"),
    ],
)
def test_a_damaged_export_is_refused(
    console: Console,
    filled: Library,
    instance: Instance,
    damage: Callable[[], object],
    says: str,
) -> None:
    console.read("export", "taken")
    damage()
    refused = console.run("import", "taken")
    assert refused.returncode == 1
    assert says in refused.stderr


def test_a_changed_file_is_named_and_the_others_arrive(console: Console, filled: Library, instance: Instance) -> None:
    console.read("export", "taken")
    source = next(Path("taken").rglob("bytes.bin"))
    source.write_bytes(b"something else")
    dora = Person(instance, "dora@example.org")
    done = console.read("import", "taken", "--key", dora.key, code=1)
    assert done["restored"] == 8
    assert len(done["failed"]) == 1
    assert "bytes.bin" in done["failed"][0]


def test_the_file_of_a_conversion_without_a_document_is_checked(
    console: Console, filled: Library, instance: Instance
) -> None:
    console.read("export", "taken")
    (file,) = Path("taken/conversions/00001").glob("*.pdf")
    content = file.read_bytes()
    lines = Path("taken/conversions/00001.jsonl").read_text().splitlines()
    (record,) = (one for one in map(json.loads, lines) if not one["document_id"])
    hans, ida = Person(instance, "hans@example.org"), Person(instance, "ida@example.org")

    def restore(person: Person, upload: object) -> httpx.Response:
        return person.library.http.post(f"/api/v1/import/conversions?upload={upload}", json=record)

    def send_file(person: Person, body: bytes) -> str:
        http = person.library.http
        made = http.post("/api/v1/uploads", json={"filename": "bill.pdf", "bytes": len(body)})
        assert made.status_code == 201, made.text
        upload = str(made.json()["upload_id"])
        assert http.put(f"/api/v1/uploads/{upload}/content", content=body).is_success
        return upload

    assert restore(hans, send_file(ida, content)).json()["code"] == "NOT_FOUND"
    assert restore(hans, send_file(hans, content + b" ")).json()["code"] == "EXPORT_INCOMPLETE"
    assert list(hans.library.items("/conversions")) == []
    used = send_file(hans, content)
    assert restore(hans, used).json() == {"added": 1, "skipped": 0}
    # Neither a repeated request nor another file changes anything, and no unused file stays.
    assert restore(hans, used).json() == {"added": 0, "skipped": 1}
    assert restore(hans, send_file(hans, content)).json() == {"added": 0, "skipped": 1}
    (found,) = hans.library.items("/conversions")
    assert hans.library.http.get(f"/api/v1/conversions/{found['id']}/source").content == content
    assert list(hans.library.items("/uploads", state="pending")) == []
    file.write_bytes(b"%PDF-1.7 changed")
    failed = console.read("import", "taken", "--key", ida.key, code=1)["failed"]
    assert [line for line in failed if "bill" in line or ".pdf" in line]


def test_paperless_documents_keep_title_date_tags_and_notes(console: Console, instance: Instance) -> None:
    Path("paper").mkdir()
    Path("paper/2020 Water.txt").write_text("Water bill of the year.")
    fields = {
        "title": "Water bill",
        "created": "2020-03-04T00:00:00Z",
        "correspondent": 3,
        "document_type": 4,
        "tags": [1, 2],
        "original_filename": "scan.txt",
        "archive_serial_number": 12,
    }
    manifest = [
        {"model": "documents.tag", "pk": 1, "fields": {"name": "house"}},
        {"model": "documents.tag", "pk": 2, "fields": {"name": "paid"}},
        {"model": "documents.correspondent", "pk": 3, "fields": {"name": "City Works"}},
        {"model": "documents.documenttype", "pk": 4, "fields": {"name": "Invoice"}},
        {"model": "documents.note", "pk": 1, "fields": {"note": "Paid twice.", "document": 9}},
        {"model": "documents.document", "pk": 9, "fields": fields, "__exported_file_name__": "2020 Water.txt"},
    ]
    Path("paper/manifest.json").write_text(json.dumps(manifest))
    emil = Person(instance, "emil@example.org")
    assert console.read("import", "paper", "--key", emil.key)["added"] == 1
    assert console.read("import", "paper", "--key", emil.key)["exists"] == 1
    (found,) = emil.library.items("/documents")
    assert (found["title"], found["document_date"], found["sender"]) == ("Water bill", "2020-03-04", "City Works")
    assert (found["tags"], found["kind"]) == (["house", "paid"], "invoice")
    assert found["metadata"]["note"] == "Paid twice."
    manifest[-1]["__exported_file_name__"] = "../../etc/passwd"
    Path("paper/manifest.json").write_text(json.dumps(manifest))
    assert console.run("import", "paper", "--key", emil.key).returncode == 1


def test_a_folder_tree_and_an_mbox_file_are_imported(console: Console, instance: Instance) -> None:
    Path("tree/Taxes/2024").mkdir(parents=True)
    Path("tree/Taxes/2024/form.txt").write_text("A form of the tax office.")
    Path("tree/loose.txt").write_text("A loose sheet.")
    Path("mail.mbox").write_text("From a\nSubject: Hello\n\nFirst.\n\nFrom b\nSubject: Again\n\nSecond.\n")
    fritz = Person(instance, "fritz@example.org")
    assert console.run("import", "tree").returncode == 1  # a folder must be named
    assert console.read("import", "tree", "--from", "folder", "--key", fritz.key)["added"] == 2
    assert console.read("import", "mail.mbox", "--key", fritz.key)["added"] == 2
    assert console.read("import", "mail.mbox", "--key", fritz.key)["exists"] == 2
    found = {one["filename"]: one["collection"] for one in fritz.library.items("/documents")}
    assert found == {"form.txt": "Taxes / 2024", "loose.txt": None, "Hello.eml": None, "Again.eml": None}
