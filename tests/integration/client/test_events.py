"""A program that follows the events gets each once, whatever the connection does."""

from __future__ import annotations

from contextlib import aclosing
from uuid import UUID

import pytest

from octavo.client import Client, RemoteProblem, Unreachable
from octavo.client.jobs import read_data
from octavo.client.transport import RetryPolicy
from octavo.core.http import ServerSentEvent, read_event, read_events
from tests.integration.client.servers import HANG_UP, answer, serving

PROBLEM = {"type": "about:blank", "title": "No.", "detail": "No."}
STREAM = {"content_type": "text/event-stream"}


def told(number: int) -> str:
    process = UUID(int=number)
    return (
        f'id: 5-{number}\ndata: {{"id": {number}, "at": "2026-11-15T12:00:00Z", "kind": "stage", "document_id": null, '
        f'"process_id": "{process}", "state_after": null, "detail": {{"text": "a\u2028b"}}}}\n\n'
    )


def hello(place: str) -> str:
    return f': events\nretry: 2000\n\nevent: hello\nid: {place}\ndata: {{"cursor": "{place}"}}\n\n'


def client_of(address: str, pauses: int = 5) -> Client:
    return Client(address, retry_policy=RetryPolicy(pauses=[0.0] * pauses))


async def take(client: Client, count: int, after: str | None = None) -> list[int]:
    async with aclosing(client.events(after=after)) as events:
        return [(await anext(events)).id for _ in range(count)]


async def test_a_stream_that_ends_is_opened_again_where_it_was() -> None:
    first, cut, third = hello("4-0") + told(1), hello("5-1") + told(2) + told(3)[:40], hello("5-2") + told(3)
    async with (
        serving(*(answer(200, body, **STREAM) for body in (first, cut, third))) as script,
        client_of(script.address) as client,
    ):
        assert await take(client, 3) == [1, 2, 3]
        assert [headers.get("last-event-id") for headers in script.headers] == [None, "5-1", "5-2"]
        assert {headers["accept"] for headers in script.headers} == {"text/event-stream"}


async def test_who_never_heard_of_an_event_comes_back_to_where_the_stream_began() -> None:
    async with (
        serving(answer(200, hello("4-0"), **STREAM), HANG_UP, answer(200, told(1), **STREAM)) as script,
        client_of(script.address) as client,
    ):
        assert await take(client, 1) == [1]
        assert [headers.get("last-event-id") for headers in script.headers] == [None, "4-0", "4-0"]


async def test_a_server_that_asks_for_patience_gets_it() -> None:
    busy = answer(429, PROBLEM | {"status": 429, "code": "TOO_MANY_STREAMS"}, retry_after="0")
    async with (
        serving(busy, busy, answer(200, told(1), **STREAM)) as script,
        client_of(script.address, pauses=0) as client,
    ):
        assert await take(client, 1, after="4-4") == [1]
        assert [headers["last-event-id"] for headers in script.headers] == ["4-4"] * 3


async def test_a_refusal_is_raised() -> None:
    gone = answer(410, PROBLEM | {"status": 410, "code": "TOO_FAR_BEHIND"})
    async with serving(gone) as script, client_of(script.address) as client:
        with pytest.raises(RemoteProblem) as raised:
            await take(client, 1)
        assert (raised.value.status, raised.value.code) == (410, "TOO_FAR_BEHIND")


async def test_patience_ends() -> None:
    async with serving(HANG_UP) as script, client_of(script.address, pauses=2) as client:
        with pytest.raises(Unreachable):
            await take(client, 1)
        assert len(script.requests) == 3


async def test_messages_are_read_from_any_pieces() -> None:
    whole = (hello("4-0") + ":\n\n" + told(1) + told(2)).encode()
    for size in (1, 2, 7, len(whole)):
        pieces = [whole[begin : begin + size] for begin in range(0, len(whole), size)]

        async def send(pieces: list[bytes] = pieces):  # noqa: ANN202 - a generator of what is above
            for piece in pieces:
                yield piece

        found = [message async for message in read_events(send())]
        assert [(one.name, one.id) for one in found] == [("hello", "4-0"), ("message", "5-1"), ("message", "5-2")]
        assert read_data(found[1])["detail"] == {"text": "a\u2028b"}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("", None),
        (": only a comment", None),
        ("retry: 2000", None),
        ("data: a\ndata:b\nid: 1-2", ServerSentEvent("message", "1-2", "a\nb")),
        ("event: x\ndata", ServerSentEvent("x", "", "")),
    ],
    ids=["nothing", "comment", "wish", "lines", "empty"],
)
def test_a_message_is_what_has_data(block: str, expected: ServerSentEvent | None) -> None:
    assert read_event(block) == expected
