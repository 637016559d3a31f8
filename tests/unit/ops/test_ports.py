"""A port passes from one process to another without losing connections."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys

import pytest

from octavo.core.errors import NotPossibleHere
from octavo.ops.ports import is_open, listen, new_socket, share_listener, try_to_open
from tests.support.instance import free_port

HOST = "127.0.0.1"
LISTENING = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("open", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="some systems allow this only to root")
def test_connections_that_wait_in_a_shared_port_are_kept_when_its_first_process_ends() -> None:
    port = free_port()
    with subprocess.Popen([sys.executable, "-c", LISTENING, str(port)], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"open\n"
        assert share_listener(process.pid, free_port()) is None
        shared = share_listener(process.pid, port)
        assert shared
        waiting = socket.create_connection((HOST, port))
        process.kill()
        process.wait()
    with shared, waiting:
        accepted, _ = shared.accept()
        with accepted, socket.create_connection((HOST, port)):
            waiting.sendall(b"still here")
            assert accepted.recv(100) == b"still here"
            assert listen(HOST, port, listener=shared) is shared


def test_a_port_cannot_be_shared_with_a_process_that_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert share_listener(process.pid, free_port()) is None


def test_a_socket_is_opened_as_soon_as_its_port_is_free() -> None:
    with contextlib.closing(new_socket(HOST)) as listener:
        with socket.create_server((HOST, 0)) as other:
            port = other.getsockname()[1]
            assert not try_to_open(listener, HOST, port)
            with pytest.raises(NotPossibleHere, match="in use"):
                listen(HOST, port)
        assert not is_open(listener)
        assert try_to_open(listener, HOST, port)
        assert try_to_open(listener, HOST, port)
        assert is_open(listener)
