"""A supervised process ends with its supervisor, also when that one is killed; the next one then gets its port."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import psutil
import pytest

from octavo.core.errors import NotPossibleHere
from octavo.ops import ports
from octavo.ops.processes import ProcessRecord, UpRecord
from tests.support.processes import running, wait_until

CHILD = """
import sys, time
from octavo.ops import processes
{setup}
processes.end_with_parent(int(sys.argv[1]))
print("tied", flush=True)
time.sleep(60)
"""
PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""
ELSEWHERE = "processes.sys = type('elsewhere', (), {'platform': 'other'})"


def ends_with_parent(child: str) -> None:
    with running([sys.executable, "-c", PARENT, child]) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        process.kill()
        process.wait()
        wait_until(lambda: not is_alive(pid), "the child is gone too")


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_kernel_ends_it_on_linux() -> None:
    ends_with_parent(CHILD.format(setup=""))


def test_a_thread_ends_it_elsewhere() -> None:
    ends_with_parent(CHILD.format(setup=ELSEWHERE))


def test_it_does_not_start_when_the_parent_is_gone_already() -> None:
    result = subprocess.run([sys.executable, "-c", CHILD.format(setup=""), "1"], capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (1, b"")


HOLD_PORT = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """A process that holds a port until its standard input is closed."""
    command = [sys.executable, "-c", HOLD_PORT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_the_port_is_awaited_while_processes_of_a_killed_up_end(
    holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "PORT_SECONDS", 0.0)
    assert holder.stdout
    assert holder.stdin
    port = int(holder.stdout.readline())
    with pytest.raises(NotPossibleHere, match="in use"):
        ports.listen("127.0.0.1", port)
    threading.Timer(0.2, holder.stdin.close).start()
    before = UpRecord(0, "", [ProcessRecord("web", holder.pid, 0)])
    with ports.listen("127.0.0.1", port, before) as listener:
        assert listener.getsockname()[1] == port


# As systemd does it: the socket is descriptor 3, and the variables name the process that it is for.
USE_OPENED = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
from octavo.ops.ports import open_early
print(open_early("127.0.0.1", 1).getsockname()[1])
"""


def test_a_port_that_systemd_opened_is_used() -> None:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        number = opened.fileno()
        command = [sys.executable, "-c", USE_OPENED, str(number)]
        done = subprocess.run(command, pass_fds=(number,), capture_output=True, text=True, check=True)
        assert int(done.stdout) == opened.getsockname()[1]
