"""The system call filter. It is an allow-list, so that calls added to the kernel later are refused as well.

Refused calls return EPERM, so that a library can do without them. Newer calls return ENOSYS, so that the C library
falls back to older ones. A process that uses another calling convention is killed, because the call numbers have other
meanings there.

The call numbers are from the kernel's `asm/unistd_64.h` for x86_64 and from `asm-generic/unistd.h` for aarch64. aarch64
is newer and lacks some old calls. For these calls, the number is None.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from dataclasses import dataclass

from octavo.sandbox import kernel

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
ARCHITECTURES = ("x86_64", "aarch64")

NUMBERS: dict[str, tuple[int, int | None]] = {
    # Descriptors that are already open
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "pread64": (17, 67),
    "pwrite64": (18, 68),
    "preadv": (295, 69),
    "pwritev": (296, 70),
    "preadv2": (327, 286),
    "pwritev2": (328, 287),
    "lseek": (8, 62),
    "close": (3, 57),
    "close_range": (436, 436),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "pipe": (22, None),
    "pipe2": (293, 59),
    "socketpair": (53, 199),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "ftruncate": (77, 46),
    "fadvise64": (221, 223),
    "readahead": (187, 213),
    "sendfile": (40, 71),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    # Reading files
    "open": (2, None),
    "openat": (257, 56),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getdents": (78, None),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    "fchdir": (81, 50),
    "umask": (95, 166),
    # Waiting
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "epoll_create": (213, None),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441),
    "eventfd": (284, None),
    "eventfd2": (290, 19),
    # Memory
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "mincore": (27, 232),
    "msync": (26, 227),
    "membarrier": (324, 283),
    "get_mempolicy": (239, 236),
    # Threads
    "clone": (56, 220),
    "set_tid_address": (218, 96),
    "set_robust_list": (273, 99),
    "futex": (202, 98),
    "futex_waitv": (449, 449),
    "rseq": (334, 293),
    "gettid": (186, 178),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120),
    "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126),
    "arch_prctl": (158, None),
    "prctl": (157, 167),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # Signals to itself
    "kill": (62, 129),
    "tgkill": (234, 131),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137),
    "rt_sigpending": (127, 136),
    "sigaltstack": (131, 132),
    "pause": (34, None),
    "restart_syscall": (219, 128),
    # Time
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "setitimer": (38, 103),
    "getitimer": (36, 102),
    "alarm": (37, None),
    # Information about the process
    "getpid": (39, 172),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "getgroups": (115, 158),
    "getpgrp": (111, None),
    "getpgid": (121, 155),
    "getsid": (124, 156),
    "capget": (125, 90),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
    "getcpu": (309, 168),
    "getrandom": (318, 278),
    "getpriority": (140, 141),
}


@dataclass(frozen=True, slots=True)
class Check:
    """Allows a system call only if one of its arguments, masked with `mask`, is one of `values`.

    `argument` is the index of that argument. Only the lower 32 bits are compared, because the kernel treats every
    argument checked here as an int.
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
    """A system call filter that is built before the fork, except for the process ID, which is added after the fork."""

    head: bytes
    tail: bytes
    self_only: tuple[int, ...]

    @classmethod
    def build(cls, machine: str) -> Filter:
        """Build the filter. The preloaded parent process does this once, for all child processes."""
        numbers = numbers_for(machine)
        checked = [_checked(numbers[name], check) for name, check in CHECKS.items() if name in numbers]
        plain = [name for name in numbers if name not in CHECKS and name not in _SELF_ONLY]
        return cls(
            head=_head(machine),
            tail=b"".join([*(_allowed(numbers[name]) for name in plain), *checked, _tail()]),
            self_only=tuple(numbers[name] for name in _SELF_ONLY),
        )

    def for_process(self, pid: int) -> bytes:
        """Return the filter as a program in the kernel's format, for the process with this ID."""
        only_itself = Check(0, _ALL_BITS, (pid,))
        return b"".join([self.head, *(_checked(number, only_itself) for number in self.self_only), self.tail])


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_for(machine: str) -> Filter | None:
    """Return the filter for this machine.

    Returns None if the kernel does not support filters or the architecture is unknown.
    """
    is_64_bit = sys.maxsize > _ALL_BITS  # a 32-bit Python on a 64-bit kernel uses other numbers
    if not kernel.IS_LINUX or not is_64_bit or machine not in ARCHITECTURES:
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


def numbers_for(machine: str) -> dict[str, int]:
    """Return the numbers of the allowed system calls by name.

    `machine` is a name from `uname -m` and must be in `ARCHITECTURES`.
    """
    column = ARCHITECTURES.index(machine)
    return {name: number for name, row in NUMBERS.items() if (number := row[column]) is not None}
