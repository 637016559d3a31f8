"""Opens the port of the web server and the port for emails.

This module imports little, so that the ports are open soon after the start.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import time
from typing import TYPE_CHECKING

import psutil

from octavo.core.errors import BadInput, NotPossibleHere
from octavo.core.settings import parse_listen

if TYPE_CHECKING:
    from octavo.ops.processes import UpRecord

# Opening the port is retried: after a kill, the previous web process releases it only a moment later.
# The processes of a killed `up` end with it, but on a busy machine they hold the port for some seconds longer.
PORT_SECONDS, PORT_OF_ENDING_SECONDS, PORT_PAUSE_SECONDS = 1.0, 30.0, 0.05
# The number of this system call, on all processors.
PIDFD_GETFD = 438
BACKLOG = 2048
# The first descriptor that systemd passes to a service.
FIRST_DESCRIPTOR = 3


def open_early(host: str, port: int) -> socket.socket | None:
    """Open the port early, if possible, so that clients wait until the server has started instead of being refused.

    Returns None if the port is in use or cannot be opened; `listen` then tries for longer and reports the reason.
    """
    inherited = inherited_listener()
    if inherited:
        return inherited
    listener = new_socket(host)
    if try_to_open(listener, host, port):
        return listener
    listener.close()
    return None


def inherited_listener() -> socket.socket | None:
    """Return the listening socket that systemd opened for this process. Returns None if there is none.

    systemd keeps the socket open while this process restarts, so clients wait for a moment instead of being refused.
    """
    number, process = os.environ.pop("LISTEN_FDS", ""), os.environ.pop("LISTEN_PID", "")
    if process != str(os.getpid()):
        return None
    listener = socket.socket(fileno=FIRST_DESCRIPTOR)
    if number != "1" or listener.family not in {socket.AF_INET, socket.AF_INET6}:
        raise NotPossibleHere("The socket unit must have one ListenStream with a TCP port.")
    listener.set_inheritable(False)
    return listener


def listen(
    host: str,
    port: int,
    before: UpRecord | None = None,
    *,
    setting: str = "OCTAVO_PORT",
    listener: socket.socket | None = None,
) -> socket.socket:
    """Open the port, which stays open while web processes restart.

    `before` is the record of an earlier `octavo up` that was killed. While any of its processes exists, the port may
    still be in use, so opening the port is retried for longer. `setting` is the setting that the error message names.
    `listener` is the socket to use, if there is one already.
    """
    began, listener = time.monotonic(), listener or new_socket(host)
    while True:
        limit = PORT_OF_ENDING_SECONDS if before and before.is_ending() else PORT_SECONDS
        try:
            _open(listener, host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() - began > limit:
                listener.close()
                raise NotPossibleHere(explain_address(error, host, port, setting)) from None
            time.sleep(PORT_PAUSE_SECONDS)
        else:
            return listener


def listen_for_mails(place: str, before: UpRecord | None = None) -> socket.socket:
    """Open the port for emails, such as `127.0.0.1:8024`."""
    try:
        host, port = parse_listen(place)
    except ValueError as error:
        raise BadInput(f"--listen: {error}.") from None
    return listen(host, port, before, setting="OCTAVO_LMTP_LISTEN")


def new_socket(host: str) -> socket.socket:
    """Create a socket for a port that is opened later."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The explicit protocol enables TCP_NODELAY: small responses are sent without delay.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return listener


def try_to_open(listener: socket.socket, host: str, port: int) -> bool:
    """Open the port if it is free. Returns whether it is open."""
    try:
        _open(listener, host, port)
    except OSError:
        return False
    return True


def is_open(listener: socket.socket) -> bool:
    return bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def share_listener(process: int, port: int) -> socket.socket | None:
    """Return a copy of another process's listening socket, so that both share it. Returns None if this is impossible.

    Connections that are waiting in the socket's queue are kept when the other process ends. This needs Linux and the
    permission to trace the other process, which some systems grant only to root.
    """
    try:
        number = next(
            one.fd
            for one in psutil.Process(process).net_connections("tcp")
            if one.status == psutil.CONN_LISTEN and one.laddr.port == port
        )
        owner = os.pidfd_open(process)
        try:
            copied = ctypes.CDLL(None).syscall(PIDFD_GETFD, owner, number, 0)
        finally:
            os.close(owner)
        return socket.socket(fileno=copied) if copied >= 0 else None
    except (psutil.Error, StopIteration, OSError, AttributeError):
        return None


def _open(listener: socket.socket, host: str, port: int) -> None:
    if is_open(listener):
        return
    if not listener.getsockname()[1]:  # it is bound if only `listen` failed before
        listener.bind((host, port))
    listener.listen(BACKLOG)


def explain_address(error: OSError, host: str, port: int, setting: str = "OCTAVO_PORT") -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use. Stop the other program, or set {setting}."
    if error.errno == errno.EACCES:
        return f"Port {port} requires root. Set {setting} to a port above 1023."
    reason, host_setting = error.strerror or error, setting.replace("_PORT", "_HOST")
    return f"Cannot listen on {host} port {port}: {reason}. Set {host_setting} to an address of this machine."


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"
