"""Every way in which a server or the network can misbehave becomes one clear error, or is not noticed at all."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from octavo.client import Client, Filters, RemoteProblem, Unreachable
from octavo.client.transport import Damaged, FileChanged, NotOctavo, RetryPolicy
from octavo.core.errors import StorageFailed
from tests.integration.client.servers import CUT, HANG_UP, answer, serving
from tests.support.instance import free_port

EMPTY: dict[str, object] = {"items": [], "next_cursor": None}
PROBLEM = {"type": "about:blank", "title": "Too much.", "status": 429, "code": "RATE_LIMIT", "detail": "Go away."}
UNCHECKED = {"bytes": None, "sha256": None}
COLLECTION = {
    "id": str(uuid4()),
    "name": "Taxes",
    "created_at": "2026-01-01T00:00:00Z",
    "keep_days": None,
    "documents": 0,
}
IDS = {name: str(uuid4()) for name in ("upload_id", "document_id", "process_id")}


class Sleeps:
    """A clock that only notes."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def client_of(
    address: str, sleeps: Sleeps | None = None, *, key: str | None = None, session: str | None = None
) -> Client:
    patience = RetryPolicy(pauses=(0.1, 0.2), sleep=sleeps or Sleeps())
    return Client(address, key=key, session=session, retry_policy=patience, hint="Start it.")


# Refusals ----------------------------------------------------------------------------------------------------------


async def test_a_problem_becomes_an_error_with_the_servers_words() -> None:
    reply = answer(409, PROBLEM | {"status": 409, "code": "DUPLICATE"})
    async with serving(reply) as server, client_of(server.address) as client:
        with pytest.raises(RemoteProblem) as refused:
            await client.list_keys()
    error = refused.value
    assert (error.code, error.status, error.title, error.detail) == ("DUPLICATE", 409, "Too much.", "Go away.")
    assert error.line == str(error) == "Too much. Go away."
    assert (RemoteProblem.code, RemoteProblem.status) == ("UNKNOWN", 500)


async def test_a_title_that_is_repeated_as_detail_is_printed_once() -> None:
    reply = answer(404, PROBLEM | {"detail": PROBLEM["title"]})
    async with serving(reply) as server, client_of(server.address) as client:
        with pytest.raises(RemoteProblem, match=r"^Too much\.$"):
            await client.show_job(uuid4())


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (answer(502, "<h1>Bad Gateway</h1>"), "502"),  # of a proxy before it
        (answer(200, "<h1>Welcome to my router</h1>"), "did not return JSON"),
        (answer(200, {"hello": "world"}), "items"),  # another program's API
        (answer(200, [1, 2]), "the whole body"),
        (answer(302, None, location="https://elsewhere.example/login"), "redirects to https://elsewhere.example/login"),
    ],
)
async def test_a_response_from_another_server_is_reported(reply: bytes, said: str) -> None:
    async with serving(reply) as server, client_of(server.address) as client:
        with pytest.raises(NotOctavo, match=said):
            await client.list_keys()
    assert len(server.requests) == 1


async def test_fields_of_a_newer_server_do_no_harm() -> None:
    limits = {"upload_bytes": 1, "stored_bytes": None, "concurrent_uploads": 2, "pages": 3}
    body = {
        "version": "9",
        "limits": limits,
        "trash_days": 30,
        "sign_up": True,
        "extraction": ["plain"],
        "colour": "blue",
    }
    async with serving(answer(200, body)) as server, client_of(server.address) as client:
        assert (await client.read_settings()).limits.upload_bytes == 1


# Waiting -----------------------------------------------------------------------------------------------------------


async def test_the_server_is_asked_later_when_it_says_so() -> None:
    sleeps = Sleeps()
    script = (answer(429, PROBLEM, retry_after="7"), answer(503, PROBLEM, retry_after="2"), answer(200, EMPTY))
    async with serving(*script) as server, client_of(server.address, sleeps) as client:
        assert (await client.list_keys()).items == []
    assert sleeps.slept == [7, 2]


async def test_a_wait_that_is_too_long_is_reported_as_an_error() -> None:
    sleeps = Sleeps()
    async with serving(answer(429, PROBLEM, retry_after="900")) as server, client_of(server.address, sleeps) as client:
        with pytest.raises(RemoteProblem, match="Too much"):
            await client.list_keys()
    assert (sleeps.slept, len(server.requests)) == ([], 1)


async def test_all_waits_together_have_an_end() -> None:
    sleeps = Sleeps()
    async with serving(answer(429, PROBLEM, retry_after="50")) as server, client_of(server.address, sleeps) as client:
        with pytest.raises(RemoteProblem):
            await client.list_keys()
    assert sum(sleeps.slept) <= 300


