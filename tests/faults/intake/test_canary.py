"""Secrets and what documents say go through a whole installation, also where it fails, and come out nowhere else."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from octavo.database import connect
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.owners import make_sign_in_link
from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder
from tests.support.processes import PATIENCE_SECONDS, THE_USUAL_WAY, wait_until
from tests.support.s3 import running_s3_server

LARGEST = 200_000
CLOSED = "127.0.0.1:9"  # nobody listens there


@dataclass(slots=True)
class Canary:
    """An installation on real S3 storage that logs all it can, what must stay inside, and what strangers were told."""

    instance: Instance
    secrets: dict[str, str]
    texts: dict[str, str]
    told: list[str] = field(default_factory=list[str])

    def browser(self, **headers: str) -> httpx.Client:
        return httpx.Client(
            base_url=self.instance.address,
            headers=headers,
            trust_env=False,
            timeout=PATIENCE_SECONDS,
        )

    def stranger(self) -> httpx.Client:
        hooks = {"response": [self.listen]}
        return httpx.Client(
            base_url=self.instance.address,
            trust_env=False,
            timeout=PATIENCE_SECONDS,
            event_hooks=hooks,
        )

    def listen(self, answer: httpx.Response) -> None:
        answer.read()
        self.told.append(f"{answer.status_code} {answer.headers} {answer.text}")

    @property
    def database_info(self) -> str:
        return EmbeddedPostgres(DataFolder(self.instance.data)).connection_info()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database_info, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def installation() -> Generator[tuple[Instance, dict[str, str]]]:
    """It takes long to start. The secrets of its settings come with it."""
    s3_secret = f"s3{token_hex(12)}"
    names = ("mail password", "Gemini key", "OpenAI key", "Anthropic key", "metrics token")
    settings_secrets = {name: token_hex(12) for name in names}
    with running_s3_server(s3_secret) as server, open_folder() as folder:
        settings: dict[str, object] = {
            "storage_url": f"s3://{server.bucket}/canary",
            "s3_endpoint": server.endpoint,
            "s3_access_key": server.access_key,
            "s3_secret_key": s3_secret,
            "log_level": "debug",
            "upload_bytes": LARGEST,
            "fetch_allow": CLOSED,
            "smtp_url": f"smtp://ada:{settings_secrets['mail password']}@{CLOSED}",
            "gemini_key": settings_secrets["Gemini key"],
            "openai_key": settings_secrets["OpenAI key"],
            "anthropic_key": settings_secrets["Anthropic key"],
            "metrics_token": settings_secrets["metrics token"],
        }
        with instance_in(folder, **settings) as instance:
            instance.start(THE_USUAL_WAY)  # the storage client keeps threads, which a fork would lose
            yield instance, {"S3 secret": s3_secret, **settings_secrets}


@pytest.fixture
def canary(installation: tuple[Instance, dict[str, str]]) -> Canary:
    """With texts that no other test has brought in."""
    instance, secrets = installation
    return Canary(instance, dict(secrets), {"text": f"text{token_hex(12)}", "file name": f"name{token_hex(12)}"})


# What goes through -------------------------------------------------------------------------------------------------


def sign_up(canary: Canary, stack: ExitStack) -> tuple[httpx.Client, httpx.Client]:
    """A person's browser and a program with a key of theirs; all that proves who they are is secret."""
    browser = stack.enter_context(canary.browser())
    person = {"email": "ada@example.org", "password": f"password{token_hex(12)}"}
    wrong = f"wrong{token_hex(12)}"
    canary.secrets |= {"password": person["password"], "wrong password": wrong}
    assert browser.get("/api/v1/session").status_code == 200
    canary.secrets["visitor's session"] = browser.cookies["octavo_session"]
    assert browser.post("/api/v1/account", json=person).status_code == 201
    assert browser.post("/api/v1/session", json=person | {"password": wrong}).status_code == 401
    assert browser.post("/api/v1/session", content=f'{{"password": "{wrong}"').status_code == 422
    assert browser.post("/api/v1/session", json=person).status_code == 200
    canary.secrets["session"] = browser.cookies["octavo_session"]
    made = browser.post("/api/v1/keys", json={"name": "k", "scope": "write"})
    assert made.status_code == 201
    canary.secrets["API key"] = made.json()["key"]
    return browser, stack.enter_context(canary.browser(authorization=f"Bearer {canary.secrets['API key']}"))


def add(program: httpx.Client, name: str, body: bytes, **headers: str) -> httpx.Response:
    return program.post("/api/v1/documents", content=body, headers={"x-upload-filename": name, **headers})


