"""Kernel calls that the standard library does not offer."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

IS_LINUX = sys.platform == "linux"

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_GET_SECCOMP = 21
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySets(ctypes.Structure):
    _fields_ = (("words", ctypes.c_uint32 * 6),)


def _checked(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def prctl(option: int, *arguments: int | ctypes.c_void_p) -> int:
    """Call prctl(2). The kernel requires zeros for missing arguments."""
    given = [ctypes.c_ulong(argument) if isinstance(argument, int) else argument for argument in arguments]
    padding = [ctypes.c_ulong(0)] * (4 - len(given))
    return _checked(_libc.prctl(option, *given, *padding), f"prctl({option})")


def syscall(number: int, *arguments: object) -> int:
    """Call syscall(2), for system calls without a C library wrapper."""
    _libc.syscall.restype = ctypes.c_long
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments), f"syscall({number})")


def die_with(parent: int) -> None:
    """Make this process end when `parent` ends. Exits immediately if `parent` has already ended."""
    if IS_LINUX:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(os.EX_UNAVAILABLE)


def hide_from_others() -> None:
    """Hide the memory, environment and open files of this process from its children and other processes of the user."""
    if IS_LINUX:
        prctl(PR_SET_DUMPABLE, 0)


def drop_capabilities() -> None:
    """Drop all capabilities permanently. An ordinary user has none and cannot change the bounding set."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    capability = 0
    while _drop_from_bounding_set(capability):
        capability += 1
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(_CapabilitySets())), "capset")


def _drop_from_bounding_set(capability: int) -> bool:
    try:
        prctl(PR_CAPBSET_DROP, capability)
    except OSError:  # EINVAL after the last capability, EPERM for an ordinary user
        return False
    return True
