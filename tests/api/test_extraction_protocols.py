"""Programs that speak the protocols of docling-serve and Open WebUI get the text of a file, and nothing is stored."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from docling_serve_sdk import ConvertDocumentsRequestOptions, DoclingClient, OutputFormat
from docling_serve_sdk.client import DoclingAPIError

from octavo.web.rooms.extraction.protocols import MOST_PER_OWNER
from tests.support.passwords import PASSWORD
from tests.support.pdf import Pdf, Words
from tests.support.postgres import Server
from tests.support.processes import PATIENCE_SECONDS
from tests.support.sites import Answer, Site, running_site
from tests.support.web import WebProcess, running_web

FILE, SOURCE, PROCESS = "/v1/convert/file", "/v1/convert/source", "/process"
TABLES = ("documents", "uploads", "objects", "jobs", "owners", "events")
UPLOAD_BYTES = 200_000
TWO_PAGES = Pdf([[Words("The gull flies at dawn.")], [Words("The tide turns at noon.")]])


@dataclass(frozen=True, slots=True)
class Place:
    web: WebProcess
    site: Site
    key: str
    session: httpx.Client

    def client(self, **headers: str) -> httpx.Client:
        return httpx.Client(base_url=self.web.address, timeout=PATIENCE_SECONDS, headers=headers, trust_env=False)

    def rows(self) -> dict[str, int]:
        with psycopg.connect(self.web.database_info) as connection:
            return {
                table: connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()[0][0] for table in TABLES
            }


@pytest.fixture(scope="module")
def place(newest_server: Server) -> Iterator[Place]:
    with (
        running_site() as site,
        running_web(newest_server, fetch_allow=site.place, upload_bytes=UPLOAD_BYTES) as web,
        httpx.Client(base_url=web.address, timeout=PATIENCE_SECONDS, trust_env=False) as person,
    ):
        assert person.post("/api/v1/account", json={"email": "ada@example.org", "password": PASSWORD}).is_success
        key = person.post("/api/v1/keys", json={"name": "k", "scope": "read"}).json()["key"]
        yield Place(web, site, key, person)


@pytest.fixture
def program(place: Place) -> Iterator[httpx.Client]:
    """As docling's own clients send their key."""
    with place.client(**{"x-api-key": place.key}) as client:
        yield client


@pytest.fixture(scope="module")
def pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "two pages.pdf"
    path.write_bytes(TWO_PAGES.write())
    return path


def convert(client: httpx.Client, name: str, data: bytes, **options: Any) -> httpx.Response:  # noqa: ANN401
    return client.post(FILE, files={"files": (name, data, "application/octet-stream")}, data=options)


# docling-serve -------------------------------------------------------------------------------------------------------


def test_a_client_of_docling_serve_gets_the_text_and_nothing_is_stored(place: Place, pdf: Path) -> None:
    client, before = DoclingClient(place.web.address, api_key=place.key), place.rows()
    assert client.health_check().status == "ok"
    options = ConvertDocumentsRequestOptions(to_formats=[OutputFormat.MD, OutputFormat.TEXT, OutputFormat.JSON])
    found = client.convert_file(pdf, options)
    assert (found.status, found.errors, found.processing_time > 0) == ("success", [], True)
    assert found.document == {
        "filename": "two pages.pdf",
        "md_content": "The gull flies at dawn.\n\nThe tide turns at noon.\n",
        "text_content": "The gull flies at dawn.\n\nThe tide turns at noon.",
        "json_content": None,
        "html_content": None,
        "doctags_content": None,
    }
    assert place.rows() == before


def test_a_client_of_docling_serve_gets_the_reason_of_a_failure(place: Place, tmp_path: Path) -> None:
    client = DoclingClient(place.web.address, api_key=place.key)
    path = tmp_path / "locked.pdf"
    path.write_bytes(Pdf([[Words("Secret.")]]).write("x"))
    with pytest.raises(DoclingAPIError, match="Password-protected") as refused:
        client.convert_file(path)
    assert refused.value.status_code == 422
    with pytest.raises(DoclingAPIError) as refused:
        DoclingClient(place.web.address, api_key="octavo_wrong").convert_file(path)
    assert refused.value.status_code == 401


def test_pages_are_selected_and_marked(program: httpx.Client, pdf: Path) -> None:
    data = pdf.read_bytes()
    some = convert(program, "a.pdf", data, to_formats=["md", "text"], page_range=["2", "9"]).json()["document"]
    assert (some["md_content"], some["text_content"]) == ("The tide turns at noon.\n", "The tide turns at noon.")
    marked = convert(program, "a.pdf", data, to_formats="md", md_page_break_placeholder="---8<---").json()["document"]
    assert marked["md_content"] == "The gull flies at dawn.\n\n---8<---\n\nThe tide turns at noon.\n"
    assert marked["text_content"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"to_formats": "json"}, "to_formats"),
        ({"target_type": "zip"}, "target_type"),
        ({"page_range": ["0", "2"]}, "page_range"),
        ({"page_range": ["2"]}, "page_range"),
    ],
)
def test_impossible_options_are_refused(program: httpx.Client, options: dict[str, Any], words: str) -> None:
    answer = convert(program, "a.txt", b"words", **options)
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION")
    assert words in answer.json()["detail"]


