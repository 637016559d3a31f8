"""Passwords, sessions, keys and links are in no answer and in no log, also when something breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest

from octavo.database import connect
from octavo.owners import make_sign_in_link
from tests.api.conftest import answers
from tests.support import preloaded
from tests.support.instance import free_port
from tests.support.passwords import PASSWORD
from tests.support.postgres import Server, as_url, open_folder
from tests.support.processes import PATIENCE_SECONDS, octavo_environment, wait_until


@dataclass(slots=True)
class Wiretap:
    """A web server process that logs all it can, and everything that it answered."""

    address: str
    database_info: str
    log: Path
    heard: list[str] = field(default_factory=list[str])

    def browser(self, **headers: str) -> httpx.Client:
        return httpx.Client(
            base_url=self.address,
            headers=headers,
            trust_env=False,
            verify=False,
            event_hooks={"response": [self.listen]},
        )

    def listen(self, answer: httpx.Response) -> None:
        answer.read()
        headers = [f"{name}: {value}" for name, value in answer.headers.items() if name != "set-cookie"]
        self.heard.append("\n".join([*headers, answer.text]))


@pytest.fixture
def wiretap(newest_server: Server) -> Iterator[Wiretap]:
    with open_folder() as folder, newest_server.database() as info, (folder / "log").open("wb") as log:
        port = free_port()
        environment = octavo_environment(folder / "data", port=port, database_url=as_url(info), log_level="debug")
        process = preloaded.start(["web"], environment, log.fileno())
        address = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: answers(address), "the web server answers")
            yield Wiretap(address, info, folder / "log")
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def new_link(wiretap: Wiretap) -> str:
    async def make() -> str:
        async with await connect(wiretap.database_info) as connection:
            return await make_sign_in_link(connection)

    return asyncio.run(make())


def test_secrets_stay_where_they_belong(wiretap: Wiretap) -> None:
    person = {"email": "ada@example.org", "password": PASSWORD}
    wrong = person | {"password": "a wrong but secret password"}
    link = new_link(wiretap)
    with wiretap.browser() as browser, wiretap.browser() as machine:
        secrets = {PASSWORD, wrong["password"], link}

        def remember() -> None:
            secrets.update([browser.cookies["octavo_session"]])

        browser.get("/")
        remember()
        assert browser.post("/api/v1/account", json=person).status_code == 201
        remember()
        assert browser.post("/api/v1/session", json=wrong).status_code == 401
        assert browser.post("/api/v1/account", json=person).status_code == 409
        assert browser.post("/api/v1/account", json=person | {"more": PASSWORD}).status_code == 422
        assert browser.post("/api/v1/session", content=f'{{"password": "{PASSWORD}"').status_code == 422
        assert browser.post("/api/v1/session", json=person).status_code == 200
        remember()
        key = browser.post("/api/v1/keys", json={"name": "k", "scope": "admin"}).json()["key"]
        assert key in wiretap.heard.pop()
        secrets.add(key)
        with wiretap.browser(authorization=f"Bearer {key}") as program:
            for path in ("/api/v1/keys", "/api/v1/session", "/api/v1/members", "/nowhere"):
                browser.get(path)
                program.get(path)
            assert machine.get("/sign-in", params={"token": link}).status_code == 200
            wiretap.heard.pop()  # the form with the token, for the person who has the link
            assert machine.post("/sign-in", data={"token": link}).status_code == 303
            assert machine.get("/sign-in", params={"token": link}).status_code == 403
            secrets.add(machine.cookies["octavo_session"])
            with psycopg.connect(wiretap.database_info, autocommit=True) as connection:
                connection.execute(b"DROP TABLE memberships CASCADE")
            crashes = [
                browser.get("/api/v1/session"),
                program.get("/api/v1/session"),
                httpx.post(f"{wiretap.address}/api/v1/session", json=person, trust_env=False),
                httpx.post(f"{wiretap.address}/api/v1/account", json=person, trust_env=False),
            ]
            assert [answer.status_code for answer in crashes] == [500] * 4
            wiretap.heard += [answer.text for answer in crashes]
    logged = wiretap.log.read_text()
    assert "request crashed" in logged
    for secret in secrets:
        assert secret not in logged
        assert not [one for one in wiretap.heard if secret in one]
