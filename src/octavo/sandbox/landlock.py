"""Landlock: after `restrict`, a process can open only the given files and folders, and only for reading.

Rules apply to inodes, so access can be limited to the input file alone, in any folder.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable

from octavo.sandbox import kernel

# The numbers of system calls added since 2019 are the same on every architecture.
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446

_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_READ_FILE = 1 << 2
_READ_DIR = 1 << 3

# File rights by ABI version: 13 in the first, then refer, truncate and device ioctl.
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP_RIGHTS = 0b11  # bind, connect
_SCOPES = 0b11  # abstract unix sockets, signals
_ABI_TCP = 4
_ABI_SCOPES = 6


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_files", ctypes.c_uint64),
        ("handled_network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """Return the kernel's Landlock version, or 0 if Landlock is missing or disabled."""
    if not kernel.IS_LINUX:
        return 0
    try:
        return kernel.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION))
    except OSError:
        return 0


def describe(version: int) -> str:
    """Describe what this version of Landlock protects, for the report about the sandbox layers."""
    covered = ["files"]
    if version >= _ABI_TCP:
        covered.append("TCP")
    if version >= _ABI_SCOPES:
        covered += ["abstract sockets", "signals"]
    return f"ABI {version}: {', '.join(covered)}"


def restrict(version: int, readable: Iterable[int]) -> None:
    """Allow this process to read only the files and folders in `readable`, which are descriptors."""
    attributes = _Ruleset(
        handled_files=_FILE_RIGHTS[max(known for known in _FILE_RIGHTS if known <= version)],
        handled_network=_TCP_RIGHTS if version >= _ABI_TCP else 0,
        scoped=_SCOPES if version >= _ABI_SCOPES else 0,
    )
    # An older kernel accepts a longer structure if the rest is zero, as it is here.
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ruleset = kernel.syscall(_CREATE_RULESET, ctypes.byref(attributes), size, ctypes.c_uint32(0))
    for descriptor in readable:
        _allow_reading(ruleset, descriptor)
    kernel.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def _allow_reading(ruleset: int, descriptor: int) -> None:
    is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    rule = _PathBeneath(allowed=_READ_FILE | _READ_DIR if is_folder else _READ_FILE, parent=descriptor)
    kernel.syscall(
        _ADD_RULE,
        ctypes.c_int(ruleset),
        ctypes.c_int(_RULE_PATH_BENEATH),
        ctypes.byref(rule),
        ctypes.c_uint32(0),
    )
