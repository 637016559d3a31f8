"""A server that stops lets requests finish, and responds to requests that take too long."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from octavo.core.settings import Settings
from octavo.web import app as web_app
from octavo.web.http.security import Interruption


async def request_while_stopping(seconds: float, folder: Path) -> httpx.Response:
    """Send a request that takes `seconds`, and stop the server while it runs."""
    app, running = FastAPI(), asyncio.Event()
    app.add_middleware(Interruption)

    @app.get("/slow")
    async def slow() -> str:
        running.set()
        await asyncio.sleep(seconds)
        return "done"

    server = web_app.server_of(app, Settings(data_dir=folder))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            asked = asyncio.create_task(client.get(f"http://127.0.0.1:{listener.getsockname()[1]}/slow"))
            await running.wait()
            server.should_exit = True
            response = await asked
        await serving
    return response


async def test_a_request_is_finished_while_the_server_stops(tmp_path: Path) -> None:
    response = await request_while_stopping(0.5, tmp_path)
    assert (response.status_code, response.json()) == (200, "done")


async def test_a_request_that_takes_too_long_is_to_be_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_app, "GRACE_SECONDS", 1)
    response = await request_while_stopping(600, tmp_path)
    assert (response.status_code, response.json()["code"]) == (503, "STOPPING")
    assert response.headers["retry-after"] == "2"
