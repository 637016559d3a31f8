"""Opens connections: a name is looked up once, all it leads to is checked, and the connection goes to just that."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import httpcore

from octavo.core.errors import NetworkFailed
from octavo.fetch.addresses import is_public
from octavo.fetch.errors import AddressRefused, NameUnknown
from octavo.fetch.urls import is_allowed

RESOLVE_SECONDS = 10.0
CONNECT_SECONDS = 10.0
_UNKNOWN = {socket.EAI_NONAME, socket.EAI_NODATA} if hasattr(socket, "EAI_NODATA") else {socket.EAI_NONAME}

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class SystemResolver:
    """The system's own lookup, in threads of its own: it cannot be ended, and others must not wait for it."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="octavo-names")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                found = await loop.run_in_executor(self._threads, _look_up, host, port)
        except TimeoutError:
            raise NetworkFailed("Its name could not be looked up in time.") from None
        except socket.gaierror as error:
            raise (
                NameUnknown() if error.errno in _UNKNOWN else NetworkFailed("Its name cannot be looked up.")
            ) from None
        except UnicodeError:  # a label that is longer than names may have
            raise NameUnknown from None
        return found

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> Sequence[str]:
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """`allow` holds `host:port` pairs that may be reached although they are not public."""

    def __init__(
        self, allow: frozenset[str], resolve: Resolve, network: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._allow = allow
        self._resolve = resolve
        # Its type is lost where a stand-in takes its place.
        self._network = network or cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as httpcore calls it
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception = NameUnknown()
        for address in await self.checked_addresses(host, port):
            try:
                return await self._network.connect_tcp(
                    address, port, min(timeout or CONNECT_SECONDS, CONNECT_SECONDS), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def checked_addresses(self, host: str, port: int) -> Sequence[str]:
        """All or nothing: a name that leads inside by one of its addresses is refused with all of them."""
        addresses = await self._resolve(host, port)
        if not is_allowed(self._allow, host, port) and not all(map(is_public, addresses)):
            raise AddressRefused
        return addresses
