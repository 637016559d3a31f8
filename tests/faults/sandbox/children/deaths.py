"""All the ways in which a parser ends badly."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time
from typing import TYPE_CHECKING, cast

from octavo.core import errors
from octavo.sandbox import Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import JSON

libc = ctypes.CDLL(None)


class OwnKindOfEncrypted(errors.Encrypted):
    """A subclass that the worker has never heard of."""


@sandboxed
def segfault(task: Task) -> None:
    ctypes.string_at(0)


@sandboxed
def abort(task: Task) -> None:
    os.abort()


@sandboxed
def exit_quietly(task: Task) -> None:
    os._exit(3)


@sandboxed
def exit_without_answer(task: Task) -> None:
    os._exit(0)


@sandboxed
def exit_politely(task: Task) -> None:
    sys.exit(4)


@sandboxed
def compute_for_ever(task: Task) -> None:
    while True:
        pass


@sandboxed
def apply_a_stuck_pattern(task: Task) -> None:
    """A step that Python cannot interrupt, as a pattern takes on a very long text."""
    from octavo.convert.rules.patterns import kill_stuck_patterns, limit_time

    with kill_stuck_patterns(), limit_time("total"):
        sum(range(1 << 62))


@sandboxed
def ignore_signals_and_compute(task: Task) -> None:
    import signal

    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    compute_for_ever(task)


@sandboxed
def sleep_for_ever(task: Task) -> None:
    task.progress(1, 1, "asleep")
    while True:
        time.sleep(3600)


@sandboxed
def take_memory_at_once(task: Task) -> None:
    bytearray(8 << 30)


@sandboxed
def take_memory_in_small_pieces(task: Task) -> None:
    pieces: list[object] = []
    while True:
        pieces.append([len(pieces)])


@sandboxed
def take_memory_natively_and_abort(task: Task) -> None:
    libc.malloc.restype = ctypes.c_void_p
    while address := libc.malloc(ctypes.c_size_t(1 << 20)):
        ctypes.memset(address, 1, 1 << 20)
    libc.abort()


@sandboxed
def say_that_memory_is_gone_and_abort(task: Task) -> None:
    os.write(2, b"memory allocation of 17179869184 bytes failed\n")
    libc.abort()


@sandboxed
def map_memory_until_refused(task: Task) -> None:
    pieces: list[mmap.mmap] = []
    while True:
        pieces.append(mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


@sandboxed
def write_without_end(task: Task) -> None:
    while True:
        task.output.write(bytes(1 << 20))


@sandboxed
def write_too_much_and_hide_it(task: Task) -> None:
    try:
        write_without_end(task)
    except OSError:
        os._exit(0)


@sandboxed
def write_exactly(task: Task, *, size: int) -> None:
    task.output.write(bytes(size))


@sandboxed
def return_too_much(task: Task) -> JSON:
    return "x" * (2 << 20)


@sandboxed
def return_no_json(task: Task) -> JSON:
    return cast("JSON", object())


@sandboxed
def return_infinity(task: Task) -> JSON:
    return float("inf")


@sandboxed
def flood_standard_output(task: Task) -> None:
    for _ in range(2000):
        os.write(1, b"x" * 65536)
        sys.stdout.write("y" * 1000)


@sandboxed
def flood_standard_error(task: Task) -> None:
    while True:
        os.write(2, b"\x1b[31mhostile\n" * 5000)


@sandboxed
def flood_progress(task: Task) -> JSON:
    line = b'P[1,2,"pages"]\n' * 4000
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        os.write(task.channel, line)
    return None


@sandboxed
def drip_answer(task: Task) -> None:
    os.write(task.channel, b"V1")
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        os.write(task.channel, b" ")
    os.write(task.channel, b"\n")
    os._exit(0)


@sandboxed
def call_progress_without_end(task: Task) -> JSON:
    for done in range(100_000):
        task.progress(done, 100_000, "pages")
    return None


GARBAGE: dict[str, bytes] = {
    "no message": b"\x00\xff\xfe rubbish\n",
    "no JSON": b"V{{{{\n",
    "deep JSON": b"V" + b"[" * 500_000 + b"\n",
    "endless line": b"V" + b"1" * (4 << 20),
    "endless progress": b"P" + b"1" * (4 << 20),
    "not a number": b"V[NaN]\n",
    "huge number": b"V" + b"9" * 5000 + b"\n",
    "two answers": b"V1\nV2\n",
    "odd progress": b'P{"done":1}\n',
    "huge progress": b"P[1e999,1,2]\n",
    "odd error": b"E[1,2,3]\n",
    "invalid UTF-8": b'V"\xff"\n',
}


@sandboxed
def write_garbage(task: Task, *, kind: str) -> None:
    rest = GARBAGE[kind]
    while rest:
        rest = rest[os.write(task.channel, rest) :]
    os._exit(0)


@sandboxed
def claim_error(task: Task, *, name: str) -> None:
    os.write(task.channel, f'E{{"kind":"named","name":"{name}","detail":"\\u001b[2J"}}\n'.encode())
    os._exit(0)


@sandboxed
def answer_and_stay(task: Task) -> None:
    os.write(task.channel, b"V1\n")
    time.sleep(3600)


@sandboxed
def raise_encrypted(task: Task) -> None:
    raise errors.Encrypted("It is page 3.")


@sandboxed
def raise_own_kind(task: Task) -> None:
    raise OwnKindOfEncrypted("It is page 4.")


@sandboxed
def raise_network_failed(task: Task) -> None:
    raise errors.NetworkFailed


@sandboxed
def raise_other(task: Task) -> None:
    raise ZeroDivisionError("line\nbreak" + "x" * 10_000)


@sandboxed
def raise_panic(task: Task) -> None:
    class PanicException(BaseException):
        """As Rust extensions raise it."""

    raise PanicException("index out of bounds")


@sandboxed
def recurse(task: Task) -> None:
    recurse(task)
