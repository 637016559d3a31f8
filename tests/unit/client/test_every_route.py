"""The client has a method for every route of the API, and sends what the route describes."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date
from enum import Enum, EnumType
from functools import cache
from inspect import Parameter, isasyncgenfunction, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID, uuid4

import httpx
import pytest

from octavo.client import Client, SyncClient
from octavo.client.calls import Call, Calls, Stream
from octavo.client.transport import RetryPolicy
from octavo.client.uploads import File
from octavo.core.errors import OctavoError
from octavo.core.settings import Settings
from octavo.web.app import create_app

PROBLEM = {"type": "about:blank", "title": "Not found.", "status": 404, "code": "NOT_FOUND", "detail": None}
NO_RETRIES = RetryPolicy(pauses=(), longest_wait=0)
# Sent in the body instead, computed by the client, or sent for the second page, which the client requests itself.
NOT_IN_QUERY = {
    "add_document": {"duplicates", "extraction", "title", "sha256", "bytes"},
    "list_analysis_items": {"cursor"},
}


@dataclass(slots=True)
class Sent:
    """What was sent to one route, in all calls together."""

    query: set[str] = field(default_factory=set[str])
    keyed: set[bool] = field(default_factory=set[bool])


@dataclass(frozen=True, slots=True)
class Operation:
    name: str
    method: str
    path: re.Pattern[str]
    query: frozenset[str]
    takes_key: bool


@cache
def operations() -> list[Operation]:
    """Fixed paths before those with parameters, which match them too."""
    paths = create_app(Settings(data_dir=Path("/nowhere"))).openapi()["paths"]
    found = [operation(path, method, one) for path, item in paths.items() for method, one in item.items()]
    return sorted(found, key=lambda one: one.path.pattern.count("[^/]"))


def operation(path: str, method: str, about: dict[str, Any]) -> Operation:
    names = {(one["in"], one["name"]) for one in about.get("parameters", ())}
    query = frozenset(name for place, name in names if place == "query")
    template = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
    return Operation(about["operationId"], method.upper(), template, query, ("header", "idempotency-key") in names)


# Calls with made-up arguments ---------------------------------------------------------------------------------------


def methods(calls: type[Calls]) -> Iterator[tuple[str, Callable[..., Any]]]:
    for base in reversed(calls.__mro__):
        for name, one in vars(base).items():
            if isinstance(one, Call | Stream):
                yield name, getattr(calls, name)


def sample(kind: Any, file: Path) -> Any:  # noqa: ANN401, PLR0911 - any annotation
    """A value of an annotation that is sent, and not left out."""
    kinds = [one for one in get_args(kind) if one is not NoneType]
    if get_origin(kind) in {Union, UnionType}:
        return sample(kinds[0], file)
    if get_origin(kind) is Literal:
        return kinds[0]
    if get_origin(kind) in {Sequence, list}:
        return [sample(kinds[0], file)]
    if get_origin(kind) is Mapping:
        return {"a": "b"}
    if get_origin(kind) is not None:
        return print  # a callback for progress
    if kind is File:
        return File(file, file.name, 4)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return cast("Any", kind)(**{one.name: sample(hints[one.name], file) for one in fields(kind)})
    if isinstance(kind, EnumType):
        return next(iter(cast("type[Enum]", kind)))
    values: dict[Any, Any] = {
        UUID: uuid4(),
        str: "x",
        object: "x",
        int: 2,
        float: 0.5,
        bool: True,
        Path: file,
        date: date(2026, 1, 1),
    }
    return values[kind]


def arguments(function: Callable[..., Any], file: Path) -> Iterator[dict[str, Any]]:
    """The arguments of one call; of one call for each choice of a parameter that has choices."""
    hints = get_type_hints(function)
    named = [one for one in signature(function).parameters.values() if one.kind is not Parameter.VAR_KEYWORD][1:]
    usual = {one.name: sample(hints[one.name], file) for one in named}
    yield usual
    yield {one.name: usual[one.name] for one in named if one.default is Parameter.empty}
    for one in named:
        choices = get_args(hints[one.name]) if get_origin(hints[one.name]) is Literal else ()
        yield from ({**usual, one.name: choice} for choice in choices)


async def call_all(calls: Calls, file: Path) -> None:
    for name, function in methods(type(calls)):
        for given in arguments(function, file):
            with suppress(OctavoError):
                await finish(getattr(calls, name)(**given), stream=isasyncgenfunction(function))


async def finish(running: Any, *, stream: bool) -> None:  # noqa: ANN401 - a coroutine or a generator
    if not stream:
        await running
    else:
        async for _ in running:
            pass


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Sent]:
    """What each route gets, by its operation id. All answers are "not found", and the file is too small to be split."""
    file = tmp_path_factory.mktemp("sent") / "file.txt"
    file.write_text("text")
    found: dict[str, Sent] = defaultdict(Sent)

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        known = [one for one in operations() if one.method == request.method and one.path.fullmatch(path)]
        name = known[0].name if known else f"{request.method} {path}"
        found[name].query |= set(request.url.params)
        found[name].keyed.add("idempotency-key" in request.headers)
        return httpx.Response(404, json=PROBLEM)

    async def run() -> None:
        async with Client("http://localhost", retry_policy=NO_RETRIES, http=httpx.MockTransport(answer)) as client:
            for calls in (client, client.analyses, client.automation, client.conversions):
                await call_all(calls, file)

    asyncio.run(run())
    return found


def test_every_route_has_a_method_and_every_method_a_route(sent: Mapping[str, Sent]) -> None:
    assert set(sent) == {one.name for one in operations()}


def test_every_query_parameter_can_be_sent(sent: Mapping[str, Sent]) -> None:
    for one in operations():
        assert sent[one.name].query | NOT_IN_QUERY.get(one.name, set()) == set(one.query), one.name


def test_a_key_is_sent_only_to_routes_that_know_it(sent: Mapping[str, Sent]) -> None:
    """Elsewhere it would promise what the server does not keep."""
    assert [one.name for one in operations() if True in sent[one.name].keyed and not one.takes_key] == []
    assert sum(True in one.keyed for one in sent.values()) > 15


def test_the_blocking_client_has_the_same_methods() -> None:
    assert {name for name, _ in methods(SyncClient)} == {name for name, _ in methods(Client)}
    with SyncClient("http://localhost") as blocking:
        assert dict(methods(type(blocking.analyses))) == dict(methods(type(Client("http://localhost").analyses)))
        assert dict(methods(type(blocking.automation))) == dict(methods(type(Client("http://localhost").automation)))
        assert dict(methods(type(blocking.conversions))) == dict(methods(type(Client("http://localhost").conversions)))
