"""Lets clients close connections first.

The side that closes a connection first keeps its port in TIME_WAIT for a minute. If the server closed first, another
program could not use the port right after a stop. A client that knows the length of a response closes the connection as
soon as it has read the whole response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

LINGER_SECONDS = 1.0
# The key in the ASGI scope of a function that drops the connection without waiting for the caller.
DROP = "octavo.drop"


class PatientTransport:
    """Wraps a transport and delays `close`; all other calls are passed through."""

    def __init__(self, transport: asyncio.Transport, may_wait: Callable[[], bool]) -> None:
        self._transport = transport
        self._may_wait = may_wait
        self._timer: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of the transport
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._timer is not None or self._transport.is_closing()

    def close(self) -> None:
        if self.is_closing():
            return
        if self._may_wait():
            self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.close)
        else:
            self._transport.close()

    def forget(self) -> None:
        if self._timer:
            self._timer.cancel()


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 with delayed closing.

    An HTTP/1.0 connection is closed immediately, since that may mark the end of the response.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._patient = PatientTransport(transport, self._answer_is_framed)
        super().connection_made(cast("asyncio.Transport", self._patient))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[DROP] = self.transport.abort

    def data_received(self, data: bytes) -> None:
        if not self._patient.is_closing():
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._patient.forget()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Abort the connection if it is idle, instead of closing it. Otherwise it ends after the current response."""
        cycle = self._current()
        if cycle is None or cycle.response_complete:
            self.transport.abort()
        else:
            cycle.keep_alive = False

    def _answer_is_framed(self) -> bool:
        cycle = self._current()
        return cycle is not None and cycle.response_complete and self.scope["http_version"] == "1.1"

    def _current(self) -> RequestResponseCycle | None:
        return self.cycle  # None before the first request, although its type excludes None
