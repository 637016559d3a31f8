"""The process that runs the bundled PostgreSQL and stops it when no process uses it any more.

Users hold a shared lock, which the kernel releases however they end. So waiting for the exclusive lock means waiting
for the last user. It runs as a script with only the standard library, so that it starts quickly and stays small.
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
# A fast shutdown writes a checkpoint. One that is requested while PostgreSQL restarts its killed children never ends
# (seen with 16.14 and 18.4), so after this time it becomes an immediate one, which loses nothing either.
PATIENCE_SECONDS = 10
RUNNING, STOPPING = "running", "stopping"
# Others briefly test whether the lock is free, so a single try can fail by chance.
LOCK_TRIES, LOCK_PAUSE_SECONDS = 200, 0.01


def main(order: dict[str, Any]) -> int:
    """Take the lock, continue in the background with it, and return once other processes can find us."""
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
    """The pid and state of the keeper, for processes that find the lock taken."""
    os.pwrite(descriptor, f"{pid:>10} {state:<8}\n".encode(), 0)


def keep(order: dict[str, Any], held: int) -> int:
    """Run the server until its last user is gone, somebody stops it, or it ends."""
    users = os.open(order["users_lock"], os.O_RDWR | os.O_CREAT, 0o600)
    server = start_server(order)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        write_state(held, os.getpid(), STOPPING)
        server.send_signal(signal.SIGINT)
        signal.alarm(PATIENCE_SECONDS)

    def hurry(_signal: int, _frame: FrameType | None) -> None:
        server.send_signal(signal.SIGQUIT)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGALRM, hurry)
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
    """Shut PostgreSQL down cleanly if the keeper is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


def end_after_last_user(users: int) -> None:
    fcntl.flock(users, fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    os._exit(main(json.loads(sys.argv[1])) and 1)  # the waiting thread must not hold the process
