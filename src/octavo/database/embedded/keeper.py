"""The keeper: a process that runs the bundled PostgreSQL and stops it when no other process uses it.

Each process that uses the server holds a shared lock, which the kernel releases when the process ends for any reason.
The keeper waits for the exclusive lock, which it gets when the last of these processes has ended. It runs as a script
and uses only the standard library, so that it starts quickly and needs little memory.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

PR_SET_PDEATHSIG = 1
# A fast shutdown writes a checkpoint. If it is requested while PostgreSQL restarts killed child processes, it never
# ends (seen with 16.14 and 18.4). After this time an immediate shutdown is requested, which loses no data either.
PATIENCE_SECONDS = 10
RUNNING, STOPPING = "running", "stopping"
# Other processes briefly take the lock to test it, so a single try can fail by chance.
LOCK_TRIES, LOCK_PAUSE_SECONDS = 200, 0.01


def main(order: dict[str, Any]) -> int:
    """Take the keeper's lock, and run the server in a child process.

    The parent process returns 0 after it has written the keeper's state to the lock file. Returns 1 if another process
    holds the lock.
    """
    held = os.open(order["keeper_lock"], os.O_RDWR | os.O_CREAT, 0o600)
    if not take(held):
        return 1
    pid = os.fork()  # the lock belongs to the open file, so the child holds it too
    if pid:
        write_state(held, pid, RUNNING)
        return 0
    return keep(order, held)


def take(descriptor: int) -> bool:
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_SECONDS)
        else:
            return True
    return False


def write_state(descriptor: int, pid: int, state: str) -> None:
    """Write the keeper's process id and state to the lock file, for other processes to read."""
    os.pwrite(descriptor, f"{pid:>10} {state:<8}\n".encode(), 0)


def keep(order: dict[str, Any], held: int) -> int:
    """Run the server until no process uses it any more, a stop is requested, or the server ends.

    Returns the exit code.
    """
    users = os.open(order["users_lock"], os.O_RDWR | os.O_CREAT, 0o600)
    server = start_server(order)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        write_state(held, os.getpid(), STOPPING)
        server.send_signal(signal.SIGINT)
        signal.alarm(PATIENCE_SECONDS)

    def stop_immediately(_signal: int, _frame: FrameType | None) -> None:
        server.send_signal(signal.SIGQUIT)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGALRM, stop_immediately)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    threading.Thread(target=end_after_last_user, args=(users,), daemon=True).start()
    return server.wait()


def start_server(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    with Path(order["log"]).open("ab") as log:
        return subprocess.Popen(
            order["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=order["environment"],
            preexec_fn=end_with_keeper,  # noqa: PLW1509 - no thread runs yet
            user=order["account"]["user"],
            group=order["account"]["group"],
            extra_groups=order["account"]["extra_groups"],
        )


def end_with_keeper() -> None:
    """Make PostgreSQL shut down cleanly if the keeper is killed. Works only on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


def end_after_last_user(users: int) -> None:
    fcntl.flock(users, fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    os._exit(main(json.loads(sys.argv[1])) and 1)  # exit without waiting for the thread
