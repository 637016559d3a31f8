"""What a stranger writes into JSON, queries, headers and cookies is refused within bounds, and never as our mistake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.visitors import House, me

DEEP = "[" * 200_000
LONG = "9" * 200_000
MANY = "&".join(f"tag=t{number}" for number in range(5000))
JSON_TYPE = {"content-type": "application/json"}
POSTS = (
    "/api/v1/mappings",
    "/api/v1/mappings/check",
    "/api/v1/prompts",
    "/api/v1/ask",
    "/api/v1/documents",
    "/api/v1/conversions",
    "/api/v1/uploads",
    "/api/v1/documents/bulk",
    "/api/v1/webhooks",
    "/api/v1/collections",
)
BODIES = {
    "deep": DEEP,
    "deep in an object": '{"text": ' + DEEP,
    "closed and deep": "[" * 100_000 + "]" * 100_000,
    "a long number": '{"text": ' + LONG + "}",
    "a long fraction": '{"text": 1.' + LONG + "e-" + LONG[:400] + "}",
    "many keys": json.dumps({f"k{number}": number for number in range(50_000)}),
    "the same key": "{" + ",".join('"text": "a"' for _ in range(50_000)) + "}",
    "a lone surrogate": '{"text": "\\ud800", "url": "\\ud800", "question": "\\ud800", "title": "\\ud800"}',
    "not UTF-8": '{"text": "\xff"}',
    "not a number": '{"text": NaN}',
}
QUERIES = {
    "many filters": f"/api/v1/search?q=a&{MANY}",
    "a long query": f"/api/v1/search?q={'a' * 20_000}",
    "quotes": f"/api/v1/search?q={'%22' * 900}",
    "exclusions": f"/api/v1/search?q=a+{'-a+' * 300}",
    "a long cursor": f"/api/v1/documents?cursor={'A' * 5000}",
    "a cursor of another kind": "/api/v1/documents?cursor=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "a cursor of events": f"/api/v1/events?format=json&after={'9' * 90}-{'9' * 5}",
    "many parameters": "/api/v1/documents?" + "&".join(f"p{number}=1" for number in range(5000)),
    "a long path": "/api/v1/documents/" + "a" * 20_000,
}


@pytest.mark.parametrize("body", BODIES)
async def test_a_hostile_body_is_refused_in_few_words(house: House, body: str) -> None:
    client = await house.person("a@example.org")
    for path in POSTS:
        answer = await client.post(path, content=BODIES[body].encode("latin-1"), headers=JSON_TYPE)
        assert answer.status_code < 500, (path, answer.status_code, answer.text[:200])
        assert answer.json().get("code") or body == "the same key", path
        assert len(answer.content) < 20_000, path


@pytest.mark.parametrize("query", QUERIES)
async def test_a_hostile_query_is_refused_or_harmless(house: House, query: str) -> None:
    client = await house.person("a@example.org")
    answer = await client.get(QUERIES[query])
    assert answer.status_code < 500, answer.text[:200]
    assert len(answer.content) < 20_000


@pytest.mark.parametrize("header", ["cookie", "authorization", "last-event-id", "if-none-match", "accept", "range"])
async def test_a_hostile_header_is_refused_or_harmless(house: House, header: str) -> None:
    client = await house.browser()
    await me(client)
    for value in ("a=b; " * 10_000, '"' * 50_000, "Bearer " + "a" * 50_000, "bytes=" + "0-1," * 10_000):
        headers: dict[str, Any] = {header: value}
        answer = await client.get("/api/v1/events?format=json", headers=headers)
        assert answer.status_code < 500, answer.text[:200]
