"""Calls the kernel for sandbox features that the standard library does not offer, such as namespaces and Landlock.

After `restrict`, Landlock lets a process open only the listed files and folders, and only for reading. Its rules apply
to inodes, so access to a folder can be limited to the input file in it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

IS_LINUX = sys.platform == "linux"

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_GET_SECCOMP = 21
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 1 << 1, 1 << 2, 1 << 12, 1 << 14, 1 << 18
_CLONE_NEWNS, _CLONE_NEWUSER = 1 << 17, 1 << 28
_MNT_DETACH = 1 << 1
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY = 1

_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySets(ctypes.Structure):
    _fields_ = (("words", ctypes.c_uint32 * 6),)


class _MountAttributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace"))


def _checked(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def prctl(option: int, *arguments: int | ctypes.c_void_p) -> int:
    """Call prctl(2). Missing arguments are passed as zeros, as the kernel requires."""
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
    """Hide the memory, environment and open files of this process from other processes of the user."""
    if IS_LINUX:
        prctl(PR_SET_DUMPABLE, 0)


def drop_capabilities() -> None:
    """Drop all capabilities permanently.

    Only a privileged process can change its bounding set. For other processes, the bounding set does not matter,
    because they have no capabilities.
    """
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


def enter_own_namespaces() -> None:
    """Move this process into its own user and mount namespaces, where it can mount file systems.

    The process keeps its user id.
    """
    user, group = os.getuid(), os.getgid()
    _checked(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None
    )
    _checked(result, f"mount {target}")


def make_root(folder: str) -> None:
    """Make this mount point the root of the file system for this process, and unmount the old root."""
    os.chdir(folder)
    if platform.machine() not in _PIVOT_ROOT:
        raise OSError(f"the number of pivot_root is not known on {platform.machine()}")
    syscall(_PIVOT_ROOT[platform.machine()], b".", b".")  # puts the old root on top of the new one
    _checked(_libc.umount2(b".", _MNT_DETACH), "umount2")
    os.chdir("/")


def make_read_only(folder: str) -> None:
    """Make the mount at this folder and all mounts below it read-only."""
    attributes = _MountAttributes(set=_MOUNT_ATTR_RDONLY)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    place = (ctypes.c_int(_AT_FDCWD), folder.encode(), ctypes.c_uint(_AT_RECURSIVE))
    syscall(_MOUNT_SETATTR, *place, ctypes.byref(attributes), size)


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


def landlock_abi() -> int:
    """Return the kernel's Landlock version. Returns 0 if Landlock is missing or disabled."""
    if not IS_LINUX:
        return 0
    try:
        return syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION))
    except OSError:
        return 0


def describe_landlock(version: int) -> str:
    """Describe what this version of Landlock protects, for the report about the sandbox layers."""
    covered = ["files"]
    if version >= _ABI_TCP:
        covered.append("TCP")
    if version >= _ABI_SCOPES:
        covered += ["abstract sockets", "signals"]
    return f"ABI {version}: {', '.join(covered)}"


def restrict(version: int, readable: Iterable[int]) -> None:
    """Restrict this process to reading the files and folders whose descriptors are in `readable`."""
    attributes = _Ruleset(
        handled_files=_FILE_RIGHTS[max(known for known in _FILE_RIGHTS if known <= version)],
        handled_network=_TCP_RIGHTS if version >= _ABI_TCP else 0,
        scoped=_SCOPES if version >= _ABI_SCOPES else 0,
    )
    # An older kernel accepts a longer structure if the rest is zero, as it is here.
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ruleset = syscall(_CREATE_RULESET, ctypes.byref(attributes), size, ctypes.c_uint32(0))
    for descriptor in readable:
        _allow_reading(ruleset, descriptor)
    syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def _allow_reading(ruleset: int, descriptor: int) -> None:
    is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    rule = _PathBeneath(allowed=_READ_FILE | _READ_DIR if is_folder else _READ_FILE, parent=descriptor)
    syscall(
        _ADD_RULE,
        ctypes.c_int(ruleset),
        ctypes.c_int(_RULE_PATH_BENEATH),
        ctypes.byref(rule),
        ctypes.c_uint32(0),
    )
