"""However a child ends, the worker learns the right class of error and is not hurt."""

from __future__ import annotations

import contextlib
import tempfile
import time
from dataclasses import replace

import pytest

from octavo.core import errors
from octavo.sandbox import (
    Call,
    ChildCrashed,
    Limits,
    OutOfMemory,
    OutOfTime,
    OutputTooLarge,
    Progress,
    Sandbox,
    StepOutOfTime,
    TaskFailed,
)
from tests.support.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1 << 20
LIMITS = Limits(memory_bytes=256 * MIB, cpu_seconds=10, wall_seconds=PATIENCE_SECONDS, output_bytes=4 * MIB)

DEATHS: list[tuple[str, type[errors.OctavoError], str, Limits]] = [
    # Crashes in native code
    ("segfault", ChildCrashed, "Signal 11", LIMITS),
    ("abort", ChildCrashed, "Signal 6", LIMITS),
    # Leaving without an answer
    ("exit_quietly", ChildCrashed, "Exit status 3", LIMITS),
    ("exit_without_answer", ChildCrashed, "Exit status 0 without a result", LIMITS),
    ("exit_politely", ChildCrashed, "Exit status 4", LIMITS),
    # Time
    ("compute_for_ever", OutOfTime, "1 seconds of CPU time", replace(LIMITS, cpu_seconds=1)),
    ("ignore_signals_and_compute", OutOfTime, "1 seconds of CPU time", replace(LIMITS, cpu_seconds=1)),
    ("apply_a_stuck_pattern", StepOutOfTime, "One step took longer", LIMITS),
    ("sleep_for_ever", OutOfTime, "0.2 seconds", replace(LIMITS, wall_seconds=0.2)),
    ("answer_and_stay", OutOfTime, "0.2 seconds", replace(LIMITS, wall_seconds=0.2)),
    ("flood_standard_error", OutOfTime, "0.5 seconds", replace(LIMITS, wall_seconds=0.5)),
    # Memory, as Python, as allocators and as Rust tell it
    ("take_memory_at_once", OutOfMemory, "bytes of memory", LIMITS),
    ("take_memory_in_small_pieces", OutOfMemory, "bytes of memory", LIMITS),
    ("take_memory_natively_and_abort", OutOfMemory, "bytes of memory", LIMITS),
    ("say_that_memory_is_gone_and_abort", OutOfMemory, "bytes of memory", LIMITS),
    # Output
    ("write_without_end", OutputTooLarge, "4194304 bytes", LIMITS),
    ("write_too_much_and_hide_it", OutputTooLarge, "4194304 bytes", LIMITS),
    ("return_too_much", OutputTooLarge, "", LIMITS),
    # Exceptions
    ("raise_encrypted", errors.Encrypted, "It is page 3.", LIMITS),
    ("raise_own_kind", errors.Encrypted, "It is page 4.", LIMITS),
    ("raise_other", TaskFailed, "ZeroDivisionError: line break", LIMITS),
    ("raise_panic", TaskFailed, "PanicException: index out of bounds", LIMITS),
    ("recurse", TaskFailed, "RecursionError", LIMITS),
    ("return_no_json", TaskFailed, "TypeError", LIMITS),
    ("return_infinity", TaskFailed, "ValueError", LIMITS),
    # Would be tried again for ever, free of charge; a parser has no network anyway.
    ("raise_network_failed", TaskFailed, "NetworkFailed", LIMITS),
    # A function that is not there
    ("missing", TaskFailed, "AttributeError", LIMITS),
]


@pytest.mark.parametrize(("name", "expected", "detail", "limits"), DEATHS, ids=[case[0] for case in DEATHS])
async def test_death_has_its_class(
    sandbox: Sandbox, name: str, expected: type[errors.OctavoError], detail: str, limits: Limits
) -> None:
    with tempfile.TemporaryFile() as output, pytest.raises(expected) as failure:
        await sandbox.run(Call(f"deaths:{name}"), output_file=output, limits=limits)
    assert type(failure.value) is expected
    assert detail in failure.value.line
    assert len(failure.value.line) < 800


GARBAGE = [
    "no message",
    "no JSON",
    "deep JSON",
    "endless line",
    "endless progress",
    "not a number",
    "huge number",
    "two answers",
    "odd progress",
    "huge progress",
    "odd error",
    "invalid UTF-8",
]


@pytest.mark.parametrize("kind", GARBAGE)
async def test_garbage_is_a_crash(sandbox: Sandbox, kind: str) -> None:
    with pytest.raises(ChildCrashed, match="Broke the protocol"):
        await sandbox.run(Call("deaths:write_garbage", {"kind": kind}), on_progress=lambda _progress: None)


@pytest.mark.parametrize("name", ["OctavoError.__init__", "ErrorClass", "RETRY_RULES", "annotations", "\\u0000"])
async def test_child_cannot_name_just_any_class(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(TaskFailed) as failure:
        await sandbox.run(Call("deaths:claim_error", {"name": name}))
    assert "\x1b" not in failure.value.line


async def test_output_of_exactly_the_limit_is_fine(sandbox: Sandbox) -> None:
    with tempfile.TemporaryFile() as output:
        outcome = await sandbox.run(
            Call("deaths:write_exactly", {"size": LIMITS.output_bytes}), output_file=output, limits=LIMITS
        )
        assert outcome.output_bytes == LIMITS.output_bytes
        with pytest.raises(OutputTooLarge):
            await sandbox.run(
                Call("deaths:write_exactly", {"size": LIMITS.output_bytes + 1}), output_file=output, limits=LIMITS
            )


async def test_standard_output_goes_nowhere(sandbox: Sandbox) -> None:
    assert (await sandbox.run(Call("deaths:flood_standard_output"))).value is None


async def test_log_is_short_and_printable(sandbox: Sandbox) -> None:
    with pytest.raises(ChildCrashed) as failure:
        await sandbox.run(Call("deaths:segfault"))
    assert "deaths.py" in failure.value.log
    assert len(failure.value.log) <= 4096
    assert all(character.isprintable() or character == "\n" for character in failure.value.log)


async def test_progress_cannot_flood_the_worker(sandbox: Sandbox) -> None:
    heard: list[Progress] = []
    for name in ("flood_progress", "call_progress_without_end"):
        heard.clear()
        outcome = await sandbox.run(Call(f"deaths:{name}"), on_progress=heard.append)
        assert heard
        # One every 20 ms, and what is left in the pipe at the end.
        assert len(heard) <= outcome.wall_seconds / 0.02 + 4


@pytest.mark.parametrize("name", ["drip_answer", "flood_progress", "flood_standard_error"])
async def test_child_that_never_stops_writing_costs_little(sandbox: Sandbox, name: str) -> None:
    before = time.process_time()
    with contextlib.suppress(OutOfTime):
        await sandbox.run(Call(f"deaths:{name}"), limits=replace(LIMITS, wall_seconds=1))
    assert time.process_time() - before < 0.3


async def test_callback_that_fails_ends_the_task(sandbox: Sandbox) -> None:
    def fail(_progress: Progress) -> None:
        raise LookupError("the caller's own mistake")

    with pytest.raises(LookupError, match="own mistake"):
        await sandbox.run(Call("deaths:sleep_for_ever"), on_progress=fail)
