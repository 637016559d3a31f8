"""The system call filter: an allow-list, so that calls added to the kernel later are refused as well.

Refused calls return EPERM, so that a library can do without them. Newer calls return ENOSYS, so that the C library
falls back to older ones. A foreign calling convention, in which the same numbers mean other calls, kills the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from dataclasses import dataclass

from octavo.sandbox import kernel, syscalls

_LOAD_WORD = 0x20
_AND = 0x54
_JUMP_IF_EQUAL = 0x15
_JUMP_IF_AT_LEAST = 0x35
_RETURN = 0x06

ALLOW = 0x7FFF0000
KILL = 0x80000000
REFUSE = 0x00050000 | errno.EPERM
UNKNOWN = 0x00050000 | errno.ENOSYS

_OFFSET_NUMBER = 0
_OFFSET_ARCHITECTURE = 4
_OFFSET_ARGUMENTS = 16

AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# The x32 calling convention reports x86_64 as its architecture and marks its numbers with this bit.
_X32_BIT = 0x40000000
# From this number on, calls are the same on all architectures, and libraries expect ENOSYS from older kernels.
_FIRST_RECENT = 424

_ALL_BITS = 0xFFFFFFFF
_MODE_FILTER = 2


@dataclass(frozen=True, slots=True)
class Check:
    """Allows a call only if `argument & mask` is one of `values`.

    The lower 32 bits are enough: the kernel treats every argument checked here as an int.
    """

    argument: int
    mask: int
    values: tuple[int, ...]


_OPEN_FOR_WRITING = 0x3 | 0x40 | 0x200 | 0x400000  # write or read-write, create, truncate, unnamed temporary file
_AF_UNIX = 1
_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020080
_MAP_SHARED, _MAP_ANONYMOUS, _MAP_GROWS_DOWN = 0x01, 0x20, 0x100

CHECKS: dict[str, Check] = {
    "open": Check(1, _OPEN_FOR_WRITING, (0,)),
    "openat": Check(2, _OPEN_FOR_WRITING, (0,)),
    "clone": Check(0, _CLONE_THREAD | _CLONE_NAMESPACES, (_CLONE_THREAD,)),
    # RLIMIT_DATA does not count shared anonymous memory, nor memory that grows downwards.
    "mmap": Check(3, _MAP_SHARED | _MAP_ANONYMOUS | _MAP_GROWS_DOWN, (0, _MAP_SHARED, _MAP_ANONYMOUS)),
    # A process can only change its own limits: pid 0 is the process itself.
    "prlimit64": Check(0, _ALL_BITS, (0,)),
    # Names of threads and memory, and queries; not the signal for the death of the parent.
    "prctl": Check(0, _ALL_BITS, (2, 3, 15, 16, 21, 23, 39, 0x53564D41)),
    # Duplicates and flags; not F_SETOWN and F_SETSIG, which make the kernel signal other processes.
    "fcntl": Check(1, _ALL_BITS, (0, 1, 2, 3, 4, 1030, 1032)),
    # isatty, window size, bytes waiting, blocking, close-on-exec; not TIOCSTI, which types into a terminal.
    "ioctl": Check(1, _ALL_BITS, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
    # Two ends of one pipe inside the child, which runtimes use to wake their threads. connect, bind, sendto and
    # sendmsg are refused, so neither end can be connected elsewhere or carry a descriptor.
    "socketpair": Check(0, _ALL_BITS, (_AF_UNIX,)),
}

# Allowed only for the process itself, because abort() and raise() use them. Its ID is known only after the fork.
_SELF_ONLY = ("kill", "tgkill")


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _return(action: int) -> bytes:
    return _instruction(_RETURN, action)


def _allowed(number: int) -> bytes:
    return _instruction(_JUMP_IF_EQUAL, number, 0, 1) + _return(ALLOW)


def _checked(number: int, check: Check) -> bytes:
    count = len(check.values)
    body = [
        _instruction(_LOAD_WORD, _OFFSET_ARGUMENTS + 8 * check.argument),
        _instruction(_AND, check.mask),
        *(_instruction(_JUMP_IF_EQUAL, value, count - index, 0) for index, value in enumerate(check.values)),
        _return(REFUSE),
        _return(ALLOW),
    ]
    return b"".join([_instruction(_JUMP_IF_EQUAL, number, 0, len(body)), *body])


def _head(machine: str) -> bytes:
    same_architecture = _instruction(_JUMP_IF_EQUAL, AUDIT_ARCHITECTURES[machine], 1, 0)
    head = [_instruction(_LOAD_WORD, _OFFSET_ARCHITECTURE), same_architecture, _return(KILL)]
    head.append(_instruction(_LOAD_WORD, _OFFSET_NUMBER))
    if machine == "x86_64":
        head += [_instruction(_JUMP_IF_AT_LEAST, _X32_BIT, 0, 1), _return(KILL)]
    return b"".join(head)


def _tail() -> bytes:
    recent = _instruction(_JUMP_IF_AT_LEAST, _FIRST_RECENT, 0, 1)
    return recent + _return(UNKNOWN) + _return(REFUSE)


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that is complete except for the process ID, which is known only after the fork."""

    head: bytes
    tail: bytes
    self_only: tuple[int, ...]

    @classmethod
    def build(cls, machine: str) -> Filter:
        """Build the filter once, in the parent process."""
        numbers = syscalls.numbers_for(machine)
        checked = [_checked(numbers[name], check) for name, check in CHECKS.items() if name in numbers]
        plain = [name for name in numbers if name not in CHECKS and name not in _SELF_ONLY]
        return cls(
            head=_head(machine),
            tail=b"".join([*(_allowed(numbers[name]) for name in plain), *checked, _tail()]),
            self_only=tuple(numbers[name] for name in _SELF_ONLY),
        )

    def for_process(self, pid: int) -> bytes:
        """The filter as a program in the kernel's format, with the ID of this process."""
        only_itself = Check(0, _ALL_BITS, (pid,))
        return b"".join([self.head, *(_checked(number, only_itself) for number in self.self_only), self.tail])


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_for(machine: str) -> Filter | None:
    """The filter for this machine; None if the kernel does not support filters or the architecture is unknown."""
    is_64_bit = sys.maxsize > _ALL_BITS  # a 32-bit Python on a 64-bit kernel uses other numbers
    if not kernel.IS_LINUX or not is_64_bit or machine not in syscalls.ARCHITECTURES:
        return None
    try:
        kernel.prctl(kernel.PR_GET_SECCOMP)
    except OSError:
        return None
    return Filter.build(machine)


def install(system_calls: Filter) -> None:
    """Install the filter for this process and its future threads. This cannot be undone, and requires no_new_privs."""
    instructions = system_calls.for_process(os.getpid())
    program = _Program(len(instructions) // 8, instructions)
    kernel.prctl(kernel.PR_SET_SECCOMP, _MODE_FILTER, ctypes.cast(ctypes.byref(program), ctypes.c_void_p))
