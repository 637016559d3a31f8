"""The API reference: every route with its parameters, bodies, answers and errors, from this server alone."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from octavo.core.settings import Settings
from octavo.web.app import create_app
from octavo.web.http.openapi import operations_of
from octavo.web.rooms.system.reference import error_codes, example_of, make_reference, prose

BASE = "http://127.0.0.1:8400"


@cache
def app() -> Any:  # noqa: ANN401
    return create_app(Settings(data_dir=Path("/nowhere")))


async def get(path: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app()), base_url=BASE) as client:
        return await client.get(path)


async def test_every_operation_is_on_the_page() -> None:
    answer = await get("/api/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    described = app().openapi()
    for one in operations_of(described):
        assert f'id="{one["operationId"]}"' in answer.text
    for name in described["components"]["schemas"]:
        assert f'id="type-{name}"' in answer.text
    for name in described["webhooks"]:
        assert f">{name}</code>" in answer.text


async def test_everything_it_loads_is_here() -> None:
    text = (await get("/api/docs")).text
    loaded = re.findall(r"<(?:script|link|img)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"", text)
    loaded.remove("/manifest.webmanifest")  # for browsers that install the site, with a started application
    assert loaded
    for address in loaded:
        assert address.startswith("/static/"), address
        assert (await get(address)).status_code == 200
    assert not re.search(r"<style|<script>| style=| on[a-z]+=\"", text)


async def test_every_link_inside_the_page_leads_somewhere() -> None:
    text = (await get("/api/docs")).text
    targets = set(re.findall(r' id="([^"]+)"', text))
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert links - targets == set()


def test_a_request_and_an_answer_have_examples() -> None:
    reference = make_reference(app().openapi())
    by_id = {one.id: one for group in reference.groups for one in group.operations}
    prompt = by_id["add_prompt"]
    assert [field.name for field in prompt.bodies[0].fields][:2] == ["title", "content"]
    assert '"title": "Departures"' in prompt.bodies[0].example
    assert {answer.status for answer in prompt.answers} >= {"201", "401", "409", "422", "429"}
    assert "Idempotency-Key".lower() in [field.name.lower() for field in prompt.parameters]
    assert "$OCTAVO_SERVER/api/v1/prompts" in prompt.curl
    assert ("NOT_FOUND", "Not found, or you do not have access to it.") in error_codes()[404]


def test_descriptions_cannot_contain_markup() -> None:
    assert prose("Use `a<b` & <b>\n\nmore") == "<p>Use <code>a&lt;b</code> &amp; &lt;b&gt;</p><p>more</p>"


def test_an_example_of_a_type_that_contains_itself_ends() -> None:
    types = {"Tree": {"properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}}}}
    assert example_of({"$ref": "#/components/schemas/Tree"}, types)["children"]
