"""Servers that misbehave: one that answers what a test tells it to, and one before a real one that cuts connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

PIECE_BYTES = 64 << 10
# Instead of an answer: the connection ends after the request was read.
HANG_UP = b""
# Before an answer: the connection ends after it, even if it is not complete.
CUT = b"CUT "


def answer(status: int, body: object = None, **headers: str) -> bytes:
    """An answer as bytes; text is sent as it is and everything else as JSON."""
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else b""
    lines = [f"HTTP/1.1 {status} Something", f"content-length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


@dataclass(slots=True)
class Script:
    """What a server answers in turn, the last one for ever; and what it was asked."""

    answers: Sequence[bytes]
    address: str = ""
    requests: list[str] = field(default_factory=list[str])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(head[0].removesuffix(" HTTP/1.1"))
        self.headers.append(headers)
        reply = self.answers[min(len(self.requests), len(self.answers)) - 1]
        writer.write(reply.removeprefix(CUT))
        await writer.drain()
        return reply != HANG_UP and not reply.startswith(CUT)


@asynccontextmanager
async def serving(*answers: bytes) -> AsyncGenerator[Script]:
    script = Script(answers)
    visits: set[asyncio.Task[None]] = set()

    def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.add(asyncio.create_task(script.serve(reader, writer)))

    async with await asyncio.start_server(visit, "127.0.0.1", 0) as server:
        script.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield script
        for one in visits:
            one.cancel()
        await asyncio.gather(*visits, return_exceptions=True)


class Cutter:
    """Stands before a server; each connection in turn is cut after so many bytes to the server, None is never.

    A negative number cuts the way back: the server gets everything, and so many bytes of its answer arrive, less one.
    """

    def __init__(self, target: str, cuts: Sequence[int | None]) -> None:
        host, _, port = target.removeprefix("http://").rpartition(":")
        self._target = (host, int(port))
        self._cuts = list(cuts)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                cut = self._cuts.pop(0) if self._cuts else None
                threading.Thread(target=self._serve, args=(client, cut), daemon=True).start()

    def _serve(self, client: socket.socket, cut: int | None) -> None:
        with client, socket.create_connection(self._target) as server:
            there = cut if cut is not None and cut >= 0 else None
            back = -cut - 1 if cut is not None and cut < 0 else None
            ways = [
                threading.Thread(target=_forward, args=(client, server, there), daemon=True),
                threading.Thread(target=_forward, args=(server, client, back), daemon=True),
            ]
            for way in ways:
                way.start()
            for way in ways:
                way.join()


def _forward(source: socket.socket, target: socket.socket, cut: int | None) -> None:
    """Bytes from one to the other until one ends or so many have passed; then both are cut."""
    left = cut
    with contextlib.suppress(OSError):
        while left is None or left > 0:
            data = source.recv(PIECE_BYTES if left is None else min(left, PIECE_BYTES))
            if not data:
                break
            target.sendall(data)
            left = None if left is None else left - len(data)
    for stream in (source, target):
        with contextlib.suppress(OSError):
            stream.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting(target: str, *cuts: int | None) -> Generator[Cutter]:
    cutter = Cutter(target, cuts)
    try:
        yield cutter
    finally:
        cutter.close()
