"""How a death is read: a table of endings."""

from __future__ import annotations

import json
import signal
from dataclasses import replace

import pytest

from octavo.core import errors
from octavo.sandbox import ChildCrashed, Limits, OutOfMemory, OutOfTime, OutputTooLarge, TaskFailed
from octavo.sandbox.link import Exit, FinishedTask, judge
from octavo.sandbox.protocol import NOT_STARTED

LIMITS = Limits(memory_bytes=1000, cpu_seconds=10, wall_seconds=20, output_bytes=100)
GOOD = FinishedTask(
    exit=Exit(status=0, cpu_seconds=1.0, peak_memory_bytes=100),
    limits=LIMITS,
    wall_seconds=2.0,
    over_wall=False,
    output_bytes=100,
    answer=b'V{"pages":3}',
    garbled=None,
    log="",
)


def died(number: int, *, cpu_seconds: float = 1.0, peak: int = 100) -> Exit:
    return Exit(status=number, cpu_seconds=cpu_seconds, peak_memory_bytes=peak)


def failed(kind: str, name: str, detail: str | None = None) -> FinishedTask:
    return replace(GOOD, answer=b"E" + json.dumps({"kind": kind, "name": name, "detail": detail}).encode())


def test_good_ending_has_its_value_and_cost() -> None:
    outcome = judge(GOOD)
    assert outcome.value == {"pages": 3}
    assert (outcome.output_bytes, outcome.cpu_seconds, outcome.peak_memory_bytes) == (100, 1.0, 100)


CASES: list[tuple[FinishedTask, type[errors.OctavoError]]] = [
    # An answer does not help a child that did not end well after it.
    (replace(GOOD, exit=died(signal.SIGSEGV)), ChildCrashed),
    (replace(GOOD, exit=died(3 << 8)), ChildCrashed),
    (replace(GOOD, answer=None), ChildCrashed),
    (replace(GOOD, garbled="it wrote rubbish"), ChildCrashed),
    (replace(GOOD, exit=died(NOT_STARTED), answer=None), ChildCrashed),
    # Killed: by us, by the CPU limit, or by somebody else.
    (replace(GOOD, exit=died(signal.SIGKILL), over_wall=True, answer=None), OutOfTime),
    (replace(GOOD, exit=died(signal.SIGXCPU), answer=None), OutOfTime),
    (replace(GOOD, exit=died(signal.SIGKILL, cpu_seconds=11), answer=None), OutOfTime),
    (replace(GOOD, exit=died(signal.SIGKILL), answer=None), ChildCrashed),
    # Memory: near the limit, or by what was said before the abort.
    (replace(GOOD, exit=died(signal.SIGABRT, peak=900), answer=None), OutOfMemory),
    (replace(GOOD, exit=died(signal.SIGTRAP, peak=900), answer=None), OutOfMemory),
    (replace(GOOD, exit=died(signal.SIGABRT), answer=None, log="std::bad_alloc"), OutOfMemory),
    (failed("memory", "MemoryError"), OutOfMemory),
    # The last moment counts: it ended well just before we would have killed it.
    (replace(GOOD, output_bytes=101), OutputTooLarge),
    (failed("output", ""), OutputTooLarge),
    # Errors by name
    (failed("named", "Encrypted", "page 3"), errors.Encrypted),
    (failed("named", "StorageFailed"), errors.StorageFailed),
    (failed("named", "RateLimited"), TaskFailed),
    (failed("named", "cleandoc"), TaskFailed),
    (failed("other", "KeyError", "'x'"), TaskFailed),
    # A broken error is a crash.
    (replace(GOOD, answer=b"E1"), ChildCrashed),
    (replace(GOOD, answer=b'E{"kind":1,"name":"x","detail":null}'), ChildCrashed),
]


@pytest.mark.parametrize(("ending", "expected"), CASES)
def test_ending_has_its_class(ending: FinishedTask, expected: type[errors.OctavoError]) -> None:
    with pytest.raises(expected) as failure:
        judge(ending)
    assert type(failure.value) is expected


def test_end_in_the_last_moment_is_good() -> None:
    assert judge(replace(GOOD, over_wall=True)).value == {"pages": 3}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ChildCrashed(), "CRASHED"),
        (OutOfMemory(), "CRASHED"),
        (OutOfTime(), "TIMEOUT"),
        (OutputTooLarge(), "TOO_LARGE"),
        (TaskFailed("KeyError", "x"), "UNKNOWN"),
    ],
)
def test_codes_are_stable(error: errors.OctavoError, code: str) -> None:
    assert error.code == code
    assert error.title
