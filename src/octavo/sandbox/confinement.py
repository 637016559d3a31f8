"""Applies all layers of the sandbox.

Some layers are applied in the preloaded parent process, and the others in each child process that it forks.
"""

from __future__ import annotations

import os
import platform
import resource
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from octavo.sandbox import kernel, seccomp
from octavo.sandbox.protocol import MIB, Limits

# Files that Python and native libraries read outside their own folders. Not /dev/zero: no limit counts the memory
# of a shared mapping of it.
_SYSTEM_FILES = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "/usr/share/fontconfig",
    "/usr/share/zoneinfo",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
)

# The new root is mounted here for a moment, visible only to the parent process.
_ROOT_FOLDER = "/tmp"  # noqa: S108 - nothing is written there
_STACK_BYTES = 8 * MIB
# Counts all threads of the user, so it only stops a thread bomb; the kernel ignores it for root.
_USER_THREADS = 16_384


def _python_folders() -> Iterator[Path]:
    yield from (Path(entry) for entry in sys.path if entry)
    for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix):
        yield from (Path(prefix, name) for name in ("lib", sys.platlibdir))


def _readable_paths(more: Sequence[Path]) -> list[Path]:
    return [*_python_folders(), *map(Path, _SYSTEM_FILES), *more]


def _open_all(paths: Iterable[Path]) -> tuple[int, ...]:
    existing = {path.resolve() for path in paths if path.exists()} - {Path("/")}
    return tuple(os.open(path, os.O_PATH | os.O_CLOEXEC) for path in sorted(existing))


@dataclass(frozen=True, slots=True)
class Confinement:
    """The sandbox layers, prepared once by the preloaded parent process so that `enter` takes only about a millisecond.

    A layer that this system does not support is skipped, and `Sandbox.layers` reports it. If a supported layer fails,
    the child process stops before it reads its input.
    """

    landlock_abi: int
    readable: tuple[int, ...]
    system_calls: seccomp.Filter | None

    @classmethod
    def prepare(cls, readable: Sequence[Path]) -> Confinement:
        """Open the folders that child processes can read, and build the system call filter."""
        landlock_abi = kernel.landlock_abi()
        return cls(
            landlock_abi=landlock_abi,
            readable=_open_all(_readable_paths(readable)) if landlock_abi else (),
            system_calls=seccomp.filter_for(platform.machine()),
        )

    def enter(self, limits: Limits, *, input_file: int, keep: Iterable[int]) -> None:
        """Confine this process permanently. Only the descriptors in `keep` and the three standard ones stay open."""
        limit_resources(limits)
        if self.landlock_abi:
            own_process = os.open("/proc/self", os.O_PATH)
            kernel.restrict(self.landlock_abi, [*self.readable, own_process, input_file])
        close_all_except(keep)
        if self.system_calls:
            seccomp.install(self.system_calls)


def hide_other_files(readable: Sequence[Path]) -> bool:
    """Give this process a root folder that contains only the files that sandboxed child processes can read.

    This runs in the preloaded parent process, and the child processes inherit the root. With Landlock alone, child
    processes could see the names and sizes of files whose paths they know. The change is tried in a child process
    first, because a failure halfway cannot be undone. Returns whether the root was changed.
    """
    paths = _readable_paths(readable)
    if not kernel.IS_LINUX or not _works_in_child(lambda: _enter_own_root(paths)):
        return False
    try:
        _enter_own_root(paths)
    except OSError:  # a preloaded module has started a thread, so that the first step is refused
        return False
    return True


def _works_in_child(attempt: Callable[[], None]) -> bool:
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            attempt()
            os._exit(os.EX_OK)
        os._exit(os.EX_UNAVAILABLE)
    return os.waitpid(pid, 0)[1] == 0


def _enter_own_root(paths: Iterable[Path]) -> None:
    kernel.enter_own_namespaces()
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    # Opened before the new root is mounted on the folder, which may contain some of them.
    sources = {path: os.open(path, os.O_PATH) for path in _outermost([*paths, Path("/proc")])}
    kernel.mount("octavo", _ROOT_FOLDER, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=1m")
    for path, source in sources.items():
        _show(source, Path(f"{_ROOT_FOLDER}{path}"))
        os.close(source)
    Path(f"{_ROOT_FOLDER}/dev/fd").symlink_to("/proc/self/fd")  # libraries open the input by its name there
    kernel.make_root(_ROOT_FOLDER)
    kernel.make_read_only("/")


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that exist, both as written and with symbolic links resolved.

    A path inside another of these paths is left out.
    """
    existing = {one for path in paths if path.exists() for one in (path.absolute(), path.resolve())} - {Path("/")}
    return sorted(path for path in existing if existing.isdisjoint(path.parents))


def _show(source: int, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISDIR(os.fstat(source).st_mode):
        place.mkdir(exist_ok=True)
    else:
        place.touch()
    kernel.mount(f"/proc/self/fd/{source}", str(place), flags=kernel.MS_BIND | kernel.MS_REC)


def die_first() -> None:
    """If memory runs out, make the kernel kill this process and its child processes before any others.

    Some containers do not allow this.
    """
    if kernel.IS_LINUX:
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")


def drop_privileges() -> None:
    """Lower the resource limits and drop the privileges of this process. Child processes inherit both changes."""
    _lower(resource.RLIMIT_STACK, _STACK_BYTES)
    _lower(resource.RLIMIT_NPROC, _USER_THREADS)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_MEMLOCK, 0)
    if not kernel.IS_LINUX:
        return
    kernel.drop_capabilities()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.hide_from_others()


def limit_resources(limits: Limits) -> None:
    """Apply a task's limits to this process. Memory is limited by RLIMIT_DATA, which counts writable private memory.

    RLIMIT_AS would also count address space that is only reserved, and allocators reserve gigabytes. The system call
    filter blocks the types of memory that RLIMIT_DATA does not count.
    """
    # At the soft limit the kernel sends a signal that can be ignored, at the hard limit SIGKILL.
    cpu_seconds = ceil(limits.cpu_seconds)
    _lower(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    _lower(resource.RLIMIT_DATA, limits.memory_bytes)
    _lower(resource.RLIMIT_NOFILE, limits.open_files)
    # One byte more, to distinguish an output of exactly the limit from one that was cut off.
    _lower(resource.RLIMIT_FSIZE, limits.output_bytes + 1)


def _lower(kind: int, soft: int, hard: int | None = None) -> None:
    _, present = resource.getrlimit(kind)
    ceiling = sys.maxsize if present == resource.RLIM_INFINITY else present
    hard = min(soft if hard is None else hard, ceiling)
    resource.setrlimit(kind, (min(soft, hard), hard))


def close_all_except(keep: Iterable[int]) -> None:
    """Close every descriptor except the three standard ones and those in `keep`."""
    start = 3
    for descriptor in sorted(keep):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