def test_a_source_is_sent_in_base64_or_fetched_from_a_public_address(place: Place, program: httpx.Client) -> None:
    """As RAGFlow and Haystack send it."""
    content = base64.b64encode(b"# Gulls\n\nThey fly.\n").decode()
    wanted: dict[str, Any] = {
        "options": {"from_formats": ["pdf"], "to_formats": ["json", "md", "text"], "do_chunking": True},
        "sources": [{"kind": "file", "filename": "gulls.md", "base64_string": content}],
        "target": {"kind": "inbody"},
    }
    answer = program.post(SOURCE, json=wanted)
    assert answer.status_code == 200, answer.text
    assert answer.json()["document"]["md_content"] == "# Gulls\n\nThey fly.\n"
    assert answer.json()["document"]["text_content"] == "Gulls\n\nThey fly."
    place.site.routes["/gulls"] = Answer(200, b"<html><body><main><h1>Gulls</h1><p>They fly.</p></main></body></html>")
    fetched = program.post(SOURCE, json={"sources": [{"kind": "http", "url": f"http://{place.site.place}/gulls"}]})
    assert (fetched.json()["document"]["filename"], fetched.json()["status"]) == ("gulls", "success")
    assert "They fly." in fetched.json()["document"]["md_content"]
    for sources, code in (
        ([{"kind": "http", "url": f"http://{place.site.place}/nothing"}], "PAGE_NOT_FOUND"),
        ([{"kind": "http", "url": "http://127.0.0.1:1/x"}], "FETCH_REFUSED"),
        ([{"kind": "http", "url": "file:///etc/passwd"}], "BAD_URL"),
        ([{"kind": "http", "url": "https://example.org/", "headers": {"Cookie": "x"}}], "VALIDATION"),
        ([{"kind": "file", "filename": "a.txt", "base64_string": "%"}], "VALIDATION"),
        ([{"kind": "s3"}], "VALIDATION"),
        ([wanted["sources"][0]] * 2, "VALIDATION"),
        ([], "VALIDATION"),
    ):
        refused = program.post(SOURCE, json=wanted | {"sources": sources})
        assert refused.json()["code"] == code, refused.text
        assert 400 <= refused.status_code < 500


# Open WebUI ----------------------------------------------------------------------------------------------------------


def process(client: httpx.Client, name: str, data: bytes) -> httpx.Response:
    return client.put(PROCESS, content=data, headers={"x-filename": name, "content-type": "application/pdf"})


def test_open_webui_gets_each_page_with_its_number(place: Place, pdf: Path) -> None:
    before = place.rows()
    with place.client(authorization=f"Bearer {place.key}") as client:
        answer = process(client, "Zwei%20Seiten%20%C3%BC.pdf", pdf.read_bytes())
    about = {"source": "Zwei Seiten ü.pdf", "total_pages": 2}
    assert answer.json() == [
        {"page_content": "The gull flies at dawn.", "metadata": about | {"page": 0, "page_label": "1"}},
        {"page_content": "The tide turns at noon.", "metadata": about | {"page": 1, "page_label": "2"}},
    ]
    assert place.rows() == before


def test_a_file_without_pages_is_one_entry(program: httpx.Client) -> None:
    (entry,) = process(program, "a.md", b"---\ntitle: Gulls\n---\n\n# Gulls\n\nThey fly.\n").json()
    assert "They fly." in entry["page_content"]
    assert (entry["metadata"]["title"], entry["metadata"]["source"]) == ("Gulls", "a.md")


def test_open_webui_gets_the_reason_of_a_failure(program: httpx.Client) -> None:
    answer = process(program, "a.pdf", Pdf([[]]).write())
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (
        *(422, "EMPTY", "No extractable text."),
    )
    assert process(program, "a.mp4", b"\x00\x00\x00\x18ftypmp42" + bytes(64)).json()["code"] == "NOT_SUPPORTED"


# Access and limits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_line", [f"POST {FILE}", f"POST {SOURCE}", f"PUT {PROCESS}"])
def test_only_an_api_key_opens_these_routes(place: Place, request_line: str) -> None:
    method, path = request_line.split()
    before = place.rows()
    with (
        place.client() as nobody,
        place.client(authorization="Bearer octavo_wrong") as wrong,
        place.client(**{"x-api-key": "not a key of Octavo"}) as other,
    ):
        for client in (nobody, wrong, other, place.session):
            answer = client.request(method, path, content=b"x")
            assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")
            assert answer.json()["detail"]
    assert place.rows() == before


def test_a_busy_account_is_refused_before_anything_is_read_or_fetched(place: Place, program: httpx.Client) -> None:
    owner, other = place.session.get("/api/v1/session").json()["owner_id"], uuid4()
    with psycopg.connect(place.web.database_info, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO slots (key, process, number, seen_at) VALUES (%s, %s, %s, clock_timestamp() + interval '1 h')",
            (f"extractions {owner}", other, MOST_PER_OWNER),
        )
        try:
            answers = [
                program.post(SOURCE, json={"sources": [{"kind": "http", "url": f"{place.site.url}/late"}]}),
                program.post(SOURCE, content=b"not JSON"),
                program.post(FILE, files={"files": ("a.md", b"# A")}),
                process(program, "a.md", b"# A"),
            ]
        finally:
            connection.execute("DELETE FROM slots WHERE process = %s", (other,))
    assert [one.status_code for one in answers] == [429] * 4
    assert "/late" not in str(place.site.asked)


def test_a_file_over_the_limit_is_refused(program: httpx.Client) -> None:
    for size in (UPLOAD_BYTES + 1, UPLOAD_BYTES + (2 << 20)):
        for answer in (process(program, "a.txt", b"x" * size), convert(program, "a.txt", b"x" * size)):
            assert (answer.status_code, answer.json()["code"]) == (413, "TOO_LARGE")
