"""A supervised process ends with its supervisor, also when that one is killed."""

from __future__ import annotations

import subprocess
import sys

import psutil

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
