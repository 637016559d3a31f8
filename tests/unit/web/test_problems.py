"""Everything that goes wrong is answered as one kind of problem, and says nothing about our insides."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI, HTTPException

from octavo.model.errors import NotFound, StorageFailed, TooLarge
from octavo.web.problems import MEDIA_TYPE, handle_problems


def failing_app() -> FastAPI:
    app = FastAPI()
    handle_problems(app)

    @app.get("/too-large")
    async def too_large() -> None:
        raise TooLarge("300 MB of 200 MB.")

    @app.get("/disk")
    async def disk() -> None:
        raise StorageFailed

    @app.get("/number/{number}")
    async def number(number: int) -> int:
        return number

    @app.get("/teapot")
    async def teapot() -> None:
        raise HTTPException(418, "Short and stout", headers={"x-kept": "yes"})

    @app.get("/defect")
    async def defect() -> None:
        raise RuntimeError("canary in a message")

    return app


async def get(path: str, method: str = "GET") -> httpx.Response:
    transport = httpx.ASGITransport(failing_app(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.request(method, path)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/too-large", 413, "TOO_LARGE"),
        ("GET", "/disk", 503, "IO_ERROR"),
        ("GET", "/number/seven", 422, "VALIDATION"),
        ("GET", "/nowhere", 404, NotFound.code),
        ("POST", "/disk", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/teapot", 418, "I'M_A_TEAPOT"),
        ("GET", "/defect", 500, "UNKNOWN"),
    ],
)
async def test_every_failure_has_the_same_form(method: str, path: str, status: int, code: str) -> None:
    answer = await get(path, method)
    body = answer.json()
    assert answer.status_code == body["status"] == status
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert body["code"] == code
    assert body["title"]
    assert body["detail"]
    assert body["type"] == "about:blank"


async def test_what_is_wrong_with_a_request_is_named() -> None:
    assert (await get("/number/seven")).json()["detail"].startswith("number: ")


async def test_a_defect_tells_nothing_of_our_insides() -> None:
    assert "canary" not in (await get("/defect")).text


async def test_headers_of_a_refusal_are_kept() -> None:
    assert (await get("/teapot")).headers["x-kept"] == "yes"