async def test_a_server_that_names_no_time_is_asked_again_with_growing_pauses() -> None:
    sleeps = Sleeps()
    async with serving(answer(503, PROBLEM)) as server, client_of(server.address, sleeps) as client:
        with pytest.raises(RemoteProblem):
            await client.list_keys()
    assert (sleeps.slept, len(server.requests)) == ([0.1, 0.2], 3)


async def test_what_must_not_be_done_twice_waits_only_when_it_was_not_done() -> None:
    async with serving(answer(503, PROBLEM, retry_after="1")) as server, client_of(server.address) as client:
        with pytest.raises(RemoteProblem):
            await client.test_provider("openai")
    assert server.requests == ["POST /api/v1/models/openai/test"]
    script = (answer(429, PROBLEM, retry_after="1"), answer(503, PROBLEM))
    async with serving(*script) as server, client_of(server.address) as client:
        with pytest.raises(RemoteProblem):
            await client.test_provider("openai")
    assert len(server.requests) == 2


# Broken connections ------------------------------------------------------------------------------------------------


async def test_what_may_be_done_twice_is_made_again_after_a_broken_connection() -> None:
    sleeps = Sleeps()
    async with serving(HANG_UP, HANG_UP, answer(200, EMPTY)) as server, client_of(server.address, sleeps) as client:
        assert (await client.list_documents(Filters(q="a b", trashed=True), limit=3)).items == []
    assert server.requests == ["GET /api/v1/documents?q=a+b&trashed=true&versions=false&limit=3"] * 3
    assert sleeps.slept == [0.1, 0.2]


async def test_what_must_not_be_done_twice_is_not() -> None:
    async with serving(HANG_UP, answer(201, {})) as server, client_of(server.address) as client:
        with pytest.raises(Unreachable, match="broke"):
            await client.test_provider("openai")
    assert len(server.requests) == 1
    assert "idempotency-key" not in server.headers[0]


async def test_all_attempts_to_make_something_have_the_same_key() -> None:
    running = answer(409, PROBLEM | {"code": "IDEMPOTENCY_KEY_IN_USE"}, retry_after="2")
    busy, sleeps = answer(503, PROBLEM, retry_after="1"), Sleeps()
    script = (HANG_UP, running, busy, answer(201, COLLECTION))
    async with serving(*script) as server, client_of(server.address, sleeps) as client:
        assert (await client.add_collection("Taxes")).name == "Taxes"
        await client.add_collection("Taxes")
    assert sleeps.slept == [0.1, 2, 1]
    keys = [headers["idempotency-key"] for headers in server.headers]
    assert (len(set(keys[:4])), len(set(keys))) == (1, 2)


async def test_another_conflict_is_not_repeated() -> None:
    taken = answer(409, PROBLEM | {"code": "NAME_TAKEN"}, retry_after="2")
    async with serving(taken) as server, client_of(server.address) as client:
        with pytest.raises(RemoteProblem) as refused:
            await client.add_collection("Taxes")
    assert (refused.value.code, len(server.requests)) == ("NAME_TAKEN", 1)


async def test_a_deletion_whose_answer_was_lost_is_done() -> None:
    gone = answer(404, PROBLEM | {"code": "NOT_FOUND"})
    async with serving(HANG_UP, gone) as server, client_of(server.address) as client:
        await client.revoke_key(uuid4())
    async with serving(gone) as server, client_of(server.address) as client:
        with pytest.raises(RemoteProblem):
            await client.revoke_key(uuid4())


async def test_an_unreachable_server_is_retried_and_then_reported_with_advice() -> None:
    sleeps = Sleeps()
    async with client_of(f"http://127.0.0.1:{free_port()}", sleeps) as client:
        with pytest.raises(Unreachable) as failed:
            await client.make_key("laptop", "read")
    assert (failed.value.code, sleeps.slept) == ("NETWORK", [0.1, 0.2])
    assert "does not accept connections" in failed.value.line
    assert failed.value.line.endswith("Start it.")


# Whom it talks to, and as whom -------------------------------------------------------------------------------------


async def test_a_key_and_a_session_are_sent_in_the_right_headers() -> None:
    async with serving(answer(200, EMPTY)) as server:
        async with client_of(server.address, key="octavo_canary") as client:
            await client.list_keys()
        async with client_of(server.address, session="secret") as client:
            await client.list_keys()
    by_key, by_session = server.headers
    assert (by_key["authorization"], "cookie" in by_key) == ("bearer octavo_canary", False)
    assert (by_session["cookie"], "authorization" in by_session) == ("octavo_session=secret", False)


async def test_no_proxy_gets_between_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    async with serving(answer(200, EMPTY)) as server, client_of(server.address) as client:
        assert (await client.list_keys()).items == []


# Downloads ---------------------------------------------------------------------------------------------------------


def part(status: int, text: str, whole: int, **headers: str) -> bytes:
    """The beginning of a response that promises more than it sends."""
    return answer(status, text, etag='"v1"', **headers).replace(
        f"content-length: {len(text)}".encode(), f"content-length: {whole}".encode()
    )


