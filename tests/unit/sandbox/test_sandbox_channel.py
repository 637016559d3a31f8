"""What the worker makes of a child's words, however they are cut into chunks."""

from __future__ import annotations

import pytest

from octavo.sandbox import Progress
from octavo.sandbox.channel import Channel, GarbledError, Log, parse_progress
from octavo.sandbox.protocol import MAX_VALUE_BYTES


def listen(*chunks: bytes) -> tuple[Channel, list[Progress], int]:
    heard: list[Progress] = []
    failures: list[None] = []
    channel = Channel(heard.append, on_failure=lambda: failures.append(None))
    for chunk in chunks:
        channel.feed(chunk)
    return channel, heard, len(failures)


def test_lines_may_come_in_pieces() -> None:
    channel, heard, failures = listen(b'P[1,2,"pa', b'ges"]\nV{"a"', b":1}\n")
    assert (channel.answer, heard, failures) == (b'V{"a":1}', [Progress(1, 2, "pages")], 0)


def test_of_many_progress_lines_only_the_newest_counts() -> None:
    _, heard, _ = listen(b'P[1,null,"x"]\nP[2,null,"x"]\nP[3,null,"x"]\n')
    assert heard == [Progress(3, None, "x")]


def test_half_an_answer_wants_more() -> None:
    channel, _, _ = listen()
    assert channel.feed(b"V[1,") is True
    assert channel.feed(b"2]\n") is False


@pytest.mark.parametrize(
    "chunks",
    [
        [b"rubbish\n"],
        [b"\n"],
        [b"V1\nV2\n"],
        [b"V1\n", b'P[1,2,"x"]\n'],
        [b"V" + b"1" * MAX_VALUE_BYTES],
        [b"P" * 65536] * 17,
    ],
)
def test_garbage_is_noticed_once(chunks: list[bytes]) -> None:
    channel, _, failures = listen(*chunks, b"more\n", b"and more\n")
    assert isinstance(channel.failure, GarbledError)
    assert failures == 1


@pytest.mark.parametrize(
    "document",
    [
        b"1",
        b"[1,2]",
        b"[true,2,3]",
        b'["1",2,"x"]',
        b'[-1,2,"x"]',
        b'[1,-2,"x"]',
        b'[1.5,2,"x"]',
        b'[99999999999999999999,null,"x"]',
        b"\xff",
    ],
)
def test_odd_progress_is_refused(document: bytes) -> None:
    with pytest.raises(GarbledError):
        parse_progress(document)


def test_unit_cannot_steer_a_terminal() -> None:
    assert parse_progress(b'[1,2,"\\u001b[2J\\u202e"]').unit == " [2J "


def test_log_keeps_the_end() -> None:
    log = Log()
    for number in range(10_000):
        log.feed(f"line {number}\n".encode())
    assert log.text.endswith("line 9999")
    assert len(log.text) <= 4096
