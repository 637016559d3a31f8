"""A task that tries what the layers forbid, so that the start-up report is measured, not assumed."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

from octavo.core.json import JSON
from octavo.sandbox.task import Task

Attempt = Callable[[], object]


def try_everything(task: Task) -> JSON:
    """For each layer the names of the attempts that succeeded."""
    memory_bytes = cast("int", task.arguments["memory_bytes"])
    attempts: dict[str, dict[str, Attempt]] = {
        "limits": {
            "take more memory": lambda: bytearray(memory_bytes),
            "raise a limit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, _one_more(resource.RLIMIT_NOFILE)),
            "compute for ever": lambda: _require(resource.getrlimit(resource.RLIMIT_CPU)[1] < 0),
            "write for ever": lambda: _require(resource.getrlimit(resource.RLIMIT_FSIZE)[1] < 0),
        },
        "environment": {"read the environment": lambda: _require(bool(os.environ))},
        "capabilities": {"use capabilities": lambda: _require(_status("CapPrm").strip("0") != "")},
        "no_new_privs": {"gain privileges": lambda: _require(_status("NoNewPrivs") != "1")},
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


def _require(condition: bool) -> None:  # noqa: FBT001 - the one thing it is about
    if not condition:
        raise PermissionError


def _one_more(kind: int) -> tuple[int, int]:
    soft, hard = resource.getrlimit(kind)
    return soft, hard + 1


def _status(name: str) -> str:
    """What cannot be read does not hold."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return "unknown"
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _execute() -> None:
    # Without the filter the kernel gets as far as to find that there is no such program.
    with suppress(FileNotFoundError):
        os.execv("/nonexistent", ["nonexistent"])  # noqa: S606 - there is no shell, and no program
