"""Other people's web servers: real ones on this machine, that answer as a test says, and doors that nobody may open."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """`pieces` are sent one by one, for as long as somebody listens."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    pieces: Iterable[bytes] | None = None


Route = Answer | Callable[[Asked], Answer]


def page(html: str, content_type: str = "text/html; charset=utf-8", status: int = 200) -> Answer:
    return Answer(status, html.encode(), {"Content-Type": content_type})


def redirect(to: str, status: int = 302) -> Answer:
    return Answer(status, headers={"Location": to})


class Site:
    """`routes` may be changed while it runs, and `elsewhere` for all others; `asked` is what it was asked so far."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.routes: dict[str, Route] = {}
        self.elsewhere: Route = Answer(404, b"Nothing here.")
        self.asked: list[Asked] = []
        self.stopping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        if tls:
            # Shaking hands in the thread of the connection, so that a bad one stops nobody else.
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def place(self) -> str:
        """As `allow` names it."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    def drip(self, piece: bytes, seconds: float = 0.05) -> Iterator[bytes]:
        """A body that never ends, a little at a time."""
        while not self.stopping.wait(seconds):
            yield piece

    def close(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _read_body(handler: BaseHTTPRequestHandler) -> bytes:
    length = int(handler.headers.get("Content-Length") or 0)
    body = handler.rfile.read(length)
    if len(body) < length:
        raise ConnectionAbortedError("whoever asked was killed in the middle of it")
    return body


def _handler_of(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            parts = urlsplit(self.path)
            body = _read_body(self)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, parts.path, parts.query, headers, body)
            site.asked.append(asked)
            route = site.routes.get(parts.path, site.elsewhere)
            with suppress(OSError):  # whoever asked has gone
                self._send(route(asked) if callable(route) else route)

        do_GET = do_POST = do_PROPFIND = _answer  # noqa: N815 - as the library calls them

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.pieces is None:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            for piece in answer.pieces if answer.pieces is not None else [answer.body]:
                self.wfile.write(piece)
                self.wfile.flush()

        def handle(self) -> None:
            with suppress(OSError):  # whoever asked did not like what it saw
                super().handle()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library calls it
            del format, args

    return Handler


@contextmanager
def running_site(tls: ssl.SSLContext | None = None) -> Generator[Site]:
    site = Site(tls)
    try:
        yield site
    finally:
        site.close()


class Canary:
    """Listens and never answers; whoever connected is still in the queue when the test asks."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])

    def visits(self) -> int:
        count = 0
        with suppress(BlockingIOError):
            while True:
                connection, _ = self._listener.accept()
                connection.close()
                count += 1
        return count

    def close(self) -> None:
        self._listener.close()


@contextmanager
def canary() -> Generator[Canary]:
    bird = Canary()
    try:
        yield bird
    finally:
        bird.close()
