"""Connects commands to the API: on this machine as the local account, on another server with an API key."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from octavo.cli.local import OTHER_SERVER, open_local_session, running_address
from octavo.core.errors import BadSetting, OctavoError
from octavo.core.settings import Settings, load_settings

if TYPE_CHECKING:
    from octavo.client import Client

SIGN_OUT_SECONDS = 1.0
CONNECTIONS = 10
NO_KEY = (
    "A remote server requires an API key. Set it with --key or OCTAVO_KEY. To create one, run `octavo keys add` on "
    "that server."
)
LOCAL_HINT = "See `octavo status`."

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Target:
    """The server and API key from the options of a command. Missing values are taken from the settings."""

    server: str | None = None
    key: str | None = None


def call(target: Target, run: Callable[[Client], Awaitable[Answer]], *, connections: int = CONNECTIONS) -> Answer:
    """Call `run` with a client for the selected server and return its result."""

    async def main() -> Answer:
        async with open_client(target, connections) as client:
            return await run(client)

    return asyncio.run(main())


@asynccontextmanager
async def open_client(target: Target, connections: int) -> AsyncGenerator[Client]:
    from octavo.client import Client

    settings = load_settings()
    server = target.server or settings.server
    key = target.key or (settings.key.get_secret_value() if settings.key else None)
    if server and not key:
        raise BadSetting(NO_KEY)
    if server:
        async with Client(server, key=key, connections=connections) as client:
            yield client
    elif key:
        address = running_address(settings, OTHER_SERVER)
        async with Client(address, key=key, connections=connections, hint=LOCAL_HINT) as client:
            yield client
    else:
        async with open_as_owner(settings, connections) as client:
            yield client


@asynccontextmanager
async def open_as_owner(settings: Settings, connections: int) -> AsyncGenerator[Client]:
    from octavo.client import Client

    address = running_address(settings, OTHER_SERVER)
    session = await open_local_session(settings)
    async with Client(address, session=session, connections=connections, hint=LOCAL_HINT) as client:
        try:
            yield client
        finally:
            # A failed sign-out is harmless: nobody else knows the session's secret, and the session expires.
            with contextlib.suppress(OctavoError, TimeoutError):
                async with asyncio.timeout(SIGN_OUT_SECONDS):
                    await client.sign_out()
