"""The route for agents: its switch, its limits, and the rights of a key that change while an agent runs."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import pytest
from starlette.types import Message

from octavo.client import Client
from octavo.mcp import tools
from tests.support.processes import PATIENCE_SECONDS
from tests.support.visitors import House, OpenHouse, refused

TEXT = "The gull flies over the harbour at dawn."
ACCEPT = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


async def call(agent: httpx.AsyncClient, method: str, **params: object) -> httpx.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await agent.post("/mcp", json=message, headers=ACCEPT)


async def use(agent: httpx.AsyncClient, name: str, **arguments: object) -> dict[str, Any]:
    answer = await call(agent, "tools/call", name=name, arguments=arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


async def new_key(person: httpx.AsyncClient, scope: str) -> dict[str, str]:
    made = await person.post("/api/v1/keys", json={"name": "agent", "scope": scope})
    assert made.status_code == 201, made.text
    return made.json()


async def test_the_route_can_be_switched_off(open_house: OpenHouse) -> None:
    house = await open_house(mcp=False)
    key = await new_key(await house.person("ada@example.org"), "read")
    refused(await call(await house.program(key["key"]), "ping"), 404, "NOT_FOUND")


async def test_a_revoked_key_ends_the_agent(house: House) -> None:
    person = await house.person("ada@example.org")
    key = await new_key(person, "write")
    agent = await house.program(key["key"])
    assert (await use(agent, "add", text=TEXT))["isError"] is False
    assert (await person.delete(f"/api/v1/keys/{key['id']}")).status_code == 204
    refused(await call(agent, "tools/list"), 401, "UNAUTHENTICATED")


async def test_requests_of_agents_count_towards_the_limit_of_their_account(open_house: OpenHouse) -> None:
    house = await open_house(requests_per_minute=20)
    agent = await house.program((await new_key(await house.person("ada@example.org"), "read"))["key"])
    answers = [await call(agent, "tools/call", name="list_documents", arguments={}) for _ in range(20)]
    refused(answers[-1], 429, "RATE_LIMIT")
    assert '"isError":false' in answers[0].text


async def test_a_document_that_is_not_ready_is_reported_with_its_code(house: House) -> None:
    agent = await house.program((await new_key(await house.person("ada@example.org"), "write"))["key"])
    added = json.loads((await use(agent, "add", text=TEXT))["content"][0]["text"])
    waiting = await use(agent, "read", document_id=added["document_id"])
    assert waiting["isError"] is True
    assert waiting["content"][0]["text"].startswith("NOT_READY:")


async def test_a_tool_ends_when_its_agent_leaves(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    started, cancelled, sent = asyncio.Event(), asyncio.Event(), list[Message]()

    async def wait_forever(client: Client, wanted: tools.Arguments) -> str:
        del client, wanted
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    monkeypatch.setitem(tools.TOOLS, "list_prompts", replace(tools.TOOLS["list_prompts"], run=wait_forever))
    key = (await new_key(await house.person("ada@example.org"), "read"))["key"]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_prompts"}}
    body: list[Message] = [{"type": "http.request", "body": json.dumps(message).encode(), "more_body": False}]

    async def receive() -> Message:
        if body:
            return body.pop()
        await started.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = {**ACCEPT, "authorization": f"Bearer {key}", "content-type": "application/json", "host": "localhost"}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": raw, "query_string": b""}
    async with asyncio.timeout(PATIENCE_SECONDS):
        await house.app({**scope, "scheme": "http", "server": ("localhost", 80)}, receive, send)
        await cancelled.wait()
    assert sent == []


async def test_wrong_arguments_name_the_argument(house: House) -> None:
    agent = await house.program((await new_key(await house.person("ada@example.org"), "read"))["key"])
    for arguments, words in (
        ({}, "document_id: Field required"),
        ({"document_id": "x"}, "document_id: Input should be a valid UUID"),
        ({"document_id": str(UUID(int=1)), "page": 0}, "page: Input should be greater"),
        ({"document_id": str(UUID(int=1)), "page": 1, "cursor": "1.0."}, "only one of page"),
        ({"document_id": str(UUID(int=1)), "pages": 1}, "pages: Extra inputs are not permitted"),
    ):
        answer = await use(agent, "read", **arguments)
        assert answer["isError"] is True
        assert answer["content"][0]["text"].startswith("VALIDATION: ")
        assert words in answer["content"][0]["text"]