def add_good(canary: Canary, program: httpx.Client) -> str:
    """In every way there is; answers one of the documents."""
    text, name = canary.texts["text"], canary.texts["file name"]
    body = f"# {text}\n\nThe {text} of it. {token_hex(4)}".encode()
    first = add(program, f"{name}.md", body)
    assert first.status_code == 202, first.text
    form = program.post(
        "/api/v1/documents", files={"file": (f"{name}.txt", body + b" in a form")}, data={"title": text}
    )
    assert form.status_code == 202, form.text
    ticket = program.post("/api/v1/uploads", json={"filename": f"{name}.md", "bytes": len(body) + 3}).json()
    canary.secrets["signature of the link"] = re.findall(r"X-Amz-Signature=(\w+)", ticket["put_url"])[0]
    httpx.put(ticket["put_url"], content=body + b" S3", trust_env=False).raise_for_status()
    assert program.post(f"/api/v1/uploads/{ticket['upload_id']}/finalize").status_code == 200
    return first.json()["document_id"]


def add_bad(canary: Canary, program: httpx.Client) -> None:
    """Refused before they are stored, refused after it, broken in the middle, and unreadable."""
    text, name = canary.texts["text"], canary.texts["file name"]
    again = f"again {text}".encode()
    assert add(program, f"{name}.md", again).status_code == 202
    form = {"file": (f"{name}.md", again)}
    assert program.post("/api/v1/documents", files=form, data={"duplicates": "reject"}).status_code == 409
    assert program.post("/api/v1/documents", files=form, data={"duplicates": text}).status_code == 422
    assert add(program, f"{name}.md", b"").status_code == 422
    assert add(program, f"{name}.md", text.encode() * LARGEST).status_code == 413
    announced = {"filename": f"{name}.md", "sha256": "0" * 64}
    ticket = program.post("/api/v1/uploads", json=announced).json()
    httpx.put(ticket["put_url"], content=text.encode(), trust_env=False).raise_for_status()
    assert program.post(f"/api/v1/uploads/{ticket['upload_id']}/finalize").status_code == 422
    assert program.post("/api/v1/uploads", json={"filename": name, "bytes": text}).status_code == 422
    for broken in broken_forms(text, name):
        kind = f"multipart/form-data; boundary={text}"
        assert program.post("/api/v1/documents", content=broken, headers={"content-type": kind}).status_code == 400
    assert add(program, f"{name}.txt", b" \n \t ").status_code == 202
    for number, unreadable in enumerate(
        [b"\xff\xfe\x00" + text.encode(), b"PK\x03\x04" + text.encode(), b"%PDF-" + text.encode()]
    ):
        assert add(program, f"{name}.{('md', 'docx', 'pdf')[number]}", unreadable).status_code == 202


def broken_forms(text: str, name: str) -> list[bytes]:
    head = f'--{text}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    return [head + text.encode(), f"--{text}\r\n{name}{text}\r\n\r\n{text}".encode(), f"{text} {name}".encode()]