def files_in(folder: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in folder.iterdir()}


async def test_a_broken_download_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file, sleeps, seen = tmp_path / "x.bin", Sleeps(), list[int]()
    script = (CUT + part(200, "abc", 9), CUT + part(206, "def", 6), answer(206, "ghi", etag='"v1"'))
    async with serving(*script) as server, client_of(server.address, sleeps) as client:
        assert await client.download_source(uuid4(), file, on_progress=seen.append) == 9
    assert [(one.get("range"), one.get("if-range")) for one in server.headers] == [
        (None, None),
        ("bytes=3-", '"v1"'),
        ("bytes=6-", '"v1"'),
    ]
    assert (sleeps.slept, seen[-1]) == ([0.1, 0.1], 9)
    assert files_in(tmp_path) == {"x.bin": "abcdefghi"}


async def test_a_file_that_changed_in_between_is_downloaded_from_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "x.bin"
    script = (CUT + part(200, "old text", 20), answer(200, "new", etag='"v2"'))
    async with serving(*script) as server, client_of(server.address) as client:
        assert await client.download_markdown(uuid4(), file) == 3
    assert file.read_text() == "new"


async def test_a_download_that_fails_leaves_no_file_and_keeps_an_older_one(tmp_path: Path) -> None:
    file = tmp_path / "x.bin"
    file.write_text("older")
    async with serving(CUT + part(200, "", 9)) as server, client_of(server.address) as client:
        with pytest.raises(Unreachable):
            await client.download_source(uuid4(), file)
    async with serving(answer(404, PROBLEM)) as server, client_of(server.address) as client:
        with pytest.raises(RemoteProblem):
            await client.download_source(uuid4(), file)
        with pytest.raises(StorageFailed):
            await client.download_source(uuid4(), tmp_path / "none" / "x")
    assert files_in(tmp_path) == {"x.bin": "older"}


# Files -------------------------------------------------------------------------------------------------------------


async def test_bytes_are_never_sent_to_another_address_than_the_servers(tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    file.write_bytes(bytes(100))
    async with serving(answer(500, PROBLEM)) as elsewhere:
        ticket = IDS | {"put_url": f"{elsewhere.address}/bucket/incoming?signature=1"}
        digest = "cd00e292c5970d3c5e2f0ffa5171e555bc46bfc4faddfb4a418b6840b86e79a3"  # of 100 zeros
        script = (answer(201, ticket), answer(200, {"bytes": 100, "sha256": digest}))
        finalized = answer(200, {"state": "uploaded", **IDS, **UNCHECKED})
        async with serving(*script, finalized) as server, client_of(server.address, key="k") as client:
            outcome = await client.add_file(file, duplicates="new")
    assert outcome.state == "uploaded"
    assert elsewhere.requests == []
    upload = IDS["upload_id"]
    assert server.requests == [
        "POST /api/v1/uploads",
        f"PUT /api/v1/uploads/{upload}/content",
        f"POST /api/v1/uploads/{upload}/finalize",
    ]


@pytest.mark.parametrize("duplicates", ["reuse", "reject"])
async def test_other_bytes_than_were_sent_are_noticed(tmp_path: Path, duplicates: str) -> None:
    file = tmp_path / "notes.md"
    file.write_text("something")
    wrong = {"state": "uploaded", **IDS, "put_url": "/", "sha256": "00" * 32, "bytes": 9}
    async with serving(answer(201, wrong)) as server, client_of(server.address) as client:
        with pytest.raises(Damaged, match=r"notes\.md"):
            await client.add_file(file, duplicates="reuse" if duplicates == "reuse" else "reject")


async def test_a_name_of_any_bytes_arrives_percent_encoded(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("something")
    async with (
        serving(answer(202, {"state": "uploaded", **IDS, **UNCHECKED})) as server,
        client_of(server.address) as client,
    ):
        for name in ("Ü & \n資.md", "caf\udce9.md", "%41.md"):
            await client.add_file(file, name=name)
    sent = [headers["x-upload-filename"] for headers in server.headers]
    assert sent == ["%c3%9c%20%26%20%0a%e8%b3%87.md", "caf%e9.md", "%2541.md"]


async def test_a_file_that_became_shorter_is_not_sent_as_if_it_were_whole(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_bytes(bytes(600_000))

    def shorten(sent: int) -> None:
        file.write_bytes(b"")

    async with (
        serving(answer(202, {"state": "uploaded", **IDS, **UNCHECKED})) as server,
        client_of(server.address) as client,
    ):
        with pytest.raises(FileChanged, match=r"log\.txt"):
            await client.add_file(file, on_progress=shorten)
    assert server.requests == []


async def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    async with serving(answer(500, PROBLEM)) as server, client_of(server.address) as client:
        for path in (tmp_path / "none", tmp_path):
            with pytest.raises(StorageFailed, match=path.name):
                await client.add_file(path)
    assert server.requests == []
