"""Everything that goes wrong is answered as one kind of problem, and says nothing about our insides."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException, Request, Response
from structlog.testing import capture_logs

from octavo.core.errors import NotFound, StorageFailed, TooLarge
from octavo.web.http.problems import MEDIA_TYPE, Failure, handle_problems

AS_JSON = {"content-type": "application/json"}


async def no_page(request: Request, failure: Failure) -> Response | None:
    """Only programs ask here."""
    del request, failure
    return None


def failing_app() -> FastAPI:
    app = FastAPI()
    handle_problems(app, no_page, {})

    @app.get("/too-large")
    async def too_large() -> None:
        raise TooLarge("300 MB of 200 MB.")

    @app.get("/disk")
    async def disk() -> None:
        raise StorageFailed

    @app.get("/number/{number}")
    async def number(number: int) -> int:
        return number

    @app.post("/number/{number}")
    async def keep(number: int, body: dict[str, int]) -> int:
        return number + len(body)

    @app.delete("/number/{number}")
    async def forget(number: int) -> None:
        del number

    @app.get("/teapot")
    async def teapot() -> None:
        raise HTTPException(418, "Short and stout", headers={"x-kept": "yes"})

    @app.get("/defect")
    async def defect() -> None:
        raise RuntimeError("canary in a message")

    @app.get("/shared/{token}/{what}")
    async def shared(token: str, what: str) -> None:
        raise StorageFailed if what == "disk" else RuntimeError(f"canary {len(token)}")

    return app


async def get(path: str, method: str = "GET", **more: Any) -> httpx.Response:  # noqa: ANN401
    transport = httpx.ASGITransport(failing_app(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.request(method, path, **more)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/too-large", 413, "TOO_LARGE"),
        ("GET", "/disk", 503, "IO_ERROR"),
        ("POST", "/number/7", 422, "VALIDATION"),
        ("GET", "/number/seven", 404, NotFound.code),
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


async def test_a_defect_tells_nothing_of_our_insides() -> None:
    assert "canary" not in (await get("/defect")).text


async def test_headers_of_a_refusal_are_kept() -> None:
    assert (await get("/teapot")).headers["x-kept"] == "yes"


@pytest.mark.parametrize(
    ("path", "allowed"), [("/number/7", "DELETE, GET, POST"), ("/disk", "GET")], ids=["several routes", "one route"]
)
async def test_a_wrong_method_gets_the_allowed_methods(path: str, allowed: str) -> None:
    answer = await get(path, "PATCH")
    assert answer.headers["allow"] == allowed
    assert answer.json()["detail"] == f"Allowed: {allowed}."


@pytest.mark.parametrize(
    ("method", "path", "more", "said"),
    [
        ("GET", "/nowhere", {}, "Not found, or you do not have access to it."),
        ("PATCH", "/disk", {}, "Method not allowed here."),
        ("POST", "/number/7", {"content": b"{", "headers": AS_JSON}, "body: must be valid JSON."),
        ("POST", "/number/7", {}, "body: is missing."),
        ("POST", "/number/7", {"json": {"a": "b"}}, "a: must be an integer."),
    ],
    ids=["nowhere", "method", "json", "missing", "field"],
)
async def test_errors_of_libraries_get_our_own_messages(method: str, path: str, more: Any, said: str) -> None:  # noqa: ANN401
    body = (await get(path, method, **more)).json()
    assert said in {body["title"], body["detail"]}


@pytest.mark.parametrize("what", ["disk", "defect"])
async def test_the_token_of_a_link_is_not_logged(what: str) -> None:
    with capture_logs() as logged:
        await get(f"/shared/a-secret-token/{what}")
    (entry,) = logged
    assert entry["path"] == f"/shared/…/{what}"
    assert "a-secret-token" not in str(entry)
