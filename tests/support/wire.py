"""Requests byte by byte, for those that no client library would send."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from http.client import HTTPResponse

from tests.support.processes import PATIENCE_SECONDS
from tests.support.web import WebProcess


@dataclass(frozen=True, slots=True)
class Heard:
    status: int
    content_type: str
    body: bytes


def say(web: WebProcess, said: bytes) -> Heard:
    """Send bytes and read one answer, however the connection goes on."""
    with socket.create_connection(("127.0.0.1", web.port), PATIENCE_SECONDS) as connection:
        with contextlib.suppress(ConnectionError):  # refused before all was sent; the answer is there all the same
            connection.sendall(said)
        with HTTPResponse(connection) as answer:
            answer.begin()
            return Heard(answer.status, answer.headers.get("content-type", ""), answer.read())


def say_and_leave(web: WebProcess, said: bytes) -> None:
    """Send bytes and go away in the middle; returns when the server has noticed."""
    with socket.create_connection(("127.0.0.1", web.port), PATIENCE_SECONDS) as connection:
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
