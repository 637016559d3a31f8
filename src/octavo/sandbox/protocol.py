"""The messages between the worker, the preloaded parent process and the child processes that it forks.

The parent process only receives numbers and descriptors. Arguments, which may contain a password, are sent directly to
the child process. If the parent process had them in memory, later child processes would inherit them.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from enum import IntEnum
from typing import NamedTuple, TypedDict, cast

from octavo.core.types import JSON
from octavo.sandbox.limits import KIB, MIB, Limits

# Between worker and preloaded parent: messages of fixed size, so that the stream needs no framing.


class Order(IntEnum):
    """An order that the worker sends to the preloaded parent process, such as to start a child process."""

    RUN = 1
    KILL = 2


class Notice(IntEnum):
    """A message that the preloaded parent process sends to the worker, such as that a child process has ended."""

    READY = 1
    EXITED = 2


ORDER = struct.Struct("!BQ")  # order, task
NOTICE = struct.Struct("!BQqdQ")  # notice, task, wait status, CPU seconds, peak memory in bytes

# In place of a wait status, which is never negative: the preloaded parent could not fork.
NOT_STARTED = -1


class ChildFiles(NamedTuple):
    """The file descriptors that are sent to the parent process with `Order.RUN`, in this order."""

    request: int
    input: int
    output: int
    channel: int
    log: int


# From child to worker: one JSON document per line; the first byte is the kind of message.

PROGRESS = b"P"
VALUE = b"V"
ERROR = b"E"

MAX_VALUE_BYTES = 1 * MIB
MAX_PROGRESS_BYTES = 256
MAX_REQUEST_BYTES = 1 * MIB
MAX_TEXT = 500

CHUNK_BYTES = 64 * KIB


class Request(TypedDict):
    """A request to a child process: the function to call, its arguments and its limits."""

    function: str
    arguments: dict[str, JSON]
    limits: dict[str, int | float]


class Failure(TypedDict):
    """The reason why the function did not return. `kind` is one of the constants below."""

    kind: str
    name: str
    detail: str | None


FAILURE_MEMORY = "memory"
FAILURE_OUTPUT = "output"
FAILURE_NAMED = "named"  # an error of octavo.core.errors
FAILURE_OTHER = "other"


def frame(kind: bytes, document: object) -> bytes:
    """Encode a message as one line for the channel between the processes. Refuses NaN, which is not JSON."""
    return kind + json.dumps(document, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def write_request(function: str, arguments: Mapping[str, JSON], limits: Limits) -> int:
    """Write the request to an unnamed file and return its descriptor, positioned at the start."""
    request = Request(function=function, arguments=dict(arguments), limits=asdict(limits))
    document = json.dumps(request, allow_nan=False).encode()
    if len(document) > MAX_REQUEST_BYTES:
        raise ValueError(f"the arguments take {len(document)} bytes; pass large data in the input file")
    descriptor = _unnamed_file()
    os.pwrite(descriptor, document, 0)
    return descriptor


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("request")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def read_request(descriptor: int) -> tuple[str, dict[str, JSON], Limits]:
    """Read the request that `write_request` wrote, and close the descriptor."""
    with os.fdopen(descriptor, "rb") as file:
        request = cast("Request", json.load(file))
    return request["function"], request["arguments"], Limits(**request["limits"])  # pyright: ignore[reportArgumentType]
