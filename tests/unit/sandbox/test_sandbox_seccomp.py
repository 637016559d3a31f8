"""The filter is run on an interpreter of its own, so that both architectures are tested on either."""

from __future__ import annotations

import platform
import re
import struct
from pathlib import Path

import pytest

from octavo.sandbox import seccomp
from octavo.sandbox.seccomp import ALLOW, KILL, REFUSE, UNKNOWN

PID = 4242
MACHINES = list(seccomp.ARCHITECTURES)


def run_filter(machine: str, number: int, arguments: tuple[int, ...] = (), audit: int | None = None) -> int:
    """Classic BPF, as far as the filter uses it."""
    audit = seccomp.AUDIT_ARCHITECTURES[machine] if audit is None else audit
    data = struct.pack("=IIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    program = list(struct.iter_unpack("=HBBI", seccomp.Filter.build(machine).for_process(PID)))
    accumulator = position = 0
    while True:
        code, if_true, if_false, value = program[position]
        position += 1
        match code:
            case 0x20:
                [accumulator] = struct.unpack_from("=I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                position += if_true if accumulator == value else if_false
            case 0x35:
                position += if_true if accumulator >= value else if_false
            case 0x06:
                return value
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


def decide(machine: str, name: str, *arguments: int) -> int:
    return run_filter(machine, seccomp.numbers_for(machine)[name], arguments)


CASES: list[tuple[str, tuple[int, ...], int]] = [
    # Plain reading, and what Python's open() adds
    ("read", (), ALLOW),
    ("openat", (0, 0, 0o2000000), ALLOW),
    # Any way of opening for writing: write, read-write, create, truncate, unnamed
    ("openat", (0, 0, 1), REFUSE),
    ("openat", (0, 0, 2), REFUSE),
    ("openat", (0, 0, 0o100), REFUSE),
    ("openat", (0, 0, 0o1000), REFUSE),
    ("openat", (0, 0, 0o20000000), REFUSE),
    # What glibc asks for a thread, and what fork() asks
    ("clone", (0x3D0F00,), ALLOW),
    ("clone", (17,), REFUSE),
    # A thread in a namespace of its own
    ("clone", (0x10000000 | 0x10000,), REFUSE),
    # Upper bits that the kernel ignores do not help
    ("clone", (17 | 1 << 32,), REFUSE),
    # Signals to oneself, to somebody else, to one's group, to everybody
    ("kill", (PID, 9), ALLOW),
    ("kill", (1, 9), REFUSE),
    ("kill", (0, 9), REFUSE),
    ("kill", (2**64 - 1, 9), REFUSE),
    ("tgkill", (PID, PID + 1, 6), ALLOW),
    ("tgkill", (1, 1, 6), REFUSE),
    # Private memory, a shared file, shared memory, memory that grows downwards
    ("mmap", (0, 4096, 3, 0x22), ALLOW),
    ("mmap", (0, 4096, 1, 0x01), ALLOW),
    ("mmap", (0, 4096, 3, 0x21), REFUSE),
    ("mmap", (0, 4096, 3, 0x122), REFUSE),
    # One's own limits, another's limits
    ("prlimit64", (0,), ALLOW),
    ("prlimit64", (1,), REFUSE),
    # A thread's name; the signal at the parent's death, dumpable, another filter
    ("prctl", (15,), ALLOW),
    ("prctl", (1,), REFUSE),
    ("prctl", (4,), REFUSE),
    ("prctl", (22,), REFUSE),
    # F_GETFL; F_SETOWN, F_SETSIG, F_SETPIPE_SZ
    ("fcntl", (3, 3), ALLOW),
    ("fcntl", (3, 8), REFUSE),
    ("fcntl", (3, 10), REFUSE),
    ("fcntl", (3, 1031), REFUSE),
    # isatty; TIOCSTI, also with upper bits set
    ("ioctl", (0, 0x5401), ALLOW),
    ("ioctl", (0, 0x5412), REFUSE),
    ("ioctl", (0, 0x5412 | 1 << 32), REFUSE),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_arguments_decide(machine: str, name: str, arguments: tuple[int, ...], expected: int) -> None:
    assert decide(machine, name, *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_is_decided(machine: str) -> None:
    """Outside the table, old numbers are refused and recent ones do not exist."""
    known = set(seccomp.numbers_for(machine).values())
    for number in range(600):
        decision = run_filter(machine, number)
        if number not in known:
            assert decision == (UNKNOWN if number >= 424 else REFUSE), number
        else:
            assert decision in {ALLOW, REFUSE}


@pytest.mark.parametrize("machine", MACHINES)
def test_foreign_architecture_is_killed(machine: str) -> None:
    for audit in (0x40000003, 0x40000028, 0):  # i386, 32-bit ARM, nonsense
        assert run_filter(machine, 0, audit=audit) == KILL


def test_x32_is_killed() -> None:
    assert run_filter("x86_64", 0x40000000) == KILL
    assert run_filter("x86_64", 0x40000000 | 39) == KILL


def test_unknown_machine_has_no_filter() -> None:
    assert seccomp.filter_for("vax") is None


HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), r"#define __NR_(\w+)\s+(\d+)"),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"), r"#define __NR(?:3264)?_(\w+)\s+(\d+)"),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_the_kernels(machine: str) -> None:
    header, pattern = HEADERS[machine]
    if not header.exists():
        pytest.skip("the kernel's headers are not installed here")
    numbers = {name: int(number) for name, number in re.findall(pattern, header.read_text())}
    numbers.setdefault("newfstatat", numbers.get("fstatat", -1))
    ours = seccomp.numbers_for(machine)
    # An older header may lack the newest calls.
    assert {name: numbers[name] for name in ours if name in numbers} == {
        name: number for name, number in ours.items() if name in numbers
    }
    assert len(ours.keys() & numbers.keys()) > 100


def test_table_has_no_number_twice() -> None:
    for machine in MACHINES:
        numbers = list(seccomp.numbers_for(machine).values())
        assert len(numbers) == len(set(numbers))


@pytest.mark.skipif(platform.machine() not in MACHINES, reason="no filter for this machine")
def test_program_fits_the_kernel() -> None:
    assert len(seccomp.Filter.build(platform.machine()).for_process(PID)) // 8 <= 4096
