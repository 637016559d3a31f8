"""Reports which sandbox layers work on this machine. A test process tries to break each layer."""

from __future__ import annotations

import os
import platform
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from octavo.core.types import JSON
from octavo.sandbox import kernel, seccomp
from octavo.sandbox.protocol import Task, sandboxed

Attempt = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Layer:
    """One sandbox layer.

    `detail` describes what the layer covers. If the layer is missing, `detail` gives the reason and what a parser could
    do without it.
    """

    name: str
    active: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Layers:
    """All layers of the sandbox."""

    layers: tuple[Layer, ...]

    @property
    def complete(self) -> bool:
        """Whether every layer of the sandbox works."""
        return all(layer.active for layer in self.layers)

    @property
    def summary(self) -> str:
        """A summary of the sandbox layers in one line, for the start-up message."""
        active = [layer.name for layer in self.layers if layer.active]
        missing = [f"{layer.name} ({layer.detail})" for layer in self.layers if not layer.active]
        line = f"Parsers are confined by {', '.join(active) or 'nothing'}"
        return f"{line}; missing: {'; '.join(missing)}" if missing else line


_COVERS: dict[str, Callable[[], str]] = {
    "limits": lambda: "memory, CPU time, files and output",
    "environment": lambda: "empty",
    "capabilities": lambda: "all dropped",
    "no_new_privs": lambda: "privileges cannot be gained",
    "mounts": lambda: "no paths but Python, libraries, fonts and the input",
    "landlock": lambda: kernel.describe_landlock(kernel.landlock_abi()),
    "seccomp": lambda: "no sockets, new processes, other programs, signals or opening files for writing",
}


def explain(found: JSON) -> Layers:
    """Convert the result of `probe` to a report. The result lists, for each layer, the forbidden actions that
    succeeded.
    """
    if not isinstance(found, dict) or found.keys() != _COVERS.keys():
        raise TypeError(f"the probe returned {found!r}")
    return Layers(tuple(_layer(name, found[name]) for name in _COVERS))


def _layer(name: str, breaches: JSON) -> Layer:
    if breaches == []:
        return Layer(name, active=True, detail=_COVERS[name]())
    possible = ", ".join(map(str, breaches)) if isinstance(breaches, list) else str(breaches)
    return Layer(name, active=False, detail=f"{_why_missing(name)}; a parser could {possible}")


def _why_missing(name: str) -> str:
    if name == "seccomp" and platform.machine() not in seccomp.ARCHITECTURES:
        return f"not supported on {platform.machine()}"
    if name in {"landlock", "seccomp"}:
        return "not supported by this kernel"
    if name == "mounts":
        return "not allowed on this system"
    return "not effective"


@sandboxed
def probe(_task: Task, *, memory_bytes: int) -> JSON:
    """Try every action that the sandbox forbids. Returns, for each layer, the names of the actions that succeeded."""
    attempts: dict[str, dict[str, Attempt]] = {
        "limits": {
            "use more memory": lambda: bytearray(memory_bytes),
            "raise a limit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, _one_more(resource.RLIMIT_NOFILE)),
            "use CPU time without limit": lambda: _require(resource.getrlimit(resource.RLIMIT_CPU)[1] < 0),
            "write without limit": lambda: _require(resource.getrlimit(resource.RLIMIT_FSIZE)[1] < 0),
        },
        "environment": {"read the environment": lambda: _require(bool(os.environ))},
        "capabilities": {"use capabilities": lambda: _require(_status("CapPrm").strip("0") != "")},
        "no_new_privs": {"gain privileges": lambda: _require(_status("NoNewPrivs") != "1")},
        "mounts": {"see names and sizes of any file": lambda: Path("/etc/passwd").stat()},
        "landlock": {"read any file": lambda: list(Path("/").iterdir())},
        "seccomp": {
            "open a socket": lambda: socket.socket().close(),
            "start a process": _fork,
            "call exec": _execute,
            "signal others": lambda: os.kill(os.getppid(), 0),
            "open a file for writing": lambda: os.close(os.open(os.devnull, os.O_WRONLY)),
        },
    }
    return {layer: _breaches(tries) for layer, tries in attempts.items()}


def _breaches(attempts: dict[str, Attempt]) -> list[JSON]:
    return [name for name, attempt in attempts.items() if _succeeds(attempt)]


def _succeeds(attempt: Attempt) -> bool:
    with suppress(OSError, MemoryError, ValueError):
        attempt()
        return True
    return False


def _require(condition: bool) -> None:  # noqa: FBT001 - its only argument
    if not condition:
        raise PermissionError


def _one_more(kind: int) -> tuple[int, int]:
    soft, hard = resource.getrlimit(kind)
    return soft, hard + 1


def _status(name: str) -> str:
    """Return the value of a field in `/proc/self/status`. Returns "unknown" if the file cannot be read."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return "unknown"
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _execute() -> None:
    # If the filter is missing, the kernel looks for the program and does not find it.
    with suppress(FileNotFoundError):
        os.execv("/nonexistent", ["nonexistent"])  # noqa: S606 - there is no shell, and no program
