"""Base classes for API calls, which are coroutines in `Client` and blocking methods in `SyncClient`.

Each API call is written once, as a coroutine. `SyncClient` runs it on an event loop in a separate thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Mapping
from functools import partial
from pathlib import Path
from threading import Thread
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from octavo.client.transport import (
    OnProgress,
    Query,
    Record,
    Repeat,
    Request,
    Transport,
    read_page,
    read_record,
)
from octavo.core.http import Page

MOST_LISTED = 500

Owner = TypeVar("Owner")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
END: Any = object()


class Calls:
    """API calls for one topic, which are sent through one transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def _get(self, record: type[Record], path: str, **query: object) -> Record:
        return read_record(record, await self._transport.call(Request("GET", path, query=as_query(query))))

    async def _list(self, record: type[Record], path: str, **query: object) -> Page[Record]:
        return read_page(record, await self._transport.call(Request("GET", path, query=as_query(query))))

    async def _post(
        self, record: type[Record], path: str, json: object = None, *, repeat: Repeat | None = None
    ) -> Record:
        return read_record(record, await self._transport.call(Request("POST", path, json=json, repeat=repeat)))

    async def _put(self, record: type[Record], path: str, json: object) -> Record:
        return read_record(record, await self._transport.call(Request("PUT", path, json=json)))

    async def _patch(self, record: type[Record], path: str, json: object) -> Record:
        return read_record(record, await self._transport.call(Request("PATCH", path, json=json)))

    async def _delete(self, path: str, **query: object) -> None:
        await self._transport.call(Request("DELETE", path, query=as_query(query)))

    async def _read(self, path: str, **query: object) -> bytes:
        """Download a file that fits into memory."""
        response = await self._transport.send(Request("GET", path, query=as_query(query)))
        return response.content if response else b""

    async def _save(self, to: Path, path: str, on_progress: OnProgress | None = None, **query: object) -> int:
        """Download to a file, and return its size. A broken download is resumed."""
        return await self._transport.save(Request("GET", path, query=as_query(query)), to, on_progress)


def as_query(values: Mapping[str, object]) -> Query:
    """Convert values to query parameters. Values that are None are left out, and lists become repeated parameters."""
    return {
        name: [str(one) for one in cast("list[object]", value)] if isinstance(value, list) else as_text(value)
        for name, value in values.items()
        if value is not None
    }


def as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def given(**fields: object) -> dict[str, object]:
    """Return the fields of a request body. Fields that are None are left out."""
    return {name: value for name, value in fields.items() if value is not None}


# One method, two clients --------------------------------------------------------------------------------------------


class LoopThread:
    """An event loop in a separate thread, for programs without an event loop and for notebooks.

    Notebooks need it because their own event loop is already running and cannot be blocked.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="octavo-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine and return its result. The coroutine is cancelled if the caller is interrupted."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncGenerator[Result]) -> Generator[Result]:
        try:
            while (item := self.run(next_of(items))) is not END:
                yield item
        finally:
            self.run(close(items))

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def next_of(items: AsyncGenerator[Result]) -> Result:
    return await anext(items, END)


async def close(items: AsyncGenerator[Any]) -> None:
    await items.aclose()


class Blocking:
    """Runs the calls of `target` on an event loop, and waits for them."""

    def __init__(self, loop: LoopThread, target: Calls) -> None:
        self._loop = loop
        self._target = target

    def run_call(self, function: Callable[..., Coroutine[Any, Any, Result]], *args: object, **more: object) -> Result:
        return self._loop.run(function(self._target, *args, **more))

    def run_stream(
        self, function: Callable[..., AsyncGenerator[Result]], *args: object, **more: object
    ) -> Generator[Result]:
        return self._loop.iterate(function(self._target, *args, **more))


class Call(Generic[Owner, Parameters, Result]):
    """A method that returns one result: a coroutine in `Client`, a blocking method in `SyncClient`."""

    def __init__(self, function: Callable[Concatenate[Owner, Parameters], Coroutine[Any, Any, Result]]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(
        self, instance: None, owner: type
    ) -> Callable[Concatenate[Owner, Parameters], Coroutine[Any, Any, Result]]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[Parameters, Result]: ...
    @overload
    def __get__(self, instance: Calls, owner: type) -> Callable[Parameters, Coroutine[Any, Any, Result]]: ...
    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        return bind(self._function, instance, Blocking.run_call)


class Stream(Generic[Owner, Parameters, Result]):
    """A method that yields results: an asynchronous generator in `Client`, an ordinary generator in `SyncClient`."""

    def __init__(self, function: Callable[Concatenate[Owner, Parameters], AsyncGenerator[Result]]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(
        self, instance: None, owner: type
    ) -> Callable[Concatenate[Owner, Parameters], AsyncGenerator[Result]]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[Parameters, Generator[Result]]: ...
    @overload
    def __get__(self, instance: Calls, owner: type) -> Callable[Parameters, AsyncGenerator[Result]]: ...
    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        return bind(self._function, instance, Blocking.run_stream)


def bind(function: Callable[..., Any], instance: object, run: Callable[..., Any]) -> Callable[..., Any]:
    if instance is None:
        return function
    if isinstance(instance, Blocking):
        return partial(run, instance, function)
    return MethodType(function, instance)


# Waiting ------------------------------------------------------------------------------------------------------------

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 2.0


async def wait_until(
    read: Callable[[], Awaitable[Result]], is_done: Callable[[Result], bool], timeout_seconds: float | None
) -> Result:
    """Read a record repeatedly, with increasing delays, until it is done.

    Raises TimeoutError after `timeout_seconds`.
    """
    async with asyncio.timeout(timeout_seconds):
        pause = FIRST_PAUSE_SECONDS
        while not is_done(record := await read()):
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
        return record