def break_off(canary: Canary) -> None:
    """A client that goes away in the middle of a file."""
    place = urlsplit(canary.instance.address)
    headers = {
        "Host": place.netloc,
        "Authorization": f"Bearer {canary.secrets['API key']}",
        "X-Upload-Filename": canary.texts["file name"],
        "Content-Length": "100000",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection((place.hostname or "", place.port or 0)) as connection:
        connection.sendall(f"POST /api/v1/documents HTTP/1.1\r\n{lines}\r\n{canary.texts['text']}".encode())


def use_link(canary: Canary) -> None:
    """A one-time link: opened, used, and used again."""

    async def make() -> str:
        async with await connect(canary.database_info) as connection:
            return await make_sign_in_link(connection)

    token = canary.secrets["sign-in link"] = asyncio.run(make())
    with canary.browser() as machine:
        assert machine.get("/sign-in", params={"token": token}).status_code == 200
        assert machine.post("/sign-in", data={"token": token}).status_code == 303
        canary.secrets["session of the machine"] = machine.cookies["octavo_session"]
        assert machine.post("/sign-in", data={"token": token}).status_code == 403
        assert machine.get("/metrics", headers={"authorization": f"Bearer {token}"}).status_code == 200
        proxied = {"x-forwarded-for": "192.0.2.1", "authorization": f"Bearer {canary.secrets['metrics token']}"}
        assert machine.get("/metrics", headers=proxied).status_code == 200


def deliver(canary: Canary, browser: httpx.Client) -> str:
    """A webhook that nobody answers; returns its secret, which the database must keep."""
    made = browser.post("/api/v1/webhooks", json={"address": f"http://{CLOSED}/{token_hex(4)}"})
    assert made.status_code == 201, made.text
    browser.post(f"/api/v1/webhooks/{made.json()['id']}/test")
    failed = "SELECT count(*) > 0 FROM jobs WHERE kind LIKE 'deliver%' AND failures + attempt > 0"
    wait_until(lambda: canary.rows(failed) == [(True,)], "the delivery is tried")
    return made.json()["secret"]


def look_around(canary: Canary, document: str) -> None:
    """Somebody else asks for all of it, and for what is not there."""
    with canary.stranger() as stranger:
        stranger.post("/api/v1/account", json={"email": "eve@example.org", "password": "something long enough"})
        for path in ("", "/source", "/markdown", "/chunks", "/events", f"/{document}"):
            assert stranger.get(f"/api/v1/documents/{document}{path}").status_code == 404
        for path in ("/api/v1/documents", "/api/v1/jobs", "/api/v1/keys", "/api/v1/collections", "/nowhere", "/"):
            stranger.get(path)
        stranger.delete(f"/api/v1/documents/{document}")
        stranger.post("/api/v1/account", json={"email": "ada@example.org", "password": "something long enough"})
        assert add(stranger, "x.md", f"again {canary.texts['text']}"[:5].encode()).status_code == 202
    del canary.told[0]  # their own account


def crash(canary: Canary, browser: httpx.Client, program: httpx.Client) -> None:
    """A defect of ours in the middle of everything: a table that everybody needs is gone."""
    canary.rows("ALTER TABLE uploads RENAME TO lost")
    name, text = canary.texts["file name"], canary.texts["text"]
    assert add(program, f"{name}.md", f"{text} and a crash".encode()).status_code == 500
    assert browser.post("/api/v1/uploads", json={"filename": name}).status_code == 500
    canary.rows("ALTER TABLE lost RENAME TO uploads")


# Where it must not come out ----------------------------------------------------------------------------------------


def logs(canary: Canary) -> dict[str, str]:
    """Of all processes, and what anybody can see of these from outside."""
    found = {f"log {path.name}": path.read_text() for path in (canary.instance.data / "logs").iterdir()}
    shown = [" ".join(process.cmdline()) for process in canary.instance.everything()]
    return found | {"log of up": canary.instance.log.read_text(), "arguments of processes": "\n".join(shown)}


def outputs(canary: Canary) -> dict[str, str]:
    commands = [("status",), ("status", "--json"), ("doctor",), ("doctor", "--json"), ("settings",)]
    answers = {" ".join(one): canary.instance.octavo(*one) for one in commands}
    return {f"octavo {name}": answer.stdout + answer.stderr for name, answer in answers.items()}


def records(canary: Canary) -> dict[str, str]:
    """What is told of jobs and uploads, and the names of objects, which others may get to see."""
    queries = {
        "events": "SELECT e::text FROM events e",
        "jobs": "SELECT j::text FROM jobs j",
        "stages": "SELECT s::text FROM job_stages s",
        "refusals": "SELECT coalesce(error_message, '') FROM uploads",
        "objects": "SELECT o::text FROM objects o",
    }
    return {name: "\n".join(row[0] for row in canary.rows(query)) for name, query in queries.items()}


def database(canary: Canary) -> dict[str, str]:
    tables = [row[0] for row in canary.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    return {
        f"table {name}": "\n".join(row[0] for row in canary.rows(f"SELECT t::text FROM {name} t")) for name in tables
    }


def hits(wanted: dict[str, str], places: dict[str, str]) -> list[str]:
    return [f"{what} in {place}" for place, text in places.items() for what, value in wanted.items() if value in text]


def await_jobs(canary: Canary, states: str) -> None:
    unfinished = f"SELECT count(*) FROM jobs WHERE status IN ({states})"
    wait_until(lambda: canary.rows(unfinished) == [(0,)], "all jobs end")


def test_secrets_are_not_sent_to_another_host(canary: Canary) -> None:
    password = conninfo_to_dict(canary.database_info)["password"]
    canary.secrets["database password"] = str(password)
    with ExitStack() as stack:
        browser, program = sign_up(canary, stack)
        document = add_good(canary, program)
        add_bad(canary, program)
        break_off(canary)
        await_jobs(canary, "'queued', 'processing'")
        use_link(canary)
        kept_secrets = {"webhook secret": deliver(canary, browser)}
        look_around(canary, document)
        kept = browser.get(f"/api/v1/documents/{document}/source")
        crash(canary, browser, program)
    assert canary.texts["text"] in kept.text  # it did go through
    assert "request crashed" in canary.instance.log.read_text()
    strangers = {"answers to strangers": "\n".join(canary.told)}
    everywhere = logs(canary) | outputs(canary) | records(canary) | strangers
    assert hits(canary.secrets | kept_secrets | canary.texts, everywhere) == []
    assert hits(canary.secrets, database(canary)) == []


def test_a_row_that_the_database_refuses_is_shown_to_nobody(canary: Canary) -> None:
    """Any defect of ours that breaks a constraint: the error names the constraint, not what is in the row."""
    text, name = canary.texts["text"], canary.texts["file name"]
    already = len(canary.instance.log.read_text())  # of the test before
    canary.rows(f"ALTER TABLE documents ADD CONSTRAINT no_such_name CHECK (filename <> '{name}.md')")
    canary.rows(f"ALTER TABLE chunks ADD CONSTRAINT no_such_text CHECK (content NOT LIKE '%{text}%')")
    with canary.browser() as browser:
        assert browser.get("/api/v1/session").status_code == 200
        assert add(browser, f"{name}.md", b"Something.").status_code == 500
    with canary.browser() as browser:
        assert add(browser, "a.md", f"The {text} of it.".encode()).status_code == 202
    wait_until(lambda: "job crashed" in canary.instance.log.read_text()[already:], "the job meets it")
    await_jobs(canary, "'processing'")
    assert hits(canary.texts, logs(canary) | records(canary)) == []
