"""An export may come from a stranger: what Octavo would not write is refused, and nothing of others is used."""

from __future__ import annotations

import io
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from octavo.cli.transfers import DamagedExport, safe_path, unpack
from octavo.records.exports import KINDS
from octavo.web.rooms.library import transfers
from tests.support.visitors import House, refused

TEXT = "# Log\n\nThe keeper lit the lamp.\n"
NOW = "2026-03-04T05:06:07Z"
IMPORT = "/api/v1/import/documents?import_id=00000000-0000-7000-8000-000000000000"


async def upload(client: httpx.AsyncClient, body: bytes) -> str:
    begun = await client.post("/api/v1/uploads", json={"filename": "log.md", "duplicates": "new"})
    sent = await client.put(f"/api/v1/uploads/{begun.json()['upload_id']}/content", content=body)
    assert sent.status_code == 200, sent.text
    return str(begun.json()["upload_id"])


def record(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    digest = sha256(TEXT.encode()).hexdigest()
    identity = str(uuid4())
    files = [{"kind": "source", "sha256": digest}, {"kind": "markdown", "revision": 1, "sha256": digest}]
    return {
        "id": identity,
        "family_id": identity,
        "filename": "log.md",
        "content_type": "text/markdown",
        "source_type": "markdown",
        "sha256": digest,
        "bytes": len(TEXT),
        "status": "completed",
        "quality": "full",
        "revision": 1,
        "text_ready": True,
        "title": "Log",
        "created_at": NOW,
        "updated_at": NOW,
        "files": files,
        **more,
    }


def layout(**chunk: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {"chunks": [{"index": 0, "start": 0, "end": len(TEXT) - 1, "word_count": 6, **chunk}]}


async def send(client: httpx.AsyncClient, source: str, **body: Any) -> httpx.Response:  # noqa: ANN401 - any JSON
    whole = {"record": record(), "layout": layout(), "texts": {"markdown-1": TEXT}, "uploads": {"source": source}}
    return await client.post(IMPORT, json=whole | body)


async def test_what_octavo_would_not_write_is_refused_and_changes_nothing(house: House) -> None:
    client = await house.browser()
    fact = {"made_by": "person", "name": "shoe size", "confidence": 1, "source": "person", "status": "confirmed"}
    hostile: list[tuple[dict[str, Any], str]] = [
        ({"layout": layout(end=10**6)}, "INVALID_EXPORT"),
        ({"layout": layout(start=-1)}, "INVALID_EXPORT"),
        ({"layout": {"chunks": layout()["chunks"] * 2}}, "INVALID_EXPORT"),
        ({"layout": {"chunks": "many"}}, "INVALID_EXPORT"),
        ({"texts": {"markdown-1": "Another text."}}, "EXPORT_INCOMPLETE"),
        ({"texts": {}}, "EXPORT_INCOMPLETE"),
        ({"uploads": {}}, "EXPORT_INCOMPLETE"),
        ({"record": record(sha256="0" * 64)}, "EXPORT_INCOMPLETE"),
        ({"record": record(bytes=1)}, "EXPORT_INCOMPLETE"),
        ({"record": record(source_type="exe")}, "INVALID_EXPORT"),
        ({"record": record(facts=[{**fact, "value": "44", "made_at": NOW}])}, "INVALID_EXPORT"),
        ({"record": record(facts=[{**fact, "name": "hat", "value": "44", "made_at": NOW}])}, "INVALID_EXPORT"),
        ({"record": record(source_url="javascript:alert(1)")}, "INVALID_EXPORT"),
        ({"record": record(title="a\0b")}, "INVALID_EXPORT"),
        ({"record": record(metadata={"a": "\0"})}, "INVALID_EXPORT"),
        ({"record": record(revision=0)}, "INVALID_EXPORT"),
    ]
    for body, code in hostile:
        refused(await send(client, await upload(client, TEXT.encode()), **body), 422, code)
    assert (await client.get("/api/v1/documents")).json()["items"] == []
    done = await send(client, await upload(client, TEXT.encode()), record=record(also_named=["diary.md"]))
    assert done.json()["state"] == "restored", done.text
    (found,) = (await client.get("/api/v1/documents")).json()["items"]
    assert (found["title"], found["status"], found["also_named"]) == ("Log", "completed", ["diary.md"])
    assert (await client.get(f"/api/v1/documents/{found['id']}/markdown")).text == TEXT


async def test_a_repeated_request_keeps_the_file_of_the_restored_document(house: House) -> None:
    client = await house.browser()
    source, given = await upload(client, TEXT.encode()), record()
    first = (await send(client, source, record=given)).json()
    again = (await send(client, source, record=given)).json()
    assert (first["state"], again) == ("restored", {"document_id": first["document_id"], "state": "exists"})
    assert (await client.get(f"/api/v1/documents/{first['document_id']}/source")).text == TEXT


async def test_results_far_larger_than_their_source_are_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await house.browser()
    monkeypatch.setattr(transfers, "MOST_BESIDE", len(TEXT) - 1)
    monkeypatch.setattr(transfers, "RESULT_RATIO", 0)
    refused(await send(client, await upload(client, TEXT.encode())), 413, "TOO_LARGE")
    monkeypatch.setattr(transfers, "MOST_BESIDE", len(TEXT))
    assert (await send(client, await upload(client, TEXT.encode()))).json()["state"] == "restored"


async def test_files_and_documents_of_others_are_never_used(house: House) -> None:
    owner, stranger = await house.person("owner@example.org"), await house.person("stranger@example.org")
    source = await upload(owner, TEXT.encode())
    refused(await send(stranger, source), 404, "NOT_FOUND")
    given = record()
    done = (await send(owner, source, record=given)).json()
    again = (await send(stranger, await upload(stranger, TEXT.encode()), record=given)).json()
    assert again["state"] == "restored"
    assert done["document_id"] != again["document_id"] != given["id"]
    known = {"documents": [{"id": given["id"], "sha256": given["sha256"]}]}
    assert (await stranger.post("/api/v1/import/known", json=known)).json()["items"][given["id"]] == again[
        "document_id"
    ]
    part = {"number": 0, "name": "a", "document_id": done["document_id"], "sha256": "0" * 64}
    parts = {"parts": [{"id": done["document_id"], "sha256": "0" * 64, "parts": [part]}]}
    assert (await stranger.post("/api/v1/import/records", json=parts)).json() == {"added": 0, "skipped": 1}
    assert await house.rows("SELECT FROM document_parts") == []


async def test_hostile_records_are_refused(house: House) -> None:
    client = await house.browser()
    thread = {"id": str(uuid4()), "title": "Fee?", "created_at": NOW, "updated_at": NOW}
    turn = {"id": str(uuid4()), "number": 1, "question": "Fee?", "status": "answered", "asked_at": NOW}
    hostile: list[dict[str, Any]] = [
        {"threads": [{**thread, "turns": [turn]}]},  # answered without a result
        {"threads": [{**thread, "turns": [{**turn, "citations": [{"quote": "x"}]}]}]},
        {"views": [{"id": str(uuid4()), "name": "All", "filter": {"shoe": 1}, "sort": "newest", "created_at": NOW}]},
        {"verdicts": [{"id": "00", "verdict": "confirmed", "decided_at": NOW}]},
        {"prompts": [{}] * 501},
        {"spoons": []},
    ]
    for body in hostile:
        refused(await client.post("/api/v1/import/records", json=body), 422, "INVALID_EXPORT")
    refused(await client.post("/api/v1/import/conversions", json={"id": str(uuid4())}), 422, "INVALID_EXPORT")
    for place in ("documents:1:x:1", "spoons:1:00000000-0000-7000-8000-000000000000:1", "verdicts:1:00:1"):
        refused(await client.get("/api/v1/export", params={"resume": place}), 422, "INVALID_RESUME")


async def test_an_empty_library_has_an_export(house: House) -> None:
    client = await house.browser()
    made = await client.get("/api/v1/export")
    with tarfile.open(fileobj=io.BytesIO(made.content)) as archive:
        assert archive.getnames() == ["octavo-export.json", "index.html", "complete.json"]
    assert set(KINDS) >= {"documents", "threads", "analyses", "conversions"}


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "a/../../b", "a\\b", "a\0b", "", "C:/x"])
def test_paths_outside_the_export_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DamagedExport):
        safe_path(tmp_path, name)


def test_links_in_an_export_are_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/link").symlink_to("/etc")
    with pytest.raises(DamagedExport):
        safe_path(tmp_path / "out", "link/passwd")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("evil")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    packed.seek(0)
    with pytest.raises(DamagedExport):
        unpack(packed, tmp_path / "out")
