"""Opens connections: resolves a host name once, checks all its addresses, and connects to one of them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import httpcore

from octavo.core.errors import NetworkFailed
from octavo.fetch.errors import AddressRefused, NameUnknown
from octavo.fetch.urls import Target, is_allowed, is_public

RESOLVE_SECONDS = 10.0
CONNECT_SECONDS = 10.0
# People wait for this lookup. The fetch itself looks the name up again and waits longer.
EARLY_RESOLVE_SECONDS = 2.0
_UNKNOWN = {socket.EAI_NONAME, socket.EAI_NODATA} if hasattr(socket, "EAI_NODATA") else {socket.EAI_NONAME}

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class SystemResolver:
    """Resolves names in separate threads, because a lookup cannot be cancelled and must not delay other work."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="octavo-names")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                found = await loop.run_in_executor(self._threads, _look_up, host, port)
        except TimeoutError:
            raise NetworkFailed("Looking up the address of the server took too long.") from None
        except socket.gaierror as error:
            raise (
                NameUnknown()
                if error.errno in _UNKNOWN
                else NetworkFailed("The address of the server could not be looked up.")
            ) from None
        except UnicodeError:  # a label that is too long
            raise NameUnknown from None
        return found

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> Sequence[str]:
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to public addresses, and to the private servers listed in `allow` (`host:port`)."""

    def __init__(
        self, allow: frozenset[str], resolve: Resolve, network: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._allow = allow
        self._resolve = resolve
        # The cast restores the type that is lost by `or`.
        self._network = network or cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
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
        """Resolve a host name. Raises `AddressRefused` if any address is private and the host is not in `allow`."""
        addresses = await self._resolve(host, port)
        if not is_allowed(self._allow, host, port) and not all(map(is_public, addresses)):
            raise AddressRefused
        return addresses


async def refuse_private_addresses(target: Target, allow: frozenset[str], resolve: Resolve) -> None:
    """Look up a host name early, and raise `AddressRefused` if it has a private address.

    If the lookup fails or is slow, nothing is refused yet, because the fetch checks the address again before it
    connects.
    """
    with contextlib.suppress(NetworkFailed, TimeoutError):
        async with asyncio.timeout(EARLY_RESOLVE_SECONDS):
            await GuardedBackend(allow, resolve).checked_addresses(target.host, target.port)
